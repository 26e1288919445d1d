"""and, or, unless: elements of one vector, by whether the other has partners for them.

An element's possible partners are known from labels alone and remembered per pair of
shapes; whether one is present is a question of the moment.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentinel.core.model.labels import Labels
from sentinel.core.promql.frame import Context, Frame, Remembered, Shape, Vector, checked
from sentinel.core.promql.matching import signature
from sentinel.core.promql.nodes import Binary
from sentinel.core.promql.sure import cannot_fail

SETS = ("and", "or", "unless")


@dataclass(frozen=True, slots=True)
class Partners:
    """For each place on one side, the places on the other with the same signature."""

    of_left: tuple[tuple[int, ...], ...]
    of_right: tuple[tuple[int, ...], ...]
    both: Shape  # the elements of the left, then those of the right


def _partners(key: Callable[[Labels], Labels]) -> Callable[[Shape, Shape], Partners]:
    def work(left: Shape, right: Shape) -> Partners:
        left_keys = [key(labels) for labels in left.labels]
        right_keys = [key(labels) for labels in right.labels]
        return Partners(
            _same(left_keys, right_keys),
            _same(right_keys, left_keys),
            Shape((*left.labels, *right.labels)),
        )

    return work


def _same(keys: Sequence[Labels], others: Sequence[Labels]) -> tuple[tuple[int, ...], ...]:
    places: dict[Labels, list[int]] = {}
    for place, key in enumerate(others):
        places.setdefault(key, []).append(place)
    found = {key: tuple(same) for key, same in places.items()}
    return tuple(found.get(key, ()) for key in keys)


def set_operation(node: Binary, left: Vector, right: Vector) -> Vector:
    partners = Remembered(_partners(signature(node.matching)))
    may_end_early = node.op != "or" and cannot_fail(node.right)

    def evaluate(ctx: Context) -> Frame:
        mine = left(ctx)
        if may_end_early and all(value is None for value in mine.values):
            return mine
        theirs = right(ctx)
        known = partners(mine.shape, theirs.shape)
        if node.op == "or":
            rest = _kept(theirs.values, known.of_right, mine.values, want=False)
            return checked(Frame(known.both, [*mine.values, *rest]))
        want = node.op == "and"
        return Frame(mine.shape, _kept(mine.values, known.of_left, theirs.values, want=want))

    return evaluate


def _kept(
    values: Sequence[float | None],
    partners: Sequence[Sequence[int]],
    others: Sequence[float | None],
    *,
    want: bool,
) -> list[float | None]:
    """The values that have (or have not) a present partner."""
    return [
        value if any(others[p] is not None for p in places) is want else None
        for value, places in zip(values, partners, strict=True)
    ]
