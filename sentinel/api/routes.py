"""What can be read and asked under /api/sentinel/v1.

A route reads the published snapshot, asks the history, or posts a command; it never acts.
Whatever may block runs aside, never on the event loop: one slow disk must not make
`/-/healthy` late.
"""

import functools
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sentinel.api.answers import Refused, answer, answering
from sentinel.api.aside import Seats
from sentinel.api.body import read_body
from sentinel.api.peer import who
from sentinel.api.prometheus.copies import Copies
from sentinel.api.snapshot import Snapshot
from sentinel.core.alerting.duration import parse_duration
from sentinel.core.dispatch.board import Board
from sentinel.core.model.command import (
    Acknowledge,
    Act,
    Approve,
    Command,
    Pause,
    Reject,
    Reload,
    Resume,
)
from sentinel.core.model.errors import Permanent
from sentinel.core.model.intent import Action

ASK_WITHIN = 10.0  # seconds a command may take to be answered by the loop
STATUSES = ("open", "resolved")
MOST = 1000
MOST_SEQS = 1_000_000
ORDERED = (Action.RESTART, Action.LOWER_MAX_NUM_SEQS, Action.RESTORE)


class History(Protocol):
    """What has happened, as the contract's JSON. May block; raises `SentinelError`."""

    def incidents(self, limit: int, status: str | None) -> list[dict[str, Any]]: ...
    def incident(self, id: str) -> dict[str, Any] | None: ...  # noqa: A002 - the contract's word
    def intents(self) -> list[dict[str, Any]]: ...
    def scorecard(self) -> dict[str, Any]: ...


class House(Protocol):
    """What the daemon offers to those who ask."""

    def snapshot(self) -> Snapshot:
        """The last published one. Never blocks."""
        ...

    def ask(self, command: Command, deadline: float) -> dict[str, Any]:
        """Have the loop carry `command` out, waiting up to `deadline` seconds.

        Raises `Permanent` if it is refused (fact `status`: 404 for what does not exist),
        `Transient` if it was not taken, `Ambiguous` if no answer came in time.
        """
        ...

    def history(self) -> History:
        """Opened for one request, read-only, in the thread that uses it."""
        ...

    def copies(self) -> Copies:
        """Of series, rules and targets. Raises `Transient` while there is nobody to ask."""
        ...

    def board(self) -> Board:
        """What stands as of the last turn. Never blocks; raises `Transient` while starting."""
        ...

    def metrics(self) -> bytes:
        """The exposition of `/metrics`. May block."""
        ...


class Asking:
    """The routes of one house."""

    def __init__(self, house: House, seats: Seats, now: Callable[[], datetime]) -> None:
        self._house = house
        self._seats = seats
        self._now = now

    def routes(self) -> list[Route]:
        gets = {
            "status": self.status,
            "incidents": self.incidents,
            "incidents/{id}": self.incident,
            "intents": self.intents,
            "scorecard": self.scorecard,
            "explain/{name:path}": self.explain,
        }
        posts = {
            "pause": self.pause,
            "resume": self.resume,
            "reload": self.reload,
            "intents/{id}/approve": self.approve,
            "intents/{id}/reject": self.reject,
            "incidents/{id}/ack": self.acknowledge,
            "act/{action}/{target:path}": self.act,
        }
        return [
            Route(f"/api/sentinel/v1/{path}", answering(endpoint), methods=[method])
            for method, table in (("GET", gets), ("POST", posts))
            for path, endpoint in table.items()
        ]

    async def status(self, _: Request) -> Response:
        return answer(self._published().as_status(self._now()))

    async def explain(self, request: Request) -> Response:
        name = request.path_params["name"]
        published = self._published()
        found = await self._seats.run(lambda: published.as_explanation(name, self._now()))
        if found is None:
            raise Refused(404, f"nothing here is called {name}", hint=_known(published.explain))
        return answer(found)

    async def incidents(self, request: Request) -> Response:
        limit, status = _limit(request), request.query_params.get("status")
        if status is not None and status not in STATUSES:
            raise Refused(400, f"status: {status!r}", hint=f"Allowed: {', '.join(STATUSES)}.")
        found = await self._seats.run(lambda: self._house.history().incidents(limit, status))
        return answer({"incidents": found})

    async def incident(self, request: Request) -> Response:
        named = request.path_params["id"]
        found = await self._seats.run(lambda: self._house.history().incident(named))
        if found is None:
            raise Refused(404, f"there is no incident {named}", hint="See sentinel incidents.")
        return answer(found)

    async def intents(self, _: Request) -> Response:
        return answer({"intents": await self._seats.run(lambda: self._house.history().intents())})

    async def scorecard(self, _: Request) -> Response:
        return answer(await self._seats.run(lambda: self._house.history().scorecard()))

    async def pause(self, request: Request) -> Response:
        body = await read_body(request, "target", "for")
        for_ = _duration(body["for"]) if "for" in body else None
        self._expect_target(body.get("target"))
        return await self._ask(
            request, functools.partial(Pause, target=body.get("target"), for_=for_)
        )

    async def resume(self, request: Request) -> Response:
        body = await read_body(request, "target")
        return await self._ask(request, functools.partial(Resume, target=body.get("target")))

    async def reload(self, request: Request) -> Response:
        await read_body(request)
        try:
            return await self._ask(request, Reload)
        except Permanent as refusal:
            facts = {key: fact for key, fact in refusal.facts.items() if key != "status"}
            raise Refused(422, refusal.message, hint=refusal.hint, **facts) from refusal

    async def approve(self, request: Request) -> Response:
        await read_body(request)
        return await self._ask(
            request, functools.partial(Approve, intent=request.path_params["id"])
        )

    async def reject(self, request: Request) -> Response:
        body = await read_body(request, "because")
        intent, because = request.path_params["id"], body.get("because", "")
        return await self._ask(request, functools.partial(Reject, intent=intent, because=because))

    async def act(self, request: Request) -> Response:
        body = await read_body(request, "to", "dry_run", "force")
        action = _action(request.path_params["action"])
        target = request.path_params["target"]
        self._expect_target(target)
        return await self._ask(
            request,
            functools.partial(
                Act,
                action=action,
                target=target,
                to=_limit_to(body.get("to"), action),
                dry_run=_flag(body.get("dry_run", "false")),
                force=tuple(filter(None, body.get("force", "").split(","))),
            ),
        )

    async def acknowledge(self, request: Request) -> Response:
        await read_body(request)
        return await self._ask(
            request, functools.partial(Acknowledge, incident=request.path_params["id"])
        )

    async def _ask(self, request: Request, command: Callable[..., Command]) -> Response:
        return answer(
            await self._seats.run(
                lambda: self._house.ask(command(by=who(request)), deadline=ASK_WITHIN)
            )
        )

    def _published(self) -> Snapshot:
        published = self._house.snapshot()
        if not published.status:
            raise Refused(
                503, "Sentinel has not looked at the containers yet", hint="Ask again in a moment."
            )
        return published

    def _expect_target(self, name: str | None) -> None:
        """A misspelt name must not become a pause of nothing."""
        if name is None:
            return
        known = [target["name"] for target in self._published().status.get("targets", ())]
        if name not in known:
            raise Refused(404, f"there is no target {name}", hint=_known(known))


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", "100")
    if not (given.isascii() and given.isdigit() and 1 <= int(given) <= MOST):
        raise Refused(400, f"limit: {given!r}", hint=f"Allowed: 1 to {MOST}.")
    return int(given)


def _action(given: str) -> Action:
    named = {action.replace("_", "-"): action for action in ORDERED}
    if given not in named:
        raise Refused(404, f"nobody can {given} a target", hint=f"Allowed: {', '.join(named)}.")
    return named[given]


def _limit_to(given: str | None, action: Action) -> int | None:
    if given is None:
        return None
    if action is not Action.LOWER_MAX_NUM_SEQS:
        raise Refused(400, f"to: {action} takes no number")
    if not (given.isascii() and given.isdigit() and 1 <= int(given) < MOST_SEQS):
        raise Refused(400, f"to: {given!r}", hint="Allowed: a whole number from 1.")
    return int(given)


def _flag(given: str) -> bool:
    if given not in ("true", "false"):
        raise Refused(400, f"dry_run: {given!r}", hint="Allowed: true, false.")
    return given == "true"


def _duration(given: str) -> timedelta:
    try:
        span = parse_duration(given)
    except ValueError as error:
        raise Refused(400, f"for: {error}", hint="Allowed: 90s, 15m, 2h, 1d, 1h30m.") from None
    if span <= timedelta(0):
        raise Refused(400, f"for: {given!r} is no time at all", hint="Allowed: 90s, 15m, 2h, 1d.")
    return span


def _known(names: object) -> str:
    known = sorted(str(name) for name in names)  # type: ignore[attr-defined]
    return f"Known: {', '.join(known[:20])}." if known else "No target is known yet."
