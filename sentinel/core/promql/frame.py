"""What evaluators pass to one another: a shape, which is remembered, and the values of now.

A shape lists every label set an expression can have while the store's series are the same;
`None` stands for an element that is absent at this instant. All label work (grouping,
matching, dropping names) depends on shapes alone and is done once per shape, which is what
makes evaluation cheap. So a new `Shape` per evaluation, where an old one would do, is a
performance bug that no test of results will show.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from sentinel.core.model.labels import NAME, Labels, without
from sentinel.core.model.series import Series, Store
from sentinel.core.promql.errors import EvaluationError

T = TypeVar("T")

WORK_LIMIT = 10_000_000  # units of about half a microsecond; of a whole range query
INSTANT_LIMIT = 2_000_000  # of one instant, as a rule asks for
SAMPLES_A_UNIT = 16


class Sample(NamedTuple):
    """One element of a result."""

    labels: Labels
    value: float


class RangeSample(NamedTuple):
    """One series of a result over time; points are (milliseconds, value)."""

    labels: Labels
    points: tuple[tuple[int, float], ...]


Value = float | str | list[Sample] | list[RangeSample]


class Shape:
    """The label sets a vector may have, in order."""

    __slots__ = ("labels", "repeated")

    def __init__(self, labels: tuple[Labels, ...]) -> None:
        self.labels = labels
        self.repeated = _repeated(labels)  # places of label sets that occur more than once


def _repeated(labels: Sequence[Labels]) -> tuple[tuple[int, ...], ...]:
    if len(set(labels)) == len(labels):
        return ()
    places: dict[Labels, list[int]] = {}
    for place, each in enumerate(labels):
        places.setdefault(each, []).append(place)
    return tuple(tuple(same) for same in places.values() if len(same) > 1)


class Frame(NamedTuple):
    """A vector at one instant."""

    shape: Shape
    values: list[float | None]

    def samples(self) -> list[Sample]:
        return [
            Sample(labels, value)
            for labels, value in zip(self.shape.labels, self.values, strict=True)
            if value is not None
        ]


def checked(frame: Frame) -> Frame:
    """Refuse a vector that holds one label set twice."""
    for same in frame.shape.repeated:
        if sum(frame.values[place] is not None for place in same) > 1:
            raise EvaluationError("vector cannot contain metrics with the same labelset")
    return frame


@dataclass(slots=True)
class Budget:
    """How much work one evaluation may still do. A unit is one series visited."""

    left: int = WORK_LIMIT

    def spend(self, series: int, samples: int = 0) -> None:
        self.left -= series + samples // SAMPLES_A_UNIT
        if self.left < 0:
            raise EvaluationError("query processing would load too many samples")


@dataclass(frozen=True, slots=True)
class Context:
    """When, and over what, an expression is evaluated."""

    store: Store
    at: int
    lookback: int
    default_step: int
    closed: bool  # windows include their left edge (Prometheus 2)
    start: int  # of the whole query; `at` itself for an instant
    end: int
    step: int
    budget: Budget

    def moved(self, at: int) -> "Context":
        return Context(
            self.store,
            at,
            self.lookback,
            self.default_step,
            self.closed,
            self.start,
            self.end,
            self.step,
            self.budget,
        )


class Window:
    """The samples of one series in one time range.

    Sample `k`, from `i` to before `j`, is `vs[k]` at `ts[k + shift]`. A window is reused for
    the next series: whoever keeps samples must copy them.
    """

    __slots__ = ("at", "hi", "i", "j", "lo", "series", "shift", "ts", "vs")

    ts: Sequence[int]
    vs: Sequence[float]
    i: int
    j: int
    shift: int
    series: Series | None

    def __init__(self, at: int, lo: int, hi: int) -> None:
        self.at = at  # the evaluation's instant
        self.lo = lo
        self.hi = hi

    def values(self) -> Sequence[float]:
        return self.vs[self.i : self.j]

    def times(self) -> Sequence[int]:
        return self.ts[self.i + self.shift : self.j + self.shift]

    def drops(self) -> Sequence[int]:
        """The places after `i` whose value is below the one before."""
        if self.series is not None:
            return self.series.drops(self.i, self.j)
        vs = self.vs
        return [k for k in range(self.i + 1, self.j) if vs[k] < vs[k - 1]]


Vector = Callable[[Context], Frame]
Scalar = Callable[[Context], float]


class Matrix(NamedTuple):
    """A range vector: its shape now, and a way to visit the windows that hold samples."""

    shape: Shape
    windows: Iterable[tuple[int, Window]]


Ranges = Callable[[Context], Matrix]


class Remembered(Generic[T]):
    """The last answer of a pure function of shapes."""

    __slots__ = ("_answer", "_key", "_work")

    def __init__(self, work: Callable[..., T]) -> None:
        self._work = work
        self._key: tuple[Shape, ...] = ()
        self._answer: T

    def __call__(self, *shapes: Shape) -> T:
        if self._key != shapes:  # a shape equals only itself
            self._answer = self._work(*shapes)
            self._key = shapes
        return self._answer


class KnownShape:
    """The last shape again, if the label sets are the same."""

    __slots__ = ("_shape",)

    def __init__(self) -> None:
        self._shape = Shape(())

    def __call__(self, labels: tuple[Labels, ...]) -> Shape:
        if labels != self._shape.labels:
            self._shape = Shape(labels)
        return self._shape


def nameless(shape: Shape) -> Shape:
    """The same label sets without the metric name."""
    return Shape(tuple(without(labels, NAME) for labels in shape.labels))
