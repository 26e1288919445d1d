"""`query` and `query_range`: an expression at one instant, or at every step of a span.

Of the store only what the expression reads is copied.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sentinel.api.prometheus.desk import Measure
from sentinel.api.prometheus.envelope import ApiError, Found, bad
from sentinel.api.prometheus.question import Question, expression
from sentinel.api.prometheus.results import Points, instant_result, range_result
from sentinel.core.model.labels import Labels
from sentinel.core.model.series import Store
from sentinel.core.promql import EvaluationError, Expression, Sample, Value

LOOKBACK = timedelta(minutes=5)
MOST_STEPS = 11_000
TYPES = {"vector": "instant vector", "matrix": "range vector"}
EVER = -(2**62)


@dataclass(frozen=True, slots=True)
class Span:
    start: int
    end: int
    step: int


def instant_query(question: Question) -> Found:
    form = question.form
    limit = form.limit()
    at = form.time("time", question.now_ms)
    lookback = _lookback(question)
    asked = expression(question)
    measure = Measure(question.deadline, whole=asked.type == "matrix")
    store = _copy(question, asked, at, lookback)
    try:
        value = asked.within(
            store,
            at,
            (at, at, 0),
            lookback_ms=_ms(lookback),
            default_step_ms=_ms(question.copies.about().evaluation_interval),
            budget=measure,
        )
    except EvaluationError as error:
        raise ApiError("execution", str(error)) from None
    return instant_result(asked.type, value, at, limit, _infos(question, asked))


def range_query(question: Question) -> Found:
    form = question.form
    limit = form.limit()
    span = _span(question)
    lookback = _lookback(question)
    asked = expression(question)
    if asked.type not in ("vector", "scalar"):
        named = TYPES.get(asked.type, asked.type)
        says = (
            f'invalid expression type "{named}" for range query, must be Scalar or instant Vector'
        )
        raise bad("query", says)
    measure = Measure(question.deadline)
    store = _copy(question, asked, span.start, lookback)
    try:
        found = _over_time(question, asked, store, span, lookback, measure)
    except EvaluationError as error:
        raise ApiError("execution", str(error)) from None
    return range_result(found, limit, _infos(question, asked), measure)


def _span(question: Question) -> Span:
    form = question.form
    start, end = form.needed_time("start"), form.needed_time("end")
    if end < start:
        raise bad("end", "end timestamp must not be before start time")
    step = form.needed_span("step")
    if step <= timedelta(0) or _ms(step) == 0:
        says = "zero or negative query resolution step widths are not accepted."
        raise bad("step", f"{says} Try a positive integer")
    if (end - start) // _ms(step) > MOST_STEPS:
        raise ApiError(
            "bad_data",
            "exceeded maximum resolution of 11,000 points per timeseries."
            " Try decreasing the query resolution (?step=XX)",
        )
    return Span(start, end, _ms(step))


def _lookback(question: Question) -> timedelta:
    try:
        given = question.form.span("lookback_delta")
    except ApiError as error:
        why = error.message.partition(": ")[2]
        raise ApiError("bad_data", f"error parsing lookback delta duration: {why}") from None
    return given or LOOKBACK


def _copy(question: Question, asked: Expression, first_ms: int, lookback: timedelta) -> Store:
    """What `asked` reads when it is evaluated at `first_ms` or later."""
    names = None if asked.needs_all else asked.metric_names
    if names is not None and not names:
        return Store()
    since = EVER if "@" in asked.text else first_ms - asked.reach_ms - _ms(lookback)
    return question.copies.cut(names, since, question.within)


def _over_time(
    question: Question,
    asked: Expression,
    store: Store,
    span: Span,
    lookback: timedelta,
    measure: Measure,
) -> dict[Labels, Points]:
    default_step = _ms(question.copies.about().evaluation_interval)
    found: dict[Labels, Points] = {}
    for at in range(span.start, span.end + 1, span.step):
        measure.begin()
        value = asked.within(
            store,
            at,
            (span.start, span.end, span.step),
            lookback_ms=_ms(lookback),
            default_step_ms=default_step,
            budget=measure,
        )
        samples = _samples(value)
        measure.hold(len(samples))
        for labels, number in samples:
            points = found.get(labels)
            if points is None:
                points = found[labels] = Points()
            points.times.append(at)
            points.values.append(number)
    return found


def _samples(value: Value) -> Sequence[Sample]:
    if isinstance(value, float):
        return (Sample((), value),)
    assert isinstance(value, list)
    return value  # type: ignore[return-value]  # of a vector, as the type of the expression says


def _infos(question: Question, asked: Expression) -> tuple[str, ...]:
    """Why there may be nothing: what no rule reads is not kept, unless told to."""
    keeps = question.copies.about().keeps
    return tuple(
        f"{name} is not kept by Sentinel: no rule reads it, and store.keep is not all"
        for name in sorted(asked.metric_names)
        if not keeps(name)
    )


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
