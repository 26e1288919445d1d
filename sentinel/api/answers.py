"""How the API answers: JSON, and every failure as the same shape with a way out.

`{"error": {"code", "message", "hint"}}` is what clients parse; `guard` or `faults` may join.
A route raises `SentinelError`; only this file knows which HTTP status that is. The daemon
names another one in the fact `status`: `Permanent("there is no i-000009", status=404)`.
"""

from collections.abc import Awaitable, Callable

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from sentinel.api.snapshot import to_json
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient
from sentinel.telemetry import events

Endpoint = Callable[[Request], Awaitable[Response]]

CODES = {
    400: "bad_request",
    401: "unauthorized",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    409: "conflict",
    413: "too_large",
    422: "config_refused",
    500: "internal",
    503: "unavailable",
    504: "ambiguous",
}

TOLD = ("guard", "faults")  # facts of a refusal that a client can use

log = structlog.get_logger()


class Refused(Permanent):
    """The request itself cannot be answered."""

    def __init__(self, status: int, message: str, *, hint: str = "", **facts: object) -> None:
        super().__init__(message, hint=hint, status=status, **facts)


def answer(value: object, status: int = 200) -> Response:
    return Response(to_json(value), status_code=status, media_type="application/json")


def failure(status: int, message: str, hint: str = "", **more: object) -> Response:
    code = CODES.get(status, "internal" if status >= 500 else "bad_request")
    response = answer({"error": {"code": code, "message": message, "hint": hint, **more}}, status)
    if status == 401:
        response.headers["www-authenticate"] = "Bearer"
    return response


def status_of(error: SentinelError) -> int:
    named = error.facts.get("status")
    if isinstance(named, int) and 400 <= named <= 599:
        return named
    match error:
        case Transient():
            return 503
        case Ambiguous():
            return 504
        case Permanent():
            return 409
    return 500


def answering(endpoint: Endpoint) -> Endpoint:
    """Turn whatever `endpoint` raises into an answer; one request never ends the daemon."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except SentinelError as error:
            told = {key: error.facts[key] for key in TOLD if error.facts.get(key)}
            return failure(status_of(error), error.message, error.hint, **told)
        except HTTPException:
            raise
        except Exception as error:  # an API route is one of the three places for this
            because = f"{request.method} {request.url.path}: {type(error).__name__}: {error}"
            log.exception(events.TURN_FAILED, because=because)
            return failure(500, "Sentinel failed to answer this", "See journalctl -u sentinel.")

    return answered


async def unroutable(request: Request, error: Exception) -> Response:
    """No such path, or not with this method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        response = failure(405, f"{request.url.path} does not take {request.method}")
        if isinstance(error, HTTPException) and error.headers:
            response.headers.update(error.headers)
        return response
    return failure(
        status, f"there is nothing at {request.url.path}", "The paths are in docs/cli.md."
    )
