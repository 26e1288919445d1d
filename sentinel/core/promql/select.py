"""Selectors and subqueries: from the store's columns to vectors and windows.

Which series a selector means is decided anew only when series of that name come or go; an
evaluation then only bisects each source's column of times. A sample counts until its series
went stale, and a window's left edge is open (closed as in Prometheus 2 if the context says
so).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sentinel.core.model.labels import NAME, Labels, value_of
from sentinel.core.model.series import Series, Source, Store
from sentinel.core.promql.frame import (
    Context,
    Frame,
    KnownShape,
    Matrix,
    Ranges,
    Shape,
    Vector,
    Window,
)
from sentinel.core.promql.nodes import Node, Range, Selector, Subquery, When, children

STEP_COST = 32  # of a subquery's step, in units of work
NODE_COST = 24  # of each node that a step evaluates

Found = tuple[int, Series]  # place in the shape, series


@dataclass(slots=True)
class Plan:
    """The series a selector means, sorted by how they are read."""

    shape: Shape
    shared: list[tuple[Source, list[Found]]] = field(default_factory=list)
    own: list[Found] = field(default_factory=list)
    merged: list[tuple[int, list[Series]]] = field(default_factory=list)


class Planner:
    """Remembers the plan of one selector until its series come or go."""

    __slots__ = ("_plan", "_revision", "_selector", "_store")

    def __init__(self, selector: Selector) -> None:
        self._selector = selector
        self._store: Store | None = None
        self._revision = -1
        self._plan = Plan(Shape(()))

    def plan(self, store: Store) -> Plan:
        revision = store.revision(self._selector.name)
        if store is not self._store or revision != self._revision:
            self._plan = _plan(self._selector, store)
            self._store, self._revision = store, revision
        return self._plan


def _plan(selector: Selector, store: Store) -> Plan:
    candidates = store.every() if selector.name is None else store.named(selector.name)
    by_labels: dict[Labels, list[Series]] = {}
    for series in candidates:
        if all(m.matches(value_of(series.labels, m.name)) for m in selector.matchers):
            by_labels.setdefault(series.labels, []).append(series)
    plan = Plan(Shape(tuple(by_labels)))
    shared: dict[int, tuple[Source, list[Found]]] = {}
    for place, same in enumerate(by_labels.values()):
        first = same[0]
        if len(same) > 1:
            plan.merged.append((place, same))
        elif first.own is not None:
            plan.own.append((place, first))
        else:
            shared.setdefault(id(first.source), (first.source, []))[1].append((place, first))
    plan.shared = list(shared.values())
    return plan


def base_time(when: When, ctx: Context) -> int:
    at = ctx.at
    if when.at == "start":
        at = ctx.start
    elif when.at == "end":
        at = ctx.end
    elif when.at is not None:
        at = when.at
    return at - when.offset_ms


def _latest(series: Series, after: int, until: int) -> int:
    """Place of the newest sample in `(after, until]` that is not stale then, or -1."""
    times = series.times
    end = len(times) if series.own is not None else series.first + len(series.values)
    place = bisect_right(times, until, series.first, end) - 1
    if place < series.first or times[place] <= after or series.ends_between(times[place], until):
        return -1
    if series.own is None and place == end - 1 and end < len(times) and times[end] <= until:
        return -1
    return place - series.first


def instant(selector: Selector) -> Vector:
    """The newest value of each series within the look-back."""
    planner = Planner(selector)
    when = selector.when

    def evaluate(ctx: Context) -> Frame:
        plan = planner.plan(ctx.store)
        until = base_time(when, ctx)
        after = until - ctx.lookback - ctx.closed
        values: list[float | None] = [None] * len(plan.shape.labels)
        ctx.budget.spend(len(values))
        for source, members in plan.shared:
            last = bisect_right(source.times, until) - 1
            if last < 0 or source.times[last] <= after or source.failed_in(last, until):
                continue
            for place, series in members:
                k = last - series.first
                column = series.values
                if 0 <= k < len(column):
                    values[place] = column[k]
        for place, series in plan.own:
            k = _latest(series, after, until)
            if k >= 0:
                values[place] = series.values[k]
        for place, same in plan.merged:
            values[place] = _newest(same, after, until)[1]
        return Frame(plan.shape, values)

    return evaluate


def instant_times(selector: Selector) -> Vector:
    """When the newest sample of each series was taken, in seconds."""
    planner = Planner(selector)

    def evaluate(ctx: Context) -> Frame:
        plan = planner.plan(ctx.store)
        until = base_time(selector.when, ctx)
        after = until - ctx.lookback - ctx.closed
        values: list[float | None] = [None] * len(plan.shape.labels)
        groups = [(place, [series]) for _, members in plan.shared for place, series in members]
        groups += [(place, [series]) for place, series in plan.own]
        for place, same in groups + plan.merged:
            at, value = _newest(same, after, until)
            values[place] = None if value is None else at / 1000
        return Frame(plan.shape, values)

    return evaluate


def _newest(same: Sequence[Series], after: int, until: int) -> tuple[int, float | None]:
    newest: tuple[int, float | None] = (after, None)
    for series in same:
        k = _latest(series, after, until)
        if k >= 0 and series.times[k + series.first] > newest[0]:
            newest = (series.times[k + series.first], series.values[k])
    return newest


def ranges(node: Range) -> Ranges:
    """Every sample of each series within the range; stale or not does not matter here."""
    planner = Planner(node.selector)
    when = node.selector.when

    def evaluate(ctx: Context) -> Matrix:
        plan = planner.plan(ctx.store)
        hi = base_time(when, ctx)
        return Matrix(plan.shape, _windows(plan, hi - node.range_ms, hi, ctx))

    return evaluate


def _windows(plan: Plan, lo: int, hi: int, ctx: Context) -> Iterator[tuple[int, Window]]:
    window = Window(ctx.at, lo, hi)
    after = lo - ctx.closed
    for source, members in plan.shared:
        ts = window.ts = source.times
        from_, to = bisect_right(ts, after), bisect_right(ts, hi)
        if from_ == to:
            continue
        ctx.budget.spend(len(members), (to - from_) * len(members))
        for place, series in members:
            first = series.first
            vs = series.values
            i = from_ - first if from_ > first else 0
            j = to - first
            j = min(j, len(vs))
            if i < j:
                window.vs, window.i, window.j, window.shift = vs, i, j, first
                window.series = series
                yield place, window
    for place, series in plan.own:
        ts = window.ts = series.times
        window.vs, window.shift, window.series = series.values, 0, series
        window.i, window.j = bisect_right(ts, after), bisect_right(ts, hi)
        ctx.budget.spend(1, window.j - window.i)
        if window.i < window.j:
            yield place, window
    for place, same in plan.merged:
        if _merge(window, same, after, hi):
            ctx.budget.spend(len(same), window.j)
            yield place, window


def _merge(window: Window, same: Sequence[Series], after: int, hi: int) -> bool:
    points: dict[int, float] = {}
    for series in same:
        times = series.times[series.first : series.first + len(series.values)]
        i, j = bisect_right(times, after), bisect_right(times, hi)
        points.update(zip(times[i:j], series.values[i:j], strict=True))
    fill(window, sorted(points.items()))
    return bool(points)


def fill(window: Window, points: Sequence[tuple[int, float]]) -> None:
    """Make a window of points that are in no column."""
    window.ts = [at for at, _ in points]
    window.vs = [value for _, value in points]
    window.i, window.j, window.shift, window.series = 0, len(points), 0, None


def subquery(node: Subquery, inner: Vector) -> Ranges:
    """Evaluate `inner` at every multiple of the step within the range."""
    shape_of = KnownShape()
    cost = STEP_COST + NODE_COST * _nodes(node.inner)

    def evaluate(ctx: Context) -> Matrix:
        hi = base_time(node.when, ctx)
        lo = hi - node.range_ms
        step = node.step_ms or ctx.default_step
        at = step * (lo // step if lo >= 0 else -(-lo // step))  # as Go divides: towards zero
        if at < lo or (at == lo and not ctx.closed):
            at += step
        points: dict[Labels, list[tuple[int, float]]] = {}
        ctx.budget.spend(cost * max(0, (hi - at) // step + 1))
        for now in range(at, hi + 1, step):
            frame = inner(ctx.moved(now))
            for labels, value in zip(frame.shape.labels, frame.values, strict=True):
                if value is not None:
                    points.setdefault(labels, []).append((now, value))
        return Matrix(shape_of(tuple(points)), _filled(points, Window(ctx.at, lo, hi)))

    return evaluate


def _nodes(node: Node) -> int:
    """How many nodes one evaluation visits; subqueries pay for their own."""
    if isinstance(node, Subquery):
        return 1
    return 1 + sum(map(_nodes, children(node)))


def _filled(
    points: dict[Labels, list[tuple[int, float]]], window: Window
) -> Iterator[tuple[int, Window]]:
    for place, taken in enumerate(points.values()):
        fill(window, taken)
        yield place, window


def fixed_labels(selector: Selector) -> Labels:
    """The labels `absent` gives to a vector that has no elements."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for matcher in selector.matchers:
        if matcher.name == NAME:
            continue
        if matcher.op == "=" and matcher.name not in seen:
            found[matcher.name] = matcher.value
            seen.add(matcher.name)
        else:
            found.pop(matcher.name, None)
    return tuple(sorted(pair for pair in found.items() if pair[1]))
