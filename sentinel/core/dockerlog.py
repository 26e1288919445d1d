"""What a container wrote, from the bytes the engine sends.

Without a terminal the engine frames each write (stream, three zeroes, length); with one it
sends the bytes bare. Which it is shows in the bytes themselves, so nobody has to be asked.
"""

import re

_FRAME = 8
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # window titles, links
    r"|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)


def log_text(raw: bytes, *, max_bytes: int) -> str:
    """The last `max_bytes` of the log as text, whole lines, without terminal codes."""
    body = _without_frames(raw)
    if len(body) > max_bytes:
        body = body[-max_bytes:]
        body = body[body.find(b"\n") + 1 :]  # a line that lost its beginning misleads
    text = body.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return _ESCAPES.sub("", text)


def _without_frames(raw: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while at < len(raw):
        head = raw[at : at + _FRAME]
        if len(head) == _FRAME and (head[0] > 2 or head[1:4] != b"\0\0\0"):
            return raw if at == 0 else b"".join([*parts, raw[at:]])
        if len(head) < _FRAME:
            return raw if at == 0 else b"".join(parts)  # cut inside a header
        size = int.from_bytes(head[4:8], "big")
        parts.append(raw[at + _FRAME : at + _FRAME + size])
        at += _FRAME + size
    return b"".join(parts)
