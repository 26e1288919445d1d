"""Which series a selector means, without evaluating it: what the API's `series` answers."""

from dataclasses import dataclass

from sentinel.core.model.labels import Labels, Matcher, value_of
from sentinel.core.model.series import Store
from sentinel.core.promql.errors import ExpressionError
from sentinel.core.promql.frame import Budget, Context
from sentinel.core.promql.nodes import Range, Selector, When
from sentinel.core.promql.parse import parse
from sentinel.core.promql.select import ranges


@dataclass(frozen=True, slots=True)
class Selection:
    """What a plain selector asks for: the series of one name (None: any) that match."""

    name: str | None
    matchers: tuple[Matcher, ...]

    def matches(self, labels: Labels) -> bool:
        """Whether series `labels`, if of that name, are meant."""
        return all(m.matches(value_of(labels, m.name)) for m in self.matchers)


def selection(text: str) -> Selection:
    """Raises `ExpressionError` if `text` is no plain selector."""
    node = _selector(text)
    return Selection(node.name, node.matchers)


def matching_series(text: str, store: Store, start_ms: int, end_ms: int) -> list[Labels]:
    """The label sets that `text` selects and that have a sample from start to end.

    Raises `ExpressionError` if `text` is no plain selector.
    """
    node = _selector(text)
    ctx = Context(store, end_ms, 0, 0, True, start_ms, end_ms, 0, Budget())
    matrix = ranges(Range(node, max(end_ms - start_ms, 0)))(ctx)
    return sorted(matrix.shape.labels[place] for place, _ in matrix.windows)


def _selector(text: str) -> Selector:
    node = parse(text, lambda call: f"{call.function}() has no place in a selector")
    if not isinstance(node, Selector) or node.when != When():
        raise ExpressionError("not a plain series selector")
    return node
