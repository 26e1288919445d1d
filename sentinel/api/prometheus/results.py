"""What came of a query, as Prometheus writes it.

Rendered beside the event loop, a row at a time: a point stays two numbers until its row is
written, so that a large answer does not fill the memory of the daemon.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from sentinel.api.prometheus import figures
from sentinel.api.prometheus.desk import Measure
from sentinel.api.prometheus.envelope import TRUNCATED, Found, Rendered
from sentinel.api.snapshot import to_json
from sentinel.core.model.labels import Labels
from sentinel.core.promql import RangeSample, Sample, Value


@dataclass(frozen=True, slots=True)
class Points:
    times: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))


def instant_result(kind: str, value: Value, at_ms: int, limit: int, infos: Sequence[str]) -> Found:
    now = figures.seconds(at_ms)
    if isinstance(value, float):
        return Found({"resultType": kind, "result": [now, figures.scalar(value)]}, (), infos)
    if isinstance(value, str):
        return Found({"resultType": kind, "result": [now, value]})
    shown: Sequence[Sample | RangeSample] = value[:limit] if limit else value
    rows = [
        _row(each.labels, *_columns(each))
        if isinstance(each, RangeSample)
        else to_json({"metric": dict(each.labels), "value": [now, figures.value(each.value)]})
        for each in shown
    ]
    return Found(_result(kind, rows), _warnings(len(value), limit), infos)


def range_result(
    found: Mapping[Labels, Points], limit: int, infos: Sequence[str], measure: Measure
) -> Found:
    rows: list[bytes] = []
    for labels in islice(in_order(found), limit or None):
        measure.go_on()
        rows.append(_row(labels, found[labels].times, found[labels].values))
    return Found(_result("matrix", rows), _warnings(len(found), limit), infos)


def in_order(found: Iterable[Labels]) -> Iterator[Labels]:
    """Sorted, but one name after the other: a single great sort would hold up every thread."""
    groups: dict[Labels, list[Labels]] = {}
    for labels in found:
        groups.setdefault(labels[:1], []).append(labels)
    for first in sorted(groups):
        yield from sorted(groups[first])


def _columns(series: RangeSample) -> tuple[list[int], list[float]]:
    return [at for at, _ in series.points], [value for _, value in series.points]


def _row(labels: Labels, times: Iterable[int], values: Iterable[float]) -> bytes:
    points = ",".join(
        f'[{figures.seconds(at)},"{figures.value(number)}"]'
        for at, number in zip(times, values, strict=True)
    )
    return b'{"metric":' + to_json(dict(labels)) + f',"values":[{points}]}}'.encode()


def _result(kind: str, rows: Iterable[bytes]) -> Rendered:
    return Rendered(f'{{"resultType":"{kind}","result":['.encode() + b",".join(rows) + b"]}")


def _warnings(count: int, limit: int) -> tuple[str, ...]:
    return (TRUNCATED,) if 0 < limit < count else ()
