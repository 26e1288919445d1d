"""Makes untrusted text harmless before it is said.

Names and log lines come from containers: they may hold terminal escapes, line breaks that
forge a line of their own, or characters that turn text around. `plain` is for one line of
words; markup is the business of each receiver.
"""

import re
import unicodedata
from collections.abc import Callable

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS …
    r"|\x1b[ -/]*[0-~]?"  # what is left of the two-byte kind
)
_TURNS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def plain(text: str) -> str:
    """`text` on one line, without terminal escapes, control or direction characters."""
    bare = _ESCAPES.sub("", text)
    return " ".join("".join(map(_harmless, bare)).split())


def _harmless(char: str) -> str:
    if char.isspace():
        return " "
    kind = unicodedata.category(char)
    if kind == "Cs":  # half a surrogate pair: no encoder takes it
        return "\ufffd"
    return "" if kind == "Cc" or char in _TURNS else char


def cut(text: str, limit: int, size: Callable[[str], int], suffix: str = "…") -> str:
    """The longest beginning of `text` that `size` finds within `limit`, with `suffix` if cut.

    `size` is asked about what would really be sent, so it may count bytes, or characters
    after escaping; it must not shrink when text is added.
    """
    if size(text) <= limit:
        return text
    fits, over = 0, len(text)
    while over - fits > 1:
        middle = (fits + over) // 2
        if size(text[:middle] + suffix) <= limit:
            fits = middle
        else:
            over = middle
    return text[:fits] + suffix
