"""Range queries: an instant query at every step, gathered by series.

`start()` and `end()` mean the whole query, not the step. One budget covers all steps.
"""

from sentinel.core.model.labels import Labels
from sentinel.core.model.series import Store
from sentinel.core.promql.errors import EvaluationError
from sentinel.core.promql.evaluate import LOOKBACK_MS, STEP_MS, Expression
from sentinel.core.promql.frame import Budget, RangeSample, Sample

MAX_STEPS = 11_000


def range_query(  # noqa: PLR0913 - what a query depends on
    expression: Expression,
    store: Store,
    start_ms: int,
    end_ms: int,
    step_ms: int,
    *,
    lookback_ms: int = LOOKBACK_MS,
    default_step_ms: int = STEP_MS,
) -> list[RangeSample]:
    """Evaluate at `start_ms`, and every `step_ms` after it up to `end_ms`.

    Raises `EvaluationError`.
    """
    if expression.type not in ("vector", "scalar"):
        raise EvaluationError(
            f"invalid expression type {expression.type} for range query, must be scalar or vector"
        )
    if step_ms <= 0 or end_ms < start_ms:
        raise EvaluationError("a range query needs a positive step and an end after its start")
    if (end_ms - start_ms) // step_ms > MAX_STEPS:
        raise EvaluationError(f"more than {MAX_STEPS} points per series: take a larger step")
    points: dict[Labels, list[tuple[int, float]]] = {}
    budget = Budget()
    for at in range(start_ms, end_ms + 1, step_ms):
        value = expression.within(
            store,
            at,
            (start_ms, end_ms, step_ms),
            lookback_ms=lookback_ms,
            default_step_ms=default_step_ms,
            budget=budget,
        )
        for labels, number in _samples(value):
            points.setdefault(labels, []).append((at, number))
    return [RangeSample(labels, tuple(found)) for labels, found in sorted(points.items())]


def _samples(value: object) -> list[Sample]:
    if isinstance(value, float):
        return [Sample((), value)]
    assert isinstance(value, list)
    return value
