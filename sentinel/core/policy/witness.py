"""What a state is judged by: every witness, each with its own moment, and the patience allowed.

A witness that is None was not heard, or cannot be: that is never a good word for the target.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sentinel.core.model.container import Container
from sentinel.core.model.launch import Ending, Launch
from sentinel.core.model.target import Answer, Completion, State
from sentinel.core.policy.hang import Power
from sentinel.core.policy.progress import Pace, demand_of
from sentinel.core.sockets import Connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the last good scrape said of the work in hand. None: the series is absent."""

    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    asleep: bool | None = None

    @property
    def is_told(self) -> bool:
        """Whether there are series to judge it by."""
        return self.running is not None or self.waiting is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each thing may take, from the settings of this target."""

    startup_deadline: timedelta = timedelta(minutes=15)
    hung_after: timedelta = timedelta(seconds=120)
    first_minutes: timedelta = timedelta(minutes=10)
    hung_after_in_first_minutes: timedelta = timedelta(seconds=300)

    def hung_after_at(self, running_for: timedelta) -> timedelta:
        young = running_for < self.first_minutes
        return self.hung_after_in_first_minutes if young else self.hung_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Witnesses:
    container: Container | None
    launch: Launch | None
    previous_ending: Ending | None = None  # of the launch before this one
    own_step: str | None = None  # the step Sentinel itself is in the middle of
    told_to_stop_at: datetime | None = None  # Docker passed on a signal in this launch
    engine_lost_at: datetime | None = None  # Docker does not answer since
    engine_back_at: datetime | None = None
    scrape: Answer | None = None  # the last one, good or bad
    scrape_ok_at: datetime | None = None
    health: Answer | None = None
    dead_since: datetime | None = None  # /health has said "dead" without pause since
    load: Load = Load()
    engines: Mapping[str, Pace] = field(default_factory=dict)  # by engine label
    probe: Completion | None = None
    connections: Connections | None = None
    power: Power | None = None
    loading: str = ""  # how far a start has come, by its log
    start_expected: timedelta | None = None  # what its starts take at most, as far as learned
    patience: Patience = Patience()

    @property
    def demand(self) -> float:
        """Requests in hand, without Sentinel's own."""
        return demand_of(self.engines.values())

    @property
    def moved_at(self) -> datetime | None:
        return max((pace.moved_at for pace in self.engines.values()), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    state: State
    because: str
