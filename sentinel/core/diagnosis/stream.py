"""The bytes of a log, in pieces of any size, to numbered lines of bounded length.

Docker frames what a container without a terminal writes (stream, three zeroes, length); that
shows in the first bytes. Lines end with a line feed and nothing else, so that numbers are
those of an editor. How the bytes are cut into pieces must never show in the lines.
"""

from collections.abc import Iterator

MOST = 16_384  # bytes kept of a line; what is longer loses its end
_HEAD = 8


class LineStream:
    def __init__(self) -> None:
        self._framed: bool | None = None  # None: too few bytes to know
        self._pending = b""  # bytes that do not make a frame's head yet
        self._stream = 0
        self._left = 0  # bytes of the frame that are still to come
        self._rests: dict[int, bytes] = {}  # the beginning of a line, by stream
        self._number = 0

    def feed(self, data: bytes) -> Iterator[tuple[int, str]]:
        for stream, piece in self._pieces(data):
            yield from self._lines(stream, piece)

    def close(self) -> Iterator[tuple[int, str]]:
        """What came after the last line feed."""
        if self._framed is None and self._pending:
            pending, self._pending = self._pending, b""
            self._framed = False
            yield from self._lines(0, pending)
        for stream in list(self._rests):
            if rest := self._rests.pop(stream):
                yield self._numbered(rest)

    def _pieces(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        if self._framed is None:
            data, self._pending = self._pending + data, b""
            if len(data) < _HEAD and _may_be_head(data):
                self._pending = data
                return
            self._framed = _is_head(data)
        if not self._framed:
            yield 0, data
            return
        yield from self._unframed(data)

    def _unframed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        data, self._pending = self._pending + data, b""
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                self._left -= len(piece)
                at += len(piece)
                yield self._stream, piece
                continue
            head = data[at : at + _HEAD]
            if not _may_be_head(head):  # no frames any more: as it is
                self._framed = False
                yield 0, data[at:]
                return
            if len(head) < _HEAD:
                self._pending = head
                return
            self._stream, self._left = head[0], int.from_bytes(head[4:], "big")
            at += _HEAD

    def _lines(self, stream: int, piece: bytes) -> Iterator[tuple[int, str]]:
        first, *others = piece.split(b"\n")
        begun = (self._rests.get(stream, b"") + first)[:MOST]
        if not others:
            self._rests[stream] = begun
            return
        self._rests[stream] = others.pop()[:MOST]
        yield self._numbered(begun)
        for line in others:
            yield self._numbered(line[:MOST])

    def _numbered(self, line: bytes) -> tuple[int, str]:
        self._number += 1
        return self._number, line.decode("utf-8", "replace")


def _is_head(data: bytes) -> bool:
    return len(data) >= _HEAD and _may_be_head(data[:_HEAD])


def _may_be_head(head: bytes) -> bool:
    return (not head or head[0] <= 2) and head[1:4] == b"\0\0\0"[: max(0, len(head) - 1)]
