"""Everything a guard may look at, and what it says.

Frozen facts only: a guard that would have to ask the world is a guard that can hang.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.model.intent import Action, Intent, Mode
from sentinel.core.model.launch import Ending, Launch
from sentinel.core.model.target import State
from sentinel.core.policy.change import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Actions allowed per sliding window. Docker's own restarts of a target count too."""

    target_per_hour: int = 2
    target_per_day: int = 4
    host_at_once: int = 1
    host_per_hour: int = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ManyFailing:
    """That many targets failing within so short a time are the host's fault, not their own."""

    at_least: int = 3
    within: timedelta = timedelta(minutes=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    guard: str
    because: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """The pool that a target belongs to, without the target itself."""

    name: str
    min_healthy: int = 1
    healthy: Sequence[str] = ()
    saturated: Sequence[str] = ()  # of the healthy ones
    has_switch: bool = False  # something in front of it knows its members' addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    now: datetime
    target: str
    action: Action
    mode: Mode
    state: State
    ending: Ending | None = None
    running: bool = False  # its container is up
    container_gone: bool = False  # removed by Docker itself when it exited
    removed_once_stopped: bool = False  # it was started with --rm
    orchestrator: str = ""  # what other program runs it
    start_fails: bool = False  # it has ended before it ever served, time and again
    crashed: bool = False  # its engine is dead, whatever its container is
    another_model: bool = False  # its port answers as another than it was started with
    cause: str = ""  # what its incident has been put down to
    change: Change | None = None  # what making it anew would change
    # what people and others want
    paused_by: str | None = None  # who paused this target, or everything
    paused_until: datetime | None = None
    stop_file: str | None = None
    maintenance: str | None = None  # the name of the time interval that holds now
    only_posted: bool = False  # no alert of our own asks for it
    accept_external: bool = False
    pulled_at: datetime | None = None  # when somebody last pulled its image, of any version
    deployed_at: datetime | None = None  # when somebody else made its container anew
    # what is around it
    pool: PoolState | None = None
    gpu_fault: str = ""  # a fault of its GPUs, or of their driver, that stands now
    gpu_starts: Sequence[str] = ()  # others that are loading onto one of its GPUs
    failing: Mapping[str, datetime] = field(default_factory=dict)  # targets that fail, since when
    many_failing: ManyFailing = ManyFailing()
    # what has been done
    open_intent: Intent | None = None  # of this target, other than the one being asked about
    recent: Sequence[Intent] = field(default_factory=tuple)  # reserved in the last day, any target
    remedied: Sequence[Intent] = field(default_factory=tuple)  # for this cause, in seven days
    launches: Sequence[Launch] = field(default_factory=tuple)  # of this target, last day, in order
    cooldown: timedelta = timedelta(minutes=15)
    budget: Budget = Budget()
    journal_trouble: str = ""  # why nothing can be written down


def span_of(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes} min" if minutes else f"{span.total_seconds():.0f} s"


def is_cured_at_start(now: Situation) -> bool:
    """It loads only to die again, until its limit is lowered or somebody stops that."""
    cause = CAUSES.get(now.cause)
    if now.action is Action.STOP_LOOP:
        return True
    lowers = now.action is Action.LOWER_MAX_NUM_SEQS
    return lowers and now.start_fails and cause is not None and bool(cause.lower_max_num_seqs_helps)
