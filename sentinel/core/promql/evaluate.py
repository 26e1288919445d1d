"""From a tree to closures, once; and the face of the engine, `compile_expression`.

Each node becomes a function of a `Context`. The closures remember label work, so one
`Expression` belongs to one thread at a time. What cannot be evaluated is refused while
parsing (`calls.refusal`), so nothing here meets a node it does not know.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

from sentinel.core.model.series import Store
from sentinel.core.promql import aggregate, binary, calls
from sentinel.core.promql.errors import EvaluationError, ExpressionError
from sentinel.core.promql.extent import extent_of
from sentinel.core.promql.frame import (
    INSTANT_LIMIT,
    Budget,
    Context,
    Ranges,
    RangeSample,
    Scalar,
    Value,
    Vector,
)
from sentinel.core.promql.matching import between_vectors
from sentinel.core.promql.nodes import (
    Aggregate,
    Binary,
    Call,
    Negate,
    Node,
    Number,
    Range,
    Selector,
    Subquery,
    Text,
    Type,
    type_of,
)
from sentinel.core.promql.parse import parse, pretty
from sentinel.core.promql.select import instant, ranges, subquery
from sentinel.core.promql.sets import SETS, set_operation
from sentinel.core.promql.sure import needs_series

LOOKBACK_MS = 300_000
STEP_MS = 60_000

Compat = Literal[2, 3]


def compile_expression(text: str, *, compat: Compat = 3) -> "Expression":
    """Read `text` once, to be evaluated many times. Raises `ExpressionError`.

    `compat=2` is Prometheus 2: windows include their left edge.
    """
    refuse = partial(calls.refusal, legacy=compat == 2)
    try:
        return Expression(text, parse(text, refuse), compat)
    except RecursionError:
        raise ExpressionError("expression is nested too deeply") from None


def format_expression(text: str) -> str:
    """`text` as Prometheus lays it out. Raises `ExpressionError`."""
    return pretty(text, partial(calls.refusal, legacy=False))


class Expression:
    """A compiled expression."""

    def __init__(self, text: str, node: Node, compat: Compat) -> None:
        self.text = text
        self.type: Type = type_of(node)
        self._closed = compat == 2
        self._evaluate = _Compiler(legacy=self._closed).any(node)
        self._extent = extent_of(node, LOOKBACK_MS)
        self._needs_series = self.type == "vector" and needs_series(node)

    @property
    def metric_names(self) -> frozenset[str]:
        """The metrics it reads by name."""
        return self._extent.names

    @property
    def needs_all(self) -> bool:
        """Whether some selector has no fixed name."""
        return self._extent.nameless

    @property
    def reach_ms(self) -> int:
        """How far back it reads, with offsets, subqueries and the look-back."""
        return self._extent.reach_ms

    def at(
        self,
        store: Store,
        at_ms: int,
        *,
        lookback_ms: int = LOOKBACK_MS,
        default_step_ms: int = STEP_MS,
    ) -> Value:
        """Evaluate at one instant. Raises `EvaluationError`."""
        bounds = (at_ms, at_ms, 0)
        return self.within(
            store,
            at_ms,
            bounds,
            lookback_ms=lookback_ms,
            default_step_ms=default_step_ms,
            budget=Budget(INSTANT_LIMIT),
        )

    def within(
        self,
        store: Store,
        at_ms: int,
        bounds: tuple[int, int, int],
        *,
        lookback_ms: int = LOOKBACK_MS,
        default_step_ms: int = STEP_MS,
        budget: Budget | None = None,
    ) -> Value:
        """Evaluate one step of a query with these `bounds`: start, end, step."""
        if self._needs_series and not any(map(store.named, self._extent.names)):
            return []
        ctx = Context(
            store, at_ms, lookback_ms, default_step_ms, self._closed, *bounds, budget or Budget()
        )
        try:
            return self._evaluate(ctx)
        except RecursionError:
            raise EvaluationError("expression is nested too deeply") from None


class _Compiler:
    def __init__(self, *, legacy: bool) -> None:
        self.legacy = legacy

    def any(self, node: Node) -> Callable[[Context], Value]:
        match type_of(node):
            case "vector":
                vector = self.vector(node)
                return lambda ctx: vector(ctx).samples()
            case "scalar":
                return self.scalar(node)
            case "matrix":
                return _whole(self.ranges(node))
            case "string":
                assert isinstance(node, Text)
                value = node.value
                return lambda _: value

    def scalar(self, node: Node) -> Scalar:
        match node:
            case Number():
                value = node.value
                return lambda _: value
            case Negate():
                inner = self.scalar(node.inner)
                return lambda ctx: -inner(ctx)
            case Binary():
                return binary.scalars(node, self.scalar(node.left), self.scalar(node.right))
            case Call():
                return calls.scalar_call(node, self)
            case _:
                raise AssertionError(node)

    def vector(self, node: Node) -> Vector:
        match node:
            case Selector():
                return instant(node)
            case Negate():
                return calls.mapped(self.vector(node.inner), lambda value: -value, ())
            case Call():
                return calls.vector_call(node, self)
            case Aggregate():
                return self._aggregate(node)
            case Binary():
                return self._binary(node)
            case _:
                raise AssertionError(node)

    def ranges(self, node: Node) -> Ranges:
        match node:
            case Range():
                return ranges(node)
            case Subquery():
                return subquery(node, self.vector_of(node.inner))
            case _:
                raise AssertionError(node)

    def vector_of(self, node: Node) -> Vector:
        """A vector also of a scalar, as inside a subquery."""
        if type_of(node) == "scalar":
            return calls.alone(self.scalar(node))
        return self.vector(node)

    def _aggregate(self, node: Aggregate) -> Vector:
        inner = self.vector(node.inner)
        if node.op == "count_values":
            assert isinstance(node.param, Text)
            return aggregate.count_values(node, inner, node.param.value, legacy=self.legacy)
        param = None if node.param is None else self.scalar(node.param)
        return aggregate.aggregation(node, inner, param)

    def _binary(self, node: Binary) -> Vector:
        if type_of(node.left) == "scalar":
            vector, scalar = self.vector(node.right), self.scalar(node.left)
            return binary.with_scalar(node, vector, scalar, scalar_is_left=True)
        if type_of(node.right) == "scalar":
            vector, scalar = self.vector(node.left), self.scalar(node.right)
            return binary.with_scalar(node, vector, scalar, scalar_is_left=False)
        between = set_operation if node.op in SETS else between_vectors
        return between(node, self.vector(node.left), self.vector(node.right))


def _whole(matrix_of: Ranges) -> Callable[[Context], Value]:
    def evaluate(ctx: Context) -> Value:
        matrix = matrix_of(ctx)
        return [
            RangeSample(
                matrix.shape.labels[place],
                tuple(zip(window.times(), window.values(), strict=True)),
            )
            for place, window in matrix.windows
        ]

    return evaluate
