"""A followed log, from the bytes the engine sends to lines with the time each was written.

Asked for timestamps, the engine puts one before every record: before every frame of a container
without a terminal, before every line of one with. A line longer than 16 KiB comes in several
records, each with its time; where a line ends is told by its line feed alone. How the bytes are
cut into pieces must never show.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from sentinel.core.dockerspeak import instant

LONGEST = 16_384  # bytes kept of a line; what is longer loses its end
_FRAME = 8
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d) ?")
_SECOND = re.compile(r"(\.\d+)?(Z|[+-]\d\d:\d\d)$")


class Record(NamedTuple):
    stamp: bytes  # as the engine writes it; empty where it wrote none
    line: bytes  # without its line feed


class Records:
    """Fed pieces of one stream; says which lines they complete."""

    def __init__(self, *, tty: bool) -> None:
        self._tty = tty
        self._pending = b""  # bytes that do not make a frame, or a line of a terminal, yet
        self._begun: dict[int, Record] = {}  # the beginning of a line, by stream

    def feed(self, data: bytes) -> Iterator[Record]:
        data = self._pending + data
        for stream, piece in self._of_terminal(data) if self._tty else self._frames(data):
            yield from self._lines(stream, piece)

    def close(self) -> Iterator[Record]:
        """What came after the last line feed."""
        if self._tty and self._pending:
            yield _record(self._pending)
        yield from self._begun.values()
        self._begun, self._pending = {}, b""

    def _of_terminal(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        whole, end, rest = data.rpartition(b"\n")
        self._pending = rest[:LONGEST]
        for line in whole.split(b"\n") if end else ():
            yield 1, line + b"\n"

    def _frames(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        at = 0
        while len(data) - at >= _FRAME:
            end = at + _FRAME + int.from_bytes(data[at + 4 : at + _FRAME], "big")
            if end > len(data):
                break
            yield data[at], data[at + _FRAME : end]
            at = end
        self._pending = data[at:]

    def _lines(self, stream: int, piece: bytes) -> Iterator[Record]:
        stamp, body = _record(piece)
        if stream in self._begun:
            stamp, begun = self._begun.pop(stream)
            body = begun + body
        *lines, rest = body.split(b"\n")
        for line in lines:
            yield Record(stamp, line[:LONGEST])
        if rest:
            self._begun[stream] = Record(stamp, rest[:LONGEST])


def _record(piece: bytes) -> Record:
    found = _STAMP.match(piece)
    return Record(found[0].rstrip(), piece[found.end() :]) if found else Record(b"", piece)


def moment_of(stamp: bytes) -> datetime | None:
    return instant(stamp.decode("ascii", "replace"))


def nanoseconds(stamp: bytes) -> int:
    """Since 1970; 0 for what is no time."""
    text = stamp.decode("ascii", "replace")
    found, at = _SECOND.search(text), moment_of(stamp)
    if found is None or at is None:
        return 0
    whole = (at.replace(microsecond=0) - _EPOCH) // timedelta(seconds=1)
    return whole * 1_000_000_000 + int((found[1] or ".")[1:10].ljust(9, "0"))


_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
