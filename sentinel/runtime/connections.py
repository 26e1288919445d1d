"""Looks into each target's own network: does anything listen, is anybody waiting there?

At each slot while it may matter; where work is counted and moves, only now and then. What it
sees waits for the next turn: nothing here is worth a turn of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.sockets import Sockets, follow, port_inside
from sentinel.ports import Clock, ConnectionEyes
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.target import Target

_DEADLINE = 5.0  # seconds
_AT_WORK = timedelta(seconds=30)


class Sightless:
    """Where the processes of containers cannot be seen."""

    def look(self, _pid: int, _container_id: str, _port: int) -> Sockets | None:
        return None


@dataclass(frozen=True, slots=True)
class _Question:
    target: Target
    key: object
    pid: int
    container_id: str
    port: int
    own: int  # requests of ours under way


class ConnectionWatch:
    def __init__(self, eyes: ConnectionEyes, lane: Lane, clock: Clock, inbox: Inbox) -> None:
        self._eyes, self._lane, self._clock, self._inbox = eyes, lane, clock, inbox

    def look_if_due(self, targets: Mapping[str, Target], now: datetime) -> None:
        """To be called at each slot; never waits."""
        if self._lane.busy_since is not None:
            return
        questions = [
            one for target in targets.values() if (one := _question(target, now)) is not None
        ]
        if not questions:
            return
        self._lane.submit(
            lambda: [self._eyes.look(one.pid, one.container_id, one.port) for one in questions],
            now=self._clock.monotonic(),
            deadline=_DEADLINE,
            deliver=lambda answer: self._inbox.put_question(lambda: _take(questions, answer, now)),
        )


def _question(target: Target, now: datetime) -> _Question | None:
    container, last = target.container, target.connections
    if not container.is_up or not container.pid or target.endpoint is None:
        return None
    is_at_work = target.load.is_told and any(pace.demand for pace in target.engines.values())
    answers = target.scrape is not None and target.scrape.ok
    if is_at_work and answers and last is not None and timedelta(0) <= now - last.at < _AT_WORK:
        return None
    port = port_inside(container, target.endpoint)
    if port is None:
        return None
    return _Question(target, target.key, container.pid, container.id, port, target.probing)


def _take(
    questions: Iterable[_Question], answer: LaneAnswer[list[Sockets | None]], at: datetime
) -> None:
    for question, seen in zip(questions, answer.value or (), strict=False):
        target = question.target
        if seen is None or target.key != question.key:
            continue
        target.connections = follow(
            target.connections,
            seen,
            question.port,
            at,
            own=max(question.own, target.probing),
            is_counted=any(pace.demand for pace in target.engines.values()),
        )
