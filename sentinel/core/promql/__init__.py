"""PromQL over the embedded store, with the meaning Prometheus 3 gives it.

The face of the engine: compile once with `compile_expression`, evaluate at an instant with
`Expression.at` or over time with `range_query`. Everything behind it is private.
"""

from sentinel.core.promql.errors import EvaluationError, ExpressionError
from sentinel.core.promql.evaluate import Expression, compile_expression, format_expression
from sentinel.core.promql.frame import Budget, RangeSample, Sample, Value
from sentinel.core.promql.lookup import Selection, matching_series, selection
from sentinel.core.promql.steps import range_query

__all__ = [
    "Budget",
    "EvaluationError",
    "Expression",
    "ExpressionError",
    "RangeSample",
    "Sample",
    "Selection",
    "Value",
    "compile_expression",
    "format_expression",
    "matching_series",
    "range_query",
    "selection",
]
