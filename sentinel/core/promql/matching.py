"""Operators between two vectors: which elements belong together, and what that yields.

Pairs are found from labels alone and remembered per pair of shapes. Whether a match is
ambiguous depends on the moment, since only present elements can collide: those checks are
made at each evaluation, but only for the few signatures that could.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sentinel.core.model.labels import NAME, Labels, labels_of, only, value_of, without
from sentinel.core.promql.binary import COMPARISON, operation
from sentinel.core.promql.errors import EvaluationError
from sentinel.core.promql.frame import Context, Frame, Remembered, Shape, Vector, checked
from sentinel.core.promql.nodes import Binary, Matching

MAX_PAIRS = 200_000

Values = Sequence[float | None]
Places = tuple[int, ...]


def signature(matching: Matching) -> Callable[[Labels], Labels]:
    """What two elements must have in common to be a pair."""
    if matching.on:
        return lambda labels: only(labels, *matching.labels)
    return lambda labels: without(labels, NAME, *matching.labels)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two vectors brought together; only the `many` side may have several to one.

    The shape lists the pairs, then the lonely elements of both sides (if those are filled).
    """

    shape: Shape
    pairs: tuple[tuple[int, int], ...]  # places: many, one
    lonely_many: tuple[tuple[int, Places], ...]  # a place, and its partners' places
    lonely_one: tuple[tuple[int, Places], ...]
    rivals: tuple[Places, ...]  # places of the one side with equal signatures
    clashes: tuple[Places, ...]  # places of the shape of which one at most may be present


class _Matcher:
    """Finds the pairs of two shapes, for one operator."""

    def __init__(self, node: Binary) -> None:
        self.matching = node.matching
        self.key = signature(node.matching)
        self.keeps_name = node.op in COMPARISON and not node.returns_bool

    def __call__(self, many: Shape, one: Shape) -> Pairs:
        many_of = _by_key(many, self.key)
        one_of = _by_key(one, self.key)
        results: list[tuple[Labels, Labels]] = []  # signature, labels
        pairs: list[tuple[int, int]] = []
        for m, labels in enumerate(many.labels):
            key = self.key(labels)
            if len(pairs) > MAX_PAIRS:
                raise EvaluationError("too many pairs: match on more labels")
            for o in one_of.get(key, ()):
                pairs.append((m, o))
                results.append((key, self._result(labels, one.labels[o])))
        lonely_many: list[tuple[int, Places]] = []
        if self.matching.fill_right is not None:
            for m, labels in enumerate(many.labels):
                key = self.key(labels)
                lonely_many.append((m, one_of.get(key, ())))
                results.append((key, self._result(labels, key)))
        lonely_one: list[tuple[int, Places]] = []
        if self.matching.fill_left is not None:
            for o, labels in enumerate(one.labels):
                key = self.key(labels)
                lonely_one.append((o, many_of.get(key, ())))
                results.append((key, self._result(key, labels)))
        return Pairs(
            Shape(tuple(labels for _, labels in results)),
            tuple(pairs),
            tuple(lonely_many),
            tuple(lonely_one),
            tuple(places for places in one_of.values() if len(places) > 1),
            self._clashes(results),
        )

    def _result(self, many: Labels, one: Labels) -> Labels:
        labels = many if self.keeps_name else without(many, NAME)
        matching = self.matching
        if matching.many == "none":
            keep = only if matching.on else without
            labels = keep(labels, *matching.labels)
        if matching.include:
            taken = {name: value_of(one, name) for name in matching.include}
            labels = labels_of({**dict(labels), **taken})
        return labels

    def _clashes(self, results: Sequence[tuple[Labels, Labels]]) -> tuple[Places, ...]:
        alone = self.matching.many == "none"
        places: dict[object, list[int]] = {}
        for place, (key, labels) in enumerate(results):
            places.setdefault(key if alone else (key, labels), []).append(place)
        return tuple(tuple(same) for same in places.values() if len(same) > 1)


def _by_key(shape: Shape, key: Callable[[Labels], Labels]) -> dict[Labels, Places]:
    places: dict[Labels, list[int]] = {}
    for place, labels in enumerate(shape.labels):
        places.setdefault(key(labels), []).append(place)
    return {key: tuple(found) for key, found in places.items()}


def between_vectors(node: Binary, left: Vector, right: Vector) -> Vector:
    """Arithmetic or comparison of each element with its partner."""
    matcher = _Matcher(node)
    remembered = Remembered(matcher)
    work = operation(node.op, returns_bool=node.returns_bool)
    many_is_right = node.matching.many == "right"
    # Upstream turns group_right around before it fills, so left always means the many side.
    fill_many, fill_one = node.matching.fill_left, node.matching.fill_right
    fills = fill_many is not None or fill_one is not None

    def operate(many: float | None, one: float | None) -> float | None:
        if many is None or one is None:
            return None
        return work(one, many) if many_is_right else work(many, one)

    def evaluate(ctx: Context) -> Frame:
        first, second = left(ctx), right(ctx)
        many, one = (second, first) if many_is_right else (first, second)
        found = remembered(many.shape, one.shape)
        if not fills and (_is_empty(many.values) or _is_empty(one.values)):
            return Frame(found.shape, [None] * len(found.shape.labels))
        _refuse_rivals(found, one.values)
        m, o = many.values, one.values
        values = [operate(m[a], o[b]) for a, b in found.pairs]
        values += [
            operate(m[a], fill_one) if _is_lonely(partners, o) else None
            for a, partners in found.lonely_many
        ]
        values += [
            operate(fill_many, o[b]) if _is_lonely(partners, m) else None
            for b, partners in found.lonely_one
        ]
        _refuse_clashes(found, values, explicit=node.matching.many != "none")
        return checked(Frame(found.shape, values))

    return evaluate


def _is_empty(values: Values) -> bool:
    return all(value is None for value in values)


def _is_lonely(partners: Places, values: Values) -> bool:
    return all(values[place] is None for place in partners)


def _present(places: Places, values: Values) -> int:
    return sum(values[place] is not None for place in places)


def _refuse_rivals(found: Pairs, values: Values) -> None:
    if any(_present(places, values) > 1 for places in found.rivals):
        raise EvaluationError(
            "found duplicate series for a match group on one side of the operation; "
            "many-to-many matching not allowed: matching labels must be unique on one side"
        )


def _refuse_clashes(found: Pairs, values: Values, *, explicit: bool) -> None:
    if any(_present(places, values) > 1 for places in found.clashes):
        raise EvaluationError(
            "multiple matches for labels: grouping labels must ensure unique matches"
            if explicit
            else "multiple matches for labels: many-to-one matching must be explicit "
            "(group_left/group_right)"
        )
