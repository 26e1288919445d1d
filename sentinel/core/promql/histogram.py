"""Quantiles and fractions of classic histograms: `le` buckets with cumulative counts.

Bounds that are equal once read as numbers ("1" and "1.0") are one bucket, counts are forced
to rise, and without a `+Inf` bucket there is no answer but NaN, as in Prometheus.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentinel.core.model.labels import Labels, value_of, without
from sentinel.core.promql.arithmetic import INF, NAN, almost_equal
from sentinel.core.promql.frame import (
    Context,
    Frame,
    Remembered,
    Scalar,
    Shape,
    Vector,
    checked,
    nameless,
)

TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Histograms:
    """Which elements of a vector are the buckets of which histogram."""

    shape: Shape
    buckets: tuple[tuple[tuple[float, int], ...], ...]  # (bound, place), by bound


def histograms(shape: Shape) -> Histograms:
    grouped: dict[Labels, list[tuple[float, int]]] = {}
    for place, labels in enumerate(shape.labels):
        bound = _bound(value_of(labels, "le"))
        if bound is not None:
            grouped.setdefault(without(labels, "le"), []).append((bound, place))
    return Histograms(
        nameless(Shape(tuple(grouped))), tuple(tuple(sorted(found)) for found in grouped.values())
    )


def _bound(text: str) -> float | None:
    if not text.isascii() or "_" in text or text != text.strip():
        return None  # Python reads it, Go does not
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


def over_buckets(read: Callable[..., float], scalars: Sequence[Scalar], inner: Vector) -> Vector:
    """Apply `quantile` or `fraction` to every histogram of a vector."""
    grouped = Remembered(histograms)

    def evaluate(ctx: Context) -> Frame:
        arguments = [scalar(ctx) for scalar in scalars]
        frame = inner(ctx)
        found = grouped(frame.shape)
        values: list[float | None] = []
        for buckets in found.buckets:
            bounds, counts = _present(buckets, frame.values)
            values.append(read(*arguments, bounds, counts) if bounds else None)
        return checked(Frame(found.shape, values))

    return evaluate


def _present(
    buckets: Sequence[tuple[float, int]], values: Sequence[float | None]
) -> tuple[list[float], list[float]]:
    """The bounds and counts of one histogram now; equal bounds are added up."""
    bounds: list[float] = []
    counts: list[float] = []
    for bound, place in buckets:
        count = values[place]
        if count is None:
            continue
        if bounds and bounds[-1] == bound:
            counts[-1] += count
        else:
            bounds.append(bound)
            counts.append(count)
    return bounds, counts


def _make_rise(counts: list[float]) -> None:
    before = counts[0]
    for place, count in enumerate(counts):
        if count == before:
            continue
        if count < before or almost_equal(before, count, TOLERANCE):
            counts[place] = before
        else:
            before = count


def quantile(q: float, bounds: list[float], counts: list[float]) -> float:
    if math.isnan(q):
        return NAN
    if q < 0:
        return -INF
    if q > 1:
        return INF
    if bounds[-1] != INF or len(bounds) < 2:
        return NAN
    _make_rise(counts)
    observed = counts[-1]
    if observed == 0 or math.isnan(observed):
        return NAN
    rank = q * observed
    last = len(bounds) - 1
    b = bisect_left(counts, rank, 0, last)
    if b == last:
        return bounds[-2]
    if b == 0 and bounds[0] <= 0:
        return bounds[0]
    start, count = 0.0, counts[b]
    if b > 0:
        start = bounds[b - 1]
        count -= counts[b - 1]
        rank -= counts[b - 1]
    return start + (bounds[b] - start) * (rank / count if count else NAN)


def fraction(lower: float, upper: float, bounds: list[float], counts: list[float]) -> float:
    """The share of observations between `lower` and `upper`."""
    observed = counts[-1]
    if bounds[-1] != INF or observed == 0 or any(map(math.isnan, (observed, lower, upper))):
        return NAN
    if lower >= upper:
        return 0.0
    low, high = (min(_below(edge, bounds, counts), observed) for edge in (lower, upper))
    return (high - low) / observed


def _below(edge: float, bounds: list[float], counts: list[float]) -> float:
    """How many observations are below `edge`. None are negative if the first bound is not."""
    rank = 0.0
    start = 0.0 if bounds[0] > 0 else -INF
    for bound, count in zip(bounds, counts, strict=True):
        if start >= edge:
            return rank
        if edge < bound:
            if start == -INF:
                return count
            return rank + (count - rank) * (edge - start) / (bound - start)
        rank, start = count, bound
    return counts[-1]
