"""A store as bytes, so that a restart of the daemon keeps its windows.

A line with a checksum, one of JSON that says which columns follow, then the columns as they
lie in memory. A file that is cut short, altered or of another format is refused as a whole
with `ValueError`: a wrong past would fire rules. Restored sources have ended; each goes on
when it is asked for again under its name and labels.
"""

import json
import zlib
from array import array
from collections.abc import Sequence
from itertools import pairwise
from sys import byteorder
from typing import Any

from sentinel.core.model.labels import NAME, Labels, labels_of, value_of
from sentinel.core.model.series import Store
from sentinel.core.model.source import Series, Source

_FORMAT = f"sentinel series 1 {byteorder}"


def pack(store: Store) -> bytes:
    """Every source and series of `store`."""
    columns: list[bytes] = []
    sources = [_described(source, columns) for source in store.sources()]
    rest = json.dumps(sources, separators=(",", ":")).encode() + b"\n" + b"".join(columns)
    return _head(rest) + rest


def _head(rest: bytes) -> bytes:
    return f"{_FORMAT} {zlib.crc32(rest):08x}\n".encode()


def _described(source: Source, columns: list[bytes]) -> list[object]:
    series = [
        [each.labels, each.first, each.own is not None, *_put(_columns(each), columns)]
        for each in source.series.values()
    ]
    lengths = _put((source.times, source.failed), columns)
    return [source.name, source.labels, series, *lengths]


def _columns(series: Series) -> tuple["array[Any]", ...]:
    return (series.values, series.own or array("q"), series.gone)


def _put(arrays: Sequence["array[Any]"], columns: list[bytes]) -> list[int]:
    columns.extend(each.tobytes() for each in arrays)
    return [len(each) for each in arrays]


def unpack(data: bytes, store: Store) -> None:
    """Add what `pack` wrote to an empty `store`. Raises `ValueError`."""
    first, newline, rest = data.partition(b"\n")
    if first + newline != _head(rest):
        raise ValueError("not a whole file of series, or one of another version")
    described, _, body = rest.partition(b"\n")
    columns = _Columns(body)
    try:
        sources = [_restored(each, columns, store) for each in json.loads(described)]
        columns.end()
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a description of series: {error}") from None
    for source in sources:
        store.adopt(source)


class _Columns:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def take(self, kind: str, length: int) -> "array[Any]":
        column: array[Any] = array(kind)
        end = self._at + length * column.itemsize
        _require(self._at <= end <= len(self._body))
        column.frombytes(self._body[self._at : end])
        self._at = end
        return column

    def times(self, length: int) -> "array[int]":
        times = self.take("q", length)
        _require(all(before < after for before, after in pairwise(times)))
        return times

    def end(self) -> None:
        _require(self._at == len(self._body))


def _require(it: bool) -> None:  # noqa: FBT001 - like assert
    if not it:
        raise ValueError("the columns of series do not fit together")


def _restored(described: list[Any], columns: _Columns, store: Store) -> Source:
    name, labels, all_series, times, failed = described
    _require(isinstance(name, str))
    source = Source(store, name, _labels(labels))
    for series_labels, first, has_own, values, own, gone in all_series:
        series = Series(source, _labels(series_labels))
        series.first = first
        series.values = columns.take("d", values)
        own_times = columns.times(own)
        series.own = own_times if has_own else None
        series.gone = columns.times(gone)
        _require(first == 0 if has_own else first >= 0)
        _require(own == (values if has_own else 0))
        _require(series.labels not in source.series)
        if values and store.keeps(value_of(series.labels, NAME)):
            source.series[series.labels] = series
            if has_own:
                source.irregular.add(series)
    source.times, source.failed = columns.times(times), columns.times(failed)
    for series in source.series.values():
        _require(series.own is not None or series.first + len(series.values) <= times)
    return source


def _labels(pairs: list[list[str]]) -> Labels:
    labels = labels_of(dict(pairs))
    _require(all(isinstance(text, str) for pair in labels for text in pair))
    return labels
