"""One look at the container engine: the list, and an inspect of whatever has changed.

Runs in the lane that owns the looking client, on copies; it decides nothing. For a container
that has ended and whose ending is not explained yet, the end of its log comes along, so that
one look is enough from death to cause.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sentinel.core.model.container import Container, Status, Summary
from sentinel.core.model.errors import SentinelError
from sentinel.ports import Clock, ContainerEyes

_LOG_LINES = 400
_ENDED = (Status.EXITED, Status.DEAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`known` holds the fingerprint of each container already seen, by id."""

    wanted: Callable[[Summary], bool]
    known: Mapping[str, str] = field(default_factory=dict)
    inspect_anyway: frozenset[str] = frozenset()
    explained: frozenset[tuple[str, datetime]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    at: datetime
    summaries: Sequence[Summary]  # of the targets only
    others: Sequence[Summary]  # running containers that nothing marks as targets
    containers: Mapping[str, Container]  # inspected this time, by id
    logs: Mapping[str, str]  # ends of logs, by container id


def survey(eyes: ContainerEyes, question: Question, clock: Clock) -> Survey:
    """Raises `Transient` if the engine does not answer."""
    listed = eyes.list()
    summaries = [row for row in listed if question.wanted(row)]
    containers: dict[str, Container] = {}
    logs: dict[str, str] = {}
    for row in summaries:
        seen_before = question.known.get(row.id) == row.fingerprint
        if seen_before and row.id not in question.inspect_anyway:
            continue
        container = eyes.inspect(row.id)
        if container is None:
            continue
        containers[row.id] = container
        if _needs_explaining(container, question):
            logs[row.id] = _log_of(eyes, container)
    return Survey(
        at=clock.now(),
        summaries=summaries,
        others=[row for row in listed if row.status is Status.RUNNING and not question.wanted(row)],
        containers=containers,
        logs=logs,
    )


def _needs_explaining(container: Container, question: Question) -> bool:
    if container.status not in (*_ENDED, Status.RESTARTING) or container.started_at is None:
        return False
    return (container.id, container.started_at) not in question.explained


def _log_of(eyes: ContainerEyes, container: Container) -> str:
    """A log that cannot be read is an empty one; the ending is then judged without it."""
    try:
        return eyes.log_tail(container.id, lines=_LOG_LINES, since=container.started_at)
    except SentinelError:
        return ""
