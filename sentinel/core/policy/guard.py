"""The last gate before an action: every reason to hold back, each with its sentence.

A guard never acts and never forgets: it is asked when a step is decided and again just
before it is done, and what it says is what the log, the CLI and the message say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.model.intent import Action, Intent, Mode
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.model.target import State


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
class Situation:
    """Everything a guard may look at."""

    now: datetime
    target: str
    action: Action
    mode: Mode
    state: State
    ending: Ending | None = None
    running: bool = False  # its container is up
    paused_by: str | None = None  # who paused this target, or everything
    paused_until: datetime | None = None
    stop_file: str | None = None
    open_intent: Intent | None = None  # of this target, other than the one being asked about
    recent: Sequence[Intent] = field(default_factory=tuple)  # reserved in the last day, any target
    launches: Sequence[Launch] = field(default_factory=tuple)  # of this target, last day, in order
    failing: Mapping[str, datetime] = field(default_factory=dict)  # targets that fail, since when
    many_failing: ManyFailing = ManyFailing()
    container_gone: bool = False  # removed by Docker itself when it exited
    cooldown: timedelta = timedelta(minutes=15)
    budget: Budget = Budget()
    journal_trouble: str = ""  # why nothing can be written down


def holds(situation: Situation, *, but: frozenset[str] = frozenset()) -> tuple[Held, ...]:
    """Every guard that holds, hardest first; empty if the way is free."""
    found = (guard(situation) for name, guard in GUARDS.items() if name not in but)
    return tuple(held for held in found if held is not None)


def _journal_unreadable(now: Situation) -> Held | None:
    if not now.journal_trouble:
        return None
    because = f"nothing can be written down ({now.journal_trouble}), so nothing is done"
    return Held(guard="journal_unreadable", because=because)


def _stop_file(now: Situation) -> Held | None:
    if now.stop_file is None:
        return None
    return Held(guard="stop_file", because=f"the file {now.stop_file} holds every action")


def _paused(now: Situation) -> Held | None:
    if now.paused_by is None:
        return None
    return Held(guard="paused", because=f"paused by {now.paused_by}", until=now.paused_until)


def _human_stop(now: Situation) -> Held | None:
    stopped = now.ending is not None and now.ending.kind is EndedAs.PERSON
    if now.running or not stopped or now.ending is None:
        return None
    return Held(guard="human_stop", because=now.ending.because)


def _unwitnessed_stop(now: Situation) -> Held | None:
    if now.running or now.ending is None or now.ending.kind is not EndedAs.UNWITNESSED:
        return None
    return Held(
        guard="unwitnessed_stop",
        because=f"{now.ending.because}: a person has to say whether it should run",
    )


def _cannot_recreate(now: Situation) -> Held | None:
    if not now.container_gone:
        return None
    return Held(
        guard="cannot_recreate",
        because="Docker removed it when it exited (--rm): there is nothing left to start",
    )


def _many_failing(now: Situation) -> Held | None:
    """All that fail together are held together, for as long as they fail."""
    mine = now.failing.get(now.target)
    if mine is None:
        return None
    span, wanted = now.many_failing.within, now.many_failing.at_least
    for first in (at for at in now.failing.values() if mine - span <= at <= mine):
        together = sorted(n for n, at in now.failing.items() if first <= at <= first + span)
        if len(together) >= wanted:
            return Held(
                guard="many_failing",
                because=f"{len(together)} targets failed within {_span(span)} "
                f"({', '.join(together)}): that is the host's fault rather than theirs",
            )
    return None


def _starting(now: Situation) -> Held | None:
    if now.state is not State.STARTING:
        return None
    return Held(guard="starting", because="it is loading; a restart would throw that away")


def _crash_looping(now: Situation) -> Held | None:
    if now.state is not State.RESTARTING:
        return None
    return Held(guard="crash_looping", because="Docker is already starting it again")


def _restart_cannot_help(now: Situation) -> Held | None:
    if now.action is not Action.RESTART or now.running or now.ending is None:
        return None
    cause = CAUSES.get(now.ending.cause)
    if cause is None or cause.restart_helps is not False:
        return None
    return Held(
        guard="restart_cannot_help",
        because=f"{cause.says} ({cause.name}); starting it again would change nothing",
    )


def _open_intent(now: Situation) -> Held | None:
    if now.open_intent is None:
        return None
    wish = now.open_intent.wish
    return Held(
        guard="open_intent", because=f"{now.open_intent.id} ({wish.action}) is not settled yet"
    )


def _cooldown(now: Situation) -> Held | None:
    mine = [intent for intent in now.recent if intent.wish.target == now.target]
    last = max((i.closed_at or i.reserved_at for i in mine if i.reserved_at), default=None)
    if last is None or now.now - last >= now.cooldown:
        return None
    how = "was decided" if any(intent.is_reserved for intent in mine) else "ended"
    return Held(
        guard="cooldown",
        because=f"the last action on it {how} at {last:%H:%M:%S} UTC; "
        f"it is left alone for {_span(now.cooldown)}",
        until=last + now.cooldown,
    )


def _budget_target(now: Situation) -> Held | None:
    spent = [i.reserved_at for i in now.recent if i.wish.target == now.target and i.reserved_at]
    spent += dockers_restarts(now.launches)
    windows = (
        (timedelta(hours=1), now.budget.target_per_hour, "hour"),
        (timedelta(days=1), now.budget.target_per_day, "day"),
    )
    for span, allowed, name in windows:
        within = sorted(at for at in spent if now.now - at < span)
        if len(within) >= allowed:
            free_at = within[len(within) - allowed] + span if allowed else None
            return Held(
                guard="budget_target",
                because=f"{len(within)} restarts in the last {name} (Docker's own among them), "
                f"{allowed} are allowed",
                until=free_at,
            )
    return None


def dockers_restarts(launches: Sequence[Launch]) -> list[datetime]:
    """When Docker itself restarted a target, those between two looks among them."""
    found: list[datetime] = []
    before: Launch | None = None
    for launch in launches:
        if launch.by is By.DOCKER:
            same = before is not None and before.container_id == launch.container_id
            known = before.restart_count if before is not None and same else 0
            times = max(launch.restart_count - known, 1) if same else 1
            found += [launch.started_at] * times
        before = launch
    return found


def _budget_host(now: Situation) -> Held | None:
    others = [i for i in now.recent if i.is_reserved and i.wish.target != now.target]
    if len(others) >= now.budget.host_at_once:
        names = ", ".join(sorted(i.wish.target for i in others))
        return Held(guard="budget_host", because=f"an action on {names} is not settled yet")
    within = sorted(
        i.reserved_at
        for i in now.recent
        if i.reserved_at and now.now - i.reserved_at < timedelta(hours=1)
    )
    allowed = now.budget.host_per_hour
    if len(within) < allowed:
        return None
    return Held(
        guard="budget_host",
        because=f"{len(within)} actions on this host in the last hour, {allowed} are allowed",
        until=within[len(within) - allowed] + timedelta(hours=1) if allowed else None,
    )


def _mode(now: Situation) -> Held | None:
    if now.mode is Mode.ACT:
        return None
    if now.mode is Mode.APPROVE:
        return Held(guard="mode", because="mode is approve: a person has to agree first")
    return Held(guard="mode", because="mode is watch: Sentinel only says what it would do")


GUARDS: dict[str, Callable[[Situation], Held | None]] = {
    "journal_unreadable": _journal_unreadable,
    "stop_file": _stop_file,
    "paused": _paused,
    "human_stop": _human_stop,
    "unwitnessed_stop": _unwitnessed_stop,
    "cannot_recreate": _cannot_recreate,
    "starting": _starting,
    "crash_looping": _crash_looping,
    "restart_cannot_help": _restart_cannot_help,
    "many_failing": _many_failing,
    "open_intent": _open_intent,
    "cooldown": _cooldown,
    "budget_target": _budget_target,
    "budget_host": _budget_host,
    "mode": _mode,
}
"""In the order in which they are said: what a person did first, the mode last."""

CLEAR: dict[str, str] = {
    "journal_unreadable": "the journal can be read and written",
    "stop_file": "there is no STOP file",
    "paused": "nobody has paused it",
    "human_stop": "no person has stopped it",
    "unwitnessed_stop": "it has not stopped unseen",
    "cannot_recreate": "its container is there",
    "starting": "it is not loading",
    "crash_looping": "Docker is not starting it again",
    "restart_cannot_help": "nothing says that a restart cannot help",
    "many_failing": "few targets or none fail together",
    "open_intent": "nothing is being done to it",
    "cooldown": "no action on it is recent",
    "budget_target": "its budget is not spent",
    "budget_host": "the budget of the host is not spent",
    "mode": "the mode is act",
}
"""What is said of each guard while it does not hold."""

BEFORE_A_STEP: frozenset[str] = frozenset(
    {"journal_unreadable", "stop_file", "paused", "human_stop"}
)
"""Asked again before each step of an intent that is already under way."""


def _span(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    return f"{minutes} min" if minutes else f"{span.total_seconds():.0f} s"
