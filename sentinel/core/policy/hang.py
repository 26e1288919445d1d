"""Does a target hang? Work that waits, nothing that moves, and a witness that agrees.

Time that nobody could see into is no silence: it ends with the last good look. What the API
server refuses by itself (a key, a path) says nothing of the engine behind it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.model.target import Completion
from sentinel.core.policy.progress import Pace
from sentinel.core.sockets import Connections

_POWERLESS = 0.8  # of the least that was ever drawn while it worked


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Work waits, and nothing shows that anything is done about it."""

    since: datetime
    until: datetime
    says: str  # what waits

    @property
    def lasted(self) -> timedelta:
        return self.until - self.since


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What the GPUs of a target draw, in watts."""

    at: datetime
    drawn: float
    least_at_work: float | None  # None: it has not worked long enough to tell

    @property
    def is_idle(self) -> bool:
        return self.least_at_work is not None and self.drawn < _POWERLESS * self.least_at_work


def silence_of(
    paces: Mapping[str, Pace], connections: Connections | None, probe: Completion | None
) -> Silence | None:
    """The longest silence, of an engine or of clients whose work no engine counts."""
    found = [_of_engine(name, pace, len(paces)) for name, pace in paces.items() if pace.demand]
    if not found and paces and connections is not None and connections.waiting_since is not None:
        found = [_of_clients(paces, connections, connections.waiting_since)]
    answered = probe.at if probe is not None and probe.ok else None
    cut = [
        Silence(since=max(one.since, answered or one.since), until=one.until, says=one.says)
        for one in found
    ]
    return max(cut, key=lambda silence: silence.lasted, default=None)


def confirmed_by(
    silence: Silence,
    probe: Completion | None,
    power: Power | None,
    connections: Connections | None,
) -> str | None:
    """Why it is a hang and no mere stillness, in words; None if nothing else says so."""
    if probe is not None and probe.at >= silence.since:
        if probe.ok:
            return None
        if probe.is_silent:
            return f"a one-token request failed: {probe.says}"
    waited_for = connections is not None and bool(connections.clients)
    if power is not None and power.at >= silence.since and power.is_idle and waited_for:
        return (
            f"its GPUs draw {power.drawn:.0f} W, less than they ever did at work "
            f"({power.least_at_work:.0f} W)"
        )
    return None


def ask_after(allowed: timedelta, deadline: timedelta) -> timedelta:
    """How long a silence is when one token is asked for, so that the answer is in in time."""
    return max(allowed - deadline, allowed / 2)


def _of_engine(name: str, pace: Pace, engines: int) -> Silence:
    running, waiting = pace.counted.running or 0, pace.counted.waiting or 0
    which = f" in engine {name}" if engines > 1 else ""
    return Silence(
        since=pace.still_since,
        until=pace.seen_at,
        says=f"{running:.0f} running and {waiting:.0f} waiting{which}",
    )


def _of_clients(
    paces: Mapping[str, Pace], connections: Connections, waiting_since: datetime
) -> Silence:
    moved_at = max(pace.moved_at for pace in paces.values())
    seen_at = max(pace.seen_at for pace in paces.values())
    clients = len(connections.clients)
    return Silence(
        since=max(moved_at, waiting_since),
        until=min(seen_at, connections.at),
        says=f"{clients} client{'s' if clients != 1 else ''} connected whose work nothing counts",
    )
