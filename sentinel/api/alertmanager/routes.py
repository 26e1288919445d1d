"""The paths of Alertmanager's API, and how each is answered.

What is read comes from the board that the loop has published; what is changed goes to the
loop, and 200 is said only when the loop has said so: an alert answered 200 is on disk.
"""

import functools
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel.api.alertmanager import about, alerts, silences
from sentinel.api.alertmanager.errors import ApiError, translated
from sentinel.api.alertmanager.posted import read_alerts
from sentinel.api.answers import answer
from sentinel.api.aside import Seats
from sentinel.api.body import receive
from sentinel.api.peer import who
from sentinel.api.routes import ASK_WITHIN, House
from sentinel.core.model.command import Command, ExpireSilence, PostAlerts
from sentinel.core.model.errors import SentinelError
from sentinel.telemetry import events

LARGEST = 8 * 1024 * 1024  # bytes of a body
NO_SUCH_SILENCE = "silence not found"

Endpoint = Callable[[Request], Awaitable[Response]]

log = structlog.get_logger()


def alertmanager_routes(house: House, seats: Seats, now: Callable[[], datetime]) -> list[Route]:
    asking = _Asking(house, seats, now)
    table: list[tuple[str, str, Endpoint]] = [
        ("GET", "alerts", asking.alerts),
        ("POST", "alerts", asking.post_alerts),
        ("GET", "alerts/groups", asking.groups),
        ("GET", "silences", asking.silences),
        ("POST", "silences", asking.set_silence),
        ("GET", "silence/{id}", asking.silence),
        ("DELETE", "silence/{id}", asking.expire_silence),
        ("GET", "receivers", asking.receivers),
        ("GET", "status", asking.status),
    ]
    return [
        Route(f"/api/v2/{path}", functools.partial(_answered, endpoint), methods=[method])
        for method, path, endpoint in table
    ]


async def _answered(endpoint: Endpoint, request: Request) -> Response:
    try:
        return await endpoint(request)
    except ApiError as error:
        return error.answer()
    except SentinelError as error:
        return translated(error).answer()
    except Exception as error:  # an API route is one of the three places for this
        because = f"{request.method} {request.url.path}: {type(error).__name__}: {error}"
        log.exception(events.TURN_FAILED, because=because)
        return ApiError(500, "Sentinel failed to answer this").answer()


class _Asking:
    def __init__(self, house: House, seats: Seats, now: Callable[[], datetime]) -> None:
        self._house = house
        self._seats = seats
        self._now = now

    async def alerts(self, request: Request) -> Response:
        wanted = alerts.read_wanted(request.query_params)
        return await self._drawn(lambda: alerts.alerts(self._house.board(), wanted))

    async def groups(self, request: Request) -> Response:
        wanted = alerts.read_wanted(request.query_params)
        return await self._drawn(lambda: alerts.groups(self._house.board(), wanted))

    async def post_alerts(self, request: Request) -> Response:
        body = await receive(request, LARGEST)

        def post() -> list[str]:
            good, faults = read_alerts(body)
            if good:
                self._ask(PostAlerts(by=who(request), alerts=tuple(good)))
            return faults

        if faults := await self._seats.run(post):
            raise ApiError(400, "; ".join(faults))
        return Response()

    async def silences(self, request: Request) -> Response:
        wanted, now = alerts.read_matchers(request.query_params), self._now()
        found = silences.chosen(self._house.board().silences, wanted)
        return answer([silences.shown(each, now) for each in silences.in_order(found, now)])

    async def silence(self, request: Request) -> Response:
        name = silences.read_id(request.path_params["id"])
        for silence in self._house.board().silences:
            if silence.id == name:
                return answer(silences.shown(silence, self._now()))
        raise ApiError(404, NO_SUCH_SILENCE)

    async def set_silence(self, request: Request) -> Response:
        body = await receive(request, LARGEST)

        def set_it() -> dict[str, Any]:
            command = silences.read_silence(body, self._now())
            return self._ask(command(by=who(request)))

        return answer(await self._seats.run(set_it))

    async def expire_silence(self, request: Request) -> Response:
        name = silences.read_id(request.path_params["id"])
        await self._seats.run(lambda: self._ask(ExpireSilence(by=who(request), id=name)))
        return Response()

    async def receivers(self, _: Request) -> Response:
        return answer([{"name": name} for name in self._house.board().receivers])

    async def status(self, _: Request) -> Response:
        return answer(about.status(self._house.board()))

    def _ask(self, command: Command) -> dict[str, Any]:
        return self._house.ask(command, deadline=ASK_WITHIN)

    async def _drawn(self, draw: Callable[[], object]) -> Response:
        """Thousands of alerts take a while to write: not on the event loop."""
        return await self._seats.run(lambda: answer(draw()))
