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
from sentinel.core.policy.discover import is_swapped
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
    meets_strangers: bool = False  # inspect what nothing marks as a target, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    at: datetime
    tick: float  # monotonic, when it began: what happened since may not be in it
    summaries: Sequence[Summary]  # of the targets only
    names: frozenset[str]  # of every container there is
    swapped: Sequence[Summary]  # set aside while a container is made anew, or made beside
    others: Sequence[Summary]  # running containers that nothing marks as targets
    strangers: Mapping[str, Container]  # of those, inspected this time, by id
    containers: Mapping[str, Container]  # inspected this time, by id
    logs: Mapping[str, str]  # ends of logs, by container id


def survey(eyes: ContainerEyes, question: Question, clock: Clock) -> Survey:
    """Raises `Transient` if the engine does not answer."""
    tick, listed = clock.monotonic(), eyes.list()
    summaries = [row for row in listed if question.wanted(row)]
    asked = [row.id for row in summaries if _is_due(row, question)]
    containers = _inspected(eyes, asked, all_of_them=len(asked) == len(summaries))
    logs = {
        found.id: _log_of(eyes, found)
        for found in containers.values()
        if _needs_explaining(found, question)
    }
    others = [row for row in listed if row.status is Status.RUNNING and not question.wanted(row)]
    unmet = [row.id for row in others if question.meets_strangers and _is_due(row, question)]
    return Survey(
        at=clock.now(),
        tick=tick,
        summaries=summaries,
        names=frozenset(row.name for row in listed),
        swapped=[row for row in listed if is_swapped(row.name)],
        others=others,
        strangers=_inspected(eyes, unmet, all_of_them=False),
        containers=containers,
        logs=logs,
    )


def _is_due(row: Summary, question: Question) -> bool:
    return question.known.get(row.id) != row.fingerprint or row.id in question.inspect_anyway


def _inspected(
    eyes: ContainerEyes, ids: Sequence[str], *, all_of_them: bool
) -> dict[str, Container]:
    """One that cannot be inspected is left out; two in a row, or all there are, are no engine."""
    found: dict[str, Container] = {}
    failure: SentinelError | None = None
    for container_id in ids:
        try:
            container = eyes.inspect(container_id)
        except SentinelError as error:
            if failure is not None:
                raise
            failure = error
            continue
        failure = None
        if container is not None:
            found[container_id] = container
    if failure is not None and not found and all_of_them:
        raise failure
    return found


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
