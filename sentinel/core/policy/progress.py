"""How each engine of a target gets on, by its label in the series.

Per engine, because the sum over engines still moves when one of them hangs. Progress is a
change in any sign of work: a lone long prefill moves nothing but the KV cache gauge, a pooling
model writes no token, and a prefill-only engine but one a request.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

_DECODE_WITHIN = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """What one engine's series said at one scrape. None: there is no such series."""

    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    generation: float | None = None
    prompt: float | None = None
    iterations: float | None = None
    success: float | None = None  # for whatever reason they ended
    completed: float | None = None  # those that came to their end
    preemptions: float | None = None

    @property
    def demand(self) -> float:
        return (self.running or 0) + (self.waiting or 0)

    @property
    def signs(self) -> tuple[float | None, ...]:
        return (
            self.generation,
            self.prompt,
            self.iterations,
            self.success,
            self.preemptions,
            self.kv_usage,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    counted: Counted
    demand: float  # by others than Sentinel
    moved_at: datetime  # when a sign of work last changed
    still_since: datetime  # since when others' work has waited without one
    seen_at: datetime  # the last scrape
    decoded_at: datetime  # when it last wrote tokens or finished requests, or had none running
    prompted_at: datetime | None = None  # when it last took in a prompt since then
    own: int = 0  # requests of ours that the gauges may still count

    @property
    def is_decode_stalled(self) -> bool:
        """Prompts go in, and for a minute nothing has come out."""
        return (
            self.prompted_at is not None
            and self.seen_at - self.decoded_at >= _DECODE_WITHIN
            and self.seen_at - self.prompted_at < _DECODE_WITHIN
        )


def follow(before: Pace | None, counted: Counted, at: datetime, *, own: int = 0) -> Pace:
    """Take in a scrape. `own`: requests of ours under way."""
    if before is None:
        demand = max(counted.demand - own, 0)
        return Pace(
            counted=counted,
            demand=demand,
            moved_at=at,
            still_since=at,
            seen_at=at,
            decoded_at=at,
            own=own,
        )
    moved = counted.signs != before.counted.signs
    own = max(own, 0 if moved else before.own)  # a frozen gauge goes on counting what we gave up
    demand = _demand_of_others(before, counted, own, moved=moved)
    decoded = (
        (counted.generation, counted.success) != (before.counted.generation, before.counted.success)
    ) or not counted.running
    prompted = counted.prompt != before.counted.prompt
    return Pace(
        counted=counted,
        demand=demand,
        moved_at=at if moved else before.moved_at,
        still_since=at if moved or not demand else before.still_since,
        seen_at=at,
        decoded_at=at if decoded else before.decoded_at,
        prompted_at=None if decoded else (at if prompted else before.prompted_at),
        own=own,
    )


def demand_of(paces: Iterable[Pace]) -> float:
    return sum(pace.demand for pace in paces)


def _demand_of_others(before: Pace, counted: Counted, own: int, *, moved: bool) -> float:
    """What was there before ours came and never moved since is theirs."""
    theirs = max(counted.demand - own, 0)
    return theirs if moved else min(counted.demand, max(before.demand, theirs))
