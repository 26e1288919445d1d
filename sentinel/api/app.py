"""The HTTP face as one Starlette application; the socket and the TCP address each get one.

Its own paths, Prometheus's and Alertmanager's are beside each other; each answers in its own
shape.
"""

from collections.abc import Callable
from datetime import datetime

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from sentinel.api.access import Gate
from sentinel.api.alertmanager.routes import alertmanager_routes
from sentinel.api.answers import answering, unroutable
from sentinel.api.aside import Seats
from sentinel.api.peer import who
from sentinel.api.prometheus.routes import prometheus_routes
from sentinel.api.routes import ASK_WITHIN, Asking, History, House
from sentinel.core.model.command import Reload
from sentinel.core.model.errors import SentinelError

__all__ = ["History", "House", "build_api"]

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
FRONT = (
    "This is Sentinel. Its state: /api/sentinel/v1/status. Its numbers: /metrics.\n"
    "Its series, as Prometheus's API: /api/v1/query?query=up. Its alerts and silences, as\n"
    "Alertmanager's API: /api/v2/alerts. On the host: sentinel status.\n"
)


def build_api(
    house: House,
    *,
    token: Callable[[], str] | None,
    trusted: bool,
    now: Callable[[], datetime],
    open_reads: bool = True,
) -> Starlette:
    """`trusted`: the unix socket, where no token is asked for.

    `open_reads`: reading needs no token, as on a loopback address.
    """
    seats = Seats()
    gate = Middleware(Gate, token=token, open_reads=open_reads)
    app = Starlette(
        routes=[
            *Asking(house, seats, now).routes(),
            *prometheus_routes(house.copies, now),
            *_of_prometheus(house, seats),
            *alertmanager_routes(house, seats, now),
        ],
        middleware=[] if trusted else [gate],
        exception_handlers={HTTPException: unroutable},
    )
    app.router.redirect_slashes = False
    return app


def _of_prometheus(house: House, seats: Seats) -> list[Route]:
    """The paths that every tool around Prometheus knows, with Prometheus's answers."""

    async def front(_: Request) -> Response:
        return PlainTextResponse(FRONT)  # clients look here to see whether somebody is there

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("Sentinel is Healthy.\n")

    async def ready(_: Request) -> Response:
        if house.snapshot().ready:
            return PlainTextResponse("Sentinel is Ready.\n")
        return PlainTextResponse("Service Unavailable\n", status_code=503)

    async def metrics(_: Request) -> Response:
        return Response(await seats.run(house.metrics), media_type=EXPOSITION)

    async def reload(request: Request) -> Response:
        try:
            await seats.run(lambda: house.ask(Reload(by=who(request)), deadline=ASK_WITHIN))
        except SentinelError as error:
            text = f"failed to reload config: {error.message}\n"
            return PlainTextResponse(text, status_code=500)
        return PlainTextResponse("")

    return [
        Route("/", answering(front)),
        Route("/-/healthy", answering(healthy)),
        Route("/-/ready", answering(ready)),
        Route("/-/reload", answering(reload), methods=["POST", "PUT"]),
        Route("/metrics", answering(metrics)),
    ]
