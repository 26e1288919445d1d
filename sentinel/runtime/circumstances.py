"""Gathers what guards look at: of the target, of what is around it, of what has been done.

Nothing is decided here, and nothing is asked of the outside.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path

from sentinel.core.dispatch.interval import contains
from sentinel.core.model.container import Status
from sentinel.core.model.intent import Action, Intent, Mode
from sentinel.core.model.target import State
from sentinel.core.policy.change import Change
from sentinel.core.policy.guard import PoolState, Situation
from sentinel.core.recreate.inspected import TX
from sentinel.core.recreate.preflight import orchestrator_of
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.plan import Plan
from sentinel.runtime.posted import is_posted
from sentinel.runtime.recreation import tx_of
from sentinel.runtime.target import Target
from sentinel.store.journal import Pause
from sentinel.store.memory import Memory

_DAY, _WEEK = timedelta(days=1), timedelta(days=7)
_FRESH = timedelta(minutes=5)  # a container made so lately may be somebody's deploy
_UP = (Status.RUNNING, Status.PAUSED)
_HEALTHY = (State.IDLE, State.SERVING, State.SATURATED)
_GPU_FAULTS = ("GPUXid", "GPULost", "GPUDriverHung")


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What guards look at that is the same for every target."""

    recent: Sequence[Intent]
    week: Sequence[Intent]
    open: Sequence[Intent]
    pauses: Sequence[Pause]
    stop_file: str | None


class Circumstances:
    def __init__(
        self,
        memory: Memory,
        casebook: Casebook,
        gpus_of: Callable[[str], Sequence[str]] = lambda _name: (),
    ) -> None:
        self._memory, self._casebook, self._gpus_of = memory, casebook, gpus_of
        self.targets: Mapping[str, Target] = {}

    def background(self, plan: Plan, now: datetime) -> Background:
        """What is the same for every target, until something is written down."""
        journal = self._memory.journal
        week = journal.since(now - _WEEK)
        return Background(
            recent=[i for i in week if i.reserved_at and i.reserved_at >= now - _DAY],
            week=week,
            open=journal.open(),
            pauses=journal.pauses(now),
            stop_file=next((path for path in plan.stop_files if Path(path).exists()), None),
        )

    def of(  # noqa: PLR0913 - what a situation depends on
        self,
        target: Target,
        action: Action,
        mode: Mode,
        now: datetime,
        plan: Plan,
        *,
        known: Background | None = None,
        change: Change | None = None,
        only_posted: bool = False,
    ) -> Situation:
        known = known or self.background(plan, now)
        pause = _pause_of(target.name, known)
        launches = self._memory.launches.since(target.name, now - _DAY)
        cause = self.cause_of(target)
        return Situation(
            now=now,
            target=target.name,
            action=action,
            mode=mode,
            state=target.standing.state,
            ending=target.launch.ending if target.launch else None,
            running=target.container.status in _UP,
            container_gone=target.is_gone,
            removed_once_stopped=target.container.auto_remove,
            orchestrator=orchestrator_of(target.container.labels),
            start_fails=start_fails(target),
            crashed=target.crashed,
            another_model=target.answers_as_another,
            cause=cause,
            change=change,
            paused_by=pause.by if pause else None,
            paused_until=pause.until if pause else None,
            stop_file=known.stop_file,
            maintenance=maintenance_of(target.name, plan, now),
            only_posted=only_posted,
            accept_external=plan.accept_external,
            deployed_at=self._deployed_at(target, now),
            pulled_at=target.pulled_at,
            pool=self._pool_of(target, plan),
            gpu_fault=self._gpu_fault(target),
            gpu_starts=list(self._gpu_starts(target, plan, now)),
            failing={n: t.failing_since for n, t in self.targets.items() if t.failing_since},
            many_failing=plan.many_failing,
            open_intent=_open_on(target, known),
            recent=known.recent,
            remedied=[i for i in known.week if _cures(i, target, cause)],
            launches=launches,
            cooldown=plan.cooldown,
            budget=plan.budget,
            journal_trouble=self._memory.trouble,
        )

    def without_target(self, intent: Intent, now: datetime, plan: Plan) -> Situation:
        """Of one whose container cannot be seen now: what people want still holds."""
        known, name = self.background(plan, now), intent.wish.target
        pause = _pause_of(name, known)
        return Situation(
            now=now,
            target=name,
            action=intent.wish.action,
            mode=intent.wish.mode,
            state=State.UNKNOWN,
            paused_by=pause.by if pause else None,
            paused_until=pause.until if pause else None,
            stop_file=known.stop_file,
            journal_trouble=self._memory.trouble,
        )

    def cause_of(self, target: Target) -> str:
        """What the trouble of a target has been put down to; empty while nobody knows."""
        case = self._casebook.case_of_target(target.name)
        found = str(case.incident.diagnosis.get("cause") or "") if case else ""
        if found:
            return found
        ending = target.launch.ending if target.launch else None
        return ending.cause if ending is not None and ending.is_failure else ""

    def _deployed_at(self, target: Target, now: datetime) -> datetime | None:
        """When somebody else made its container anew, if that was just now. Once it has served
        the deploy is over.
        """
        container, launch = target.container, target.launch
        made = container.created_at
        has_served = launch is not None and launch.ready_at is not None
        if made is None or has_served or now - made >= _FRESH:
            return None
        launches = self._memory.launches.since(target.name, now - _DAY)
        if all(launch.container_id == container.id for launch in launches):
            return None
        ours = self._memory.journal.last_made_anew(target.name)
        if ours is not None and container.labels.get(TX) == tx_of(ours):
            return None
        return made

    def _pool_of(self, target: Target, plan: Plan) -> PoolState | None:
        name = plan.pool_of(target.name)
        if name is None:
            return None
        healthy = {
            other.name: other.standing.state
            for other in self.targets.values()
            if other.name != target.name
            and plan.pool_of(other.name) == name
            and other.standing.state in _HEALTHY
            and not other.crashed
        }
        return PoolState(
            name=name,
            min_healthy=plan.min_healthy.get(name, 1),
            has_switch=name in plan.switched,
            healthy=sorted(healthy),
            saturated=sorted(n for n, state in healthy.items() if state is State.SATURATED),
        )

    def _gpu_fault(self, target: Target) -> str:
        """What the alerts of our own rules say of its GPUs, or of the driver of all."""
        uses_gpus = bool(target.container.devices)
        for case in self._casebook.cases.values():
            for alert in case.firing:
                if alert.alertname not in _GPU_FAULTS or is_posted(alert):
                    continue
                labels = alert.labels
                mine = labels.get("target") == target.name and bool(labels.get("gpu"))
                everybodys = alert.alertname == "GPUDriverHung" and uses_gpus
                if mine or everybodys:
                    return alert.annotations.get("summary") or alert.alertname
        return ""

    def _gpu_starts(self, target: Target, plan: Plan, now: datetime) -> Iterator[str]:
        mine = set(self._gpus_of(target.name))
        for other in self.targets.values():
            if other.name == target.name or other.standing.state is not State.STARTING:
                continue
            deadline = plan.target(other.name).patience.startup_deadline
            began = other.container.started_at
            is_late = began is None or now - began > deadline
            if not is_late and mine & set(self._gpus_of(other.name)):
                yield other.name


def maintenance_of(name: str, plan: Plan, now: datetime) -> str | None:
    """The time of maintenance that a target is in, by name."""
    for interval, globs in plan.maintenance:
        if any(fnmatchcase(name, glob) for glob in globs) and contains(
            plan.intervals[interval], now
        ):
            return interval
    return None


def _pause_of(name: str, known: Background) -> Pause | None:
    return next((pause for pause in known.pauses if pause.target in (None, name)), None)


def _open_on(target: Target, known: Background) -> Intent | None:
    for intent in known.open:
        if target.name == intent.wish.target or target.container.id == intent.wish.container_id:
            return intent
    return None


def _cures(intent: Intent, target: Target, cause: str) -> bool:
    wish = intent.wish
    is_cure = wish.action is not Action.RESTORE and intent.closed_at is not None
    return is_cure and wish.target == target.name and wish.cause == cause


def start_fails(target: Target) -> bool:
    """Its last start ended in failure before it was ready."""
    launch = target.launch
    if launch is None or launch.ready_at is not None:
        return False
    if launch.ending is not None:
        return launch.ending.is_failure
    before = target.previous_ending
    return before is not None and before.is_failure and not target.previous_was_ready


def is_looping(target: Target) -> bool:
    """Docker starts it again and again, and it does not get to serve."""
    is_down = target.container.status in (Status.EXITED, Status.DEAD)
    return not is_down and (target.standing.state is State.RESTARTING or start_fails(target))
