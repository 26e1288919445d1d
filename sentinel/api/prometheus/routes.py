"""The paths of Prometheus's API, and how each is answered: read, worked on aside, enveloped.

An endpoint is a plain function of a `Question`; it runs beside the event loop and may wait
for the loop. What it raises becomes Prometheus's error, never Sentinel's.
"""

import functools
from collections.abc import Callable
from datetime import datetime

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel.api.answers import status_of
from sentinel.api.prometheus import about, query, rules, select, targets
from sentinel.api.prometheus.copies import Copies
from sentinel.api.prometheus.desk import LONGEST, Deadline, Desk
from sentinel.api.prometheus.envelope import ApiError, Found, bad, failure, success
from sentinel.api.prometheus.form import Form, read_form
from sentinel.api.prometheus.question import Answer, Question, expression, said
from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.promql import ExpressionError, format_expression
from sentinel.telemetry import events

log = structlog.get_logger()


def format_query(question: Question) -> Found:
    text = question.form.get("query")
    try:
        return Found(format_expression(text))
    except ExpressionError as error:
        raise bad("query", said(error, text)) from None


def query_exemplars(question: Question) -> Found:
    """There are none: the store keeps no exemplars."""
    expression(question)
    return Found([])


def alertmanagers(_: Question) -> Found:
    return Found({"activeAlertmanagers": [], "droppedAlertmanagers": []})


GET_OR_POST: dict[str, Answer] = {
    "query": query.instant_query,
    "query_range": query.range_query,
    "query_exemplars": query_exemplars,
    "format_query": format_query,
    "series": select.series,
    "labels": select.label_names,
}
GET: dict[str, Answer] = {
    "label/{name}/values": select.label_values,
    "rules": rules.rules,
    "alerts": rules.alerts,
    "alertmanagers": alertmanagers,
    "targets": targets.targets,
    "targets/metadata": targets.target_metadata,
    "scrape_pools": targets.scrape_pools,
    "metadata": targets.metadata,
    "status/buildinfo": about.build,
    "status/config": about.config,
    "status/flags": about.flags,
    "status/runtimeinfo": about.runtime,
    "status/tsdb": about.series,
}

TIMED = (query.instant_query, query.range_query)


def prometheus_routes(copies: Callable[[], Copies], now: Callable[[], datetime]) -> list[Route]:
    """`copies` raises `Transient` while there is no loop to ask."""
    desk = Desk()
    tables = ((GET_OR_POST, ["GET", "POST"]), (GET, ["GET"]))
    return [
        Route(
            f"/api/v1/{path}",
            functools.partial(_answered, answer, desk, copies, now),
            methods=methods,
        )
        for table, methods in tables
        for path, answer in table.items()
    ]


async def _answered(
    answer: Answer,
    desk: Desk,
    copies: Callable[[], Copies],
    now: Callable[[], datetime],
    request: Request,
) -> Response:
    try:
        form = await read_form(request)

        def work(deadline: Deadline) -> bytes:
            question = Question(form, dict(request.path_params), copies(), now(), deadline)
            return answer(question).rendered()

        timed = answer in TIMED
        return success(await desk.run(work, _within(form) if timed else LONGEST))
    except ApiError as error:
        return failure(error)
    except SentinelError as error:
        return failure(_translated(error))
    except Exception as error:  # an API route is one of the three places for this
        because = f"{request.method} {request.url.path}: {type(error).__name__}: {error}"
        log.exception(events.TURN_FAILED, because=because)
        return failure(ApiError("internal", "Sentinel failed to answer this"))


def _within(form: Form) -> float:
    given = form.span("timeout")
    return LONGEST if given is None else given.total_seconds()


def _translated(error: SentinelError) -> ApiError:
    if isinstance(error, Permanent):
        return ApiError("execution" if status_of(error) == 409 else "bad_data", error.message)
    return ApiError("unavailable", error.message)
