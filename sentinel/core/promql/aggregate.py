"""Aggregation: the elements of a group to one, or (`topk` and its kin) to some of them.

Which element belongs to which group depends on the labels alone and is remembered per
shape; an evaluation only gathers values. A group without a present element is absent.
"""

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from sentinel.core.model.labels import NAME, Labels, labels_of, only, without
from sentinel.core.promql.arithmetic import NAN, mean_of, quantile_of, total_of
from sentinel.core.promql.errors import EvaluationError
from sentinel.core.promql.frame import (
    Context,
    Frame,
    KnownShape,
    Remembered,
    Scalar,
    Shape,
    Vector,
)
from sentinel.core.promql.functions import decimal_text, is_label_name
from sentinel.core.promql.nodes import Aggregate

MAX_INT = 2**63


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of a shape, and the places of their members."""

    shape: Shape
    members: tuple[tuple[int, ...], ...]


def _grouping(node: Aggregate) -> Callable[[Labels], Labels]:
    if node.by:
        return lambda labels: only(labels, *node.labels)
    return lambda labels: without(labels, NAME, *node.labels)


def _groups(node: Aggregate) -> Remembered[Groups]:
    key = _grouping(node)

    def work(shape: Shape) -> Groups:
        places: dict[Labels, list[int]] = {}
        for place, labels in enumerate(shape.labels):
            places.setdefault(key(labels), []).append(place)
        return Groups(Shape(tuple(places)), tuple(tuple(each) for each in places.values()))

    return Remembered(work)


def _greatest(values: Sequence[float]) -> float:
    real = [value for value in values if not math.isnan(value)]
    return max(real) if real else NAN


def _least(values: Sequence[float]) -> float:
    real = [value for value in values if not math.isnan(value)]
    return min(real) if real else NAN


def _variance(values: Sequence[float]) -> float:
    if any(math.isinf(value) or math.isnan(value) for value in values):
        return NAN
    mean = squares = 0.0
    for count, value in enumerate(values, 1):
        delta = value - mean
        mean += delta / count
        squares += delta * (value - mean)
    return squares / len(values)


def _deviation(values: Sequence[float]) -> float:
    return math.sqrt(_variance(values))


SIMPLE: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": total_of,
    "avg": mean_of,
    "min": _least,
    "max": _greatest,
    "count": lambda values: float(len(values)),
    "group": lambda _: 1.0,
    "stddev": _deviation,
    "stdvar": _variance,
}


def aggregation(node: Aggregate, inner: Vector, param: Scalar | None) -> Vector:
    """Compile every aggregation but `count_values`. `param` is `k` or the quantile."""
    if param is None:
        return _reduced(node, inner, lambda _: SIMPLE[node.op])
    if node.op == "quantile":

        def reduction(ctx: Context) -> Callable[[Sequence[float]], float]:
            q = param(ctx)
            return lambda values: quantile_of(q, values)

        return _reduced(node, inner, reduction)
    return _chosen(node, inner, param)


def _reduced(
    node: Aggregate,
    inner: Vector,
    reduction: Callable[[Context], Callable[[Sequence[float]], float]],
) -> Vector:
    groups = _groups(node)

    def evaluate(ctx: Context) -> Frame:
        reduce = reduction(ctx)
        frame = inner(ctx)
        found = groups(frame.shape)
        values = frame.values
        reduced: list[float | None] = []
        for members in found.members:
            present = [value for place in members if (value := values[place]) is not None]
            reduced.append(reduce(present) if present else None)
        return Frame(found.shape, reduced)

    return evaluate


def _chosen(node: Aggregate, inner: Vector, param: Scalar) -> Vector:
    """topk, bottomk and limitk: `k` elements of each group as they are."""
    groups = _groups(node)
    choose = CHOICES[node.op]
    shape_of = KnownShape()

    def evaluate(ctx: Context) -> Frame:
        k = _count(param(ctx))
        frame = inner(ctx)
        values = frame.values
        chosen: list[int] = []
        if k > 0:
            for members in groups(frame.shape).members:
                present = [(v, place) for place in members if (v := values[place]) is not None]
                chosen += [place for _, place in choose(k, present)]
        return _picked(frame, chosen, shape_of)

    return evaluate


def _count(k: float) -> int:
    if math.isnan(k) or not -MAX_INT <= k < MAX_INT:
        raise EvaluationError(f"scalar value {k} overflows int64")
    return int(k)


def _picked(frame: Frame, places: Sequence[int], shape_of: KnownShape) -> Frame:
    """Those elements, in that order."""
    labels = frame.shape.labels
    return Frame(
        shape_of(tuple([labels[place] for place in places])),
        [frame.values[place] for place in places],
    )


def _down(item: tuple[float, int]) -> float:
    return math.inf if math.isnan(item[0]) else -item[0]


def _up(item: tuple[float, int]) -> float:
    return math.inf if math.isnan(item[0]) else item[0]


def _topk(k: int, present: list[tuple[float, int]]) -> list[tuple[float, int]]:
    present.sort(key=lambda item: math.isnan(item[0]))
    return heapq.nsmallest(k, present, key=_down)


def _bottomk(k: int, present: list[tuple[float, int]]) -> list[tuple[float, int]]:
    present.sort(key=lambda item: math.isnan(item[0]))
    return heapq.nsmallest(k, present, key=_up)


CHOICES: dict[str, Callable[[int, list[tuple[float, int]]], Sequence[tuple[float, int]]]] = {
    "topk": _topk,
    "bottomk": _bottomk,
    "limitk": lambda k, present: present[:k],
}


def count_values(node: Aggregate, inner: Vector, label: str, *, legacy: bool) -> Vector:
    """How many elements have each value; the value becomes a label."""
    key = _grouping(node)
    shape_of = KnownShape()

    def evaluate(ctx: Context) -> Frame:
        if not is_label_name(label, legacy=legacy):
            raise EvaluationError(f'invalid label name "{label}"')
        counts: dict[Labels, int] = {}
        for labels, value in inner(ctx).samples():
            counted = labels_of({**dict(labels), label: decimal_text(value)})
            if node.by:
                group = labels_of({**dict(key(labels)), label: decimal_text(value)})
            else:
                group = key(counted)
            counts[group] = counts.get(group, 0) + 1
        return Frame(shape_of(tuple(counts)), [float(count) for count in counts.values()])

    return evaluate


def sorted_by_value(inner: Vector, *, descending: bool) -> Vector:
    """What sort and sort_desc do: NaN last in both."""
    key = _down if descending else _up
    shape_of = KnownShape()

    def evaluate(ctx: Context) -> Frame:
        frame = inner(ctx)
        present = [(value, place) for place, value in enumerate(frame.values) if value is not None]
        present.sort(key=lambda item: (math.isnan(item[0]), key(item)))
        return _picked(frame, [place for _, place in present], shape_of)

    return evaluate


def sorted_by(inner: Vector, key: Callable[[Labels], object], *, descending: bool) -> Vector:
    """What sort_by_label and sort_by_label_desc do."""
    shape_of = KnownShape()

    def evaluate(ctx: Context) -> Frame:
        frame = inner(ctx)
        keyed = [
            (key(frame.shape.labels[place]), place)
            for place, value in enumerate(frame.values)
            if value is not None
        ]
        keyed.sort(key=itemgetter(0), reverse=descending)
        return _picked(frame, [place for _, place in keyed], shape_of)

    return evaluate
