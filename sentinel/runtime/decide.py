"""From firing alerts to what is done, asked for, or held back, and the sentence for it.

Nothing is done here: a decision ends as a row in the journal, or as a record of why not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.model.container import Status
from sentinel.core.model.intent import STEPS, Action, Intent, Mode, Outcome, Wish, strictest
from sentinel.core.model.record import SENTINEL
from sentinel.core.model.target import Completion, State
from sentinel.core.policy.guard import BEFORE_A_STEP, Held, Situation, holds
from sentinel.core.policy.remedy import Rung, next_rung, remedy_for
from sentinel.core.policy.subject import SEVERITIES
from sentinel.runtime.casebook import Case, Casebook
from sentinel.runtime.history import History
from sentinel.runtime.plan import Plan
from sentinel.runtime.posted import is_posted
from sentinel.runtime.target import Target
from sentinel.store.journal import Pause
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_DAY = timedelta(days=1)
_UP = (Status.RUNNING, Status.PAUSED)
_UNWELL = (State.FAILED, State.HUNG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided for one incident in this turn, for whoever tells people."""

    case: Case
    action: Action
    kind: str  # held | reserved | proposed | called
    because: str
    guard: str | None = None
    intent: Intent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What guards look at that is the same for every target."""

    recent: Sequence[Intent]
    open: Sequence[Intent]
    pauses: Sequence[Pause]
    stop_file: str | None


class Decider:
    def __init__(self, memory: Memory, history: History, casebook: Casebook, plan: Plan) -> None:
        self._memory, self._history, self._casebook = memory, history, casebook
        self.plan = plan
        self.failing: dict[str, datetime] = {}
        self._told: dict[int, tuple[str, tuple[str, ...]]] = {}

    def decide(self, targets: Mapping[str, Target], now: datetime) -> list[Decision]:
        made: list[Decision] = []
        self.failing = {n: t.failing_since for n, t in targets.items() if t.failing_since}
        for case in list(self._casebook.cases.values()):
            subject = case.incident.subject
            target = targets.get(subject.name) if subject.kind == "target" else None
            decision = self._for_case(case, target, now)
            if decision is not None:
                made.append(decision)
        return made

    def guards_before_step(self, intent: Intent, target: Target, now: datetime) -> tuple[Held, ...]:
        """The guards that are asked again just before each step."""
        situation = self.situation(target, intent.wish.action, intent.wish.mode, now)
        asked = BEFORE_A_STEP
        if self._memory.is_whole and any(step.started_at for step in intent.steps):
            asked -= {"journal_unreadable"}  # it was written down: better done than half done
        return tuple(held for held in holds(situation) if held.guard in asked)

    def unproved(self, targets: Mapping[str, Target]) -> frozenset[str]:
        """Targets that a remedy has failed on and that have not shown since that they serve."""
        return frozenset(
            name
            for name, target in targets.items()
            if target.container.is_up
            and not _says_something(target.probe)
            and (case := self._casebook.case_of_target(name)) is not None
            and _in_vain(self._memory.journal.of_incident(case.incident.number))
        )

    def forget_told(self) -> None:
        """What was said in a turn that was not committed has not been said."""
        self._told.clear()

    def withdrawn(self, intent: Intent) -> str:
        """Why an intent of ours that nobody has begun to carry out is not wanted any more."""
        if intent.wish.by != SENTINEL or intent.wish.incident is None:
            return ""
        mode = self.plan.target(intent.wish.target).mode
        if strictest(mode, intent.wish.mode) is not intent.wish.mode:
            return f"the mode is {mode} now"
        case = self._casebook.cases.get(intent.wish.incident)
        if case is None or not case.firing:
            return "no alert asks for it any more"
        return ""

    def background(self, now: datetime) -> Background:
        """What is the same for every target, until something is written down."""
        journal = self._memory.journal
        return Background(
            recent=journal.since(now - _DAY),
            open=journal.open(),
            pauses=journal.pauses(now),
            stop_file=next((path for path in self.plan.stop_files if Path(path).exists()), None),
        )

    def situation(
        self,
        target: Target,
        action: Action,
        mode: Mode,
        now: datetime,
        known: Background | None = None,
    ) -> Situation:
        known = known or self.background(now)
        pause = next((p for p in known.pauses if p.target in (None, target.name)), None)
        mine = [
            intent
            for intent in known.open
            if target.name == intent.wish.target or target.container.id == intent.wish.container_id
        ]
        return Situation(
            now=now,
            target=target.name,
            action=action,
            mode=mode,
            state=target.standing.state,
            ending=target.launch.ending if target.launch else None,
            running=target.container.status in _UP,
            paused_by=pause.by if pause else None,
            paused_until=pause.until if pause else None,
            stop_file=known.stop_file,
            open_intent=mine[0] if mine else None,
            recent=known.recent,
            launches=self._memory.launches.since(target.name, now - _DAY),
            failing=self.failing,
            many_failing=self.plan.many_failing,
            container_gone=target.is_gone,
            cooldown=self.plan.cooldown,
            budget=self.plan.budget,
            journal_trouble=self._memory.trouble,
        )

    def _for_case(self, case: Case, target: Target | None, now: datetime) -> Decision | None:
        tried = self._memory.journal.of_incident(case.incident.number)
        if any(intent.closed_at is None for intent in tried):
            self._forget(case, target)
            return None
        found = self._next(case, target, tried)
        if found is None:
            self._forget(case, target)
            return self._call(case, tried, now) if _in_vain(tried) else None
        rung, alertname, mode = found
        if rung.action is Action.PAGE or rung.action not in STEPS or target is None:
            return self._call(case, tried, now)
        return self._weigh(case, target, rung, alertname, mode, now)

    def _next(
        self, case: Case, target: Target | None, tried: Sequence[Intent]
    ) -> tuple[Rung, str, Mode | None] | None:
        """The next rung for the worst alert that has a remedy."""

        def rank(severity: str) -> int:
            return SEVERITIES.index(severity) if severity in SEVERITIES else 1

        counted = [alert for alert in case.firing if self._reaches_a_ladder(alert, target)]
        firing = sorted(counted, key=lambda a: -rank(a.labels.get("severity", "")))
        for alert in firing:
            remedy = remedy_for(alert.labels, self.plan.remedies)
            rung = next_rung(remedy, tried) if remedy else None
            if remedy is not None and rung is not None:
                mode = strictest(Mode.ACT, remedy.mode, rung.mode)
                return rung, alert.alertname, mode
        return None

    def _reaches_a_ladder(self, alert: ActiveAlert, target: Target | None) -> bool:
        """What others post does only if that is wanted, and if our own witnesses agree."""
        if not is_posted(alert):
            return True
        agrees = target is not None and (target.crashed or target.standing.state in _UNWELL)
        return self.plan.accept_external and agrees

    def _weigh(
        self,
        case: Case,
        target: Target,
        rung: Rung,
        alertname: str,
        mode: Mode | None,
        now: datetime,
    ) -> Decision | None:
        mode = strictest(self.plan.target(target.name).mode, mode)
        situation = self.situation(target, rung.action, mode, now)
        held = holds(situation)
        target.held_action, target.held = rung.action, held
        because = f"{alertname}: {target.standing.because}"
        if not held or (mode is Mode.APPROVE and [h.guard for h in held] == ["mode"]):
            return self._write_down(case, target, rung, mode, because, now)
        first = held[0]
        says = (rung.action, tuple(h.guard for h in held))
        if self._told.get(case.incident.number) == says:
            return None
        self._told[case.incident.number] = says
        if first.guard == "many_failing":
            self._call(case, (), now, first.because)
        self._history.write(
            events.INTENT_HELD,
            first.because,
            at=now,
            target=target.name,
            incident=case.incident.number,
            action=rung.action,
            guard=first.guard,
            would=f"{rung.action} because {because}",
        )
        return Decision(
            case=case, action=rung.action, kind="held", because=first.because, guard=first.guard
        )

    def _write_down(
        self, case: Case, target: Target, rung: Rung, mode: Mode, because: str, now: datetime
    ) -> Decision | None:
        if target.container.started_at is None:
            return None
        wish = Wish(
            target=target.name,
            action=rung.action,
            mode=mode,
            because=because,
            by=SENTINEL,
            container_id=target.container.id,
            saw_started_at=target.container.started_at,
            incident=case.incident.number,
        )
        journal = self._memory.journal
        if mode is Mode.APPROVE:
            intent = journal.propose(wish, now, now + self.plan.approval_expires)
            kind, event = "proposed", events.INTENT_PROPOSED
        else:
            intent = journal.reserve(wish, now)
            kind, event = "reserved", events.INTENT_RESERVED
        if intent is None:
            return None
        target.held_action, target.held = None, ()
        self._told.pop(case.incident.number, None)
        self._history.write(
            event,
            because,
            at=now,
            target=target.name,
            incident=case.incident.number,
            intent=intent.id,
            action=rung.action,
            mode=mode,
        )
        return Decision(case=case, action=rung.action, kind=kind, because=because, intent=intent)

    def _call(
        self, case: Case, tried: Sequence[Intent], now: datetime, why: str = ""
    ) -> Decision | None:
        number = case.incident.number
        if not self._memory.incidents.call_person(number, now):
            return None
        because = why or _why_a_person(tried)
        self._casebook.refresh_incident(number)
        self._history.write(
            events.PERSON_CALLED,
            because,
            at=now,
            target=case.incident.subject.name if case.incident.subject.kind == "target" else None,
            incident=number,
        )
        return Decision(case=case, action=Action.PAGE, kind="called", because=because)

    def _forget(self, case: Case, target: Target | None) -> None:
        self._told.pop(case.incident.number, None)
        if target is not None:
            target.held_action, target.held = None, ()


def _says_something(probe: Completion | None) -> bool:
    """It serves, or asking again would never tell."""
    return probe is not None and (probe.ok or probe.unsupported or probe.unauthorised)


def _why_a_person(tried: Sequence[Intent]) -> str:
    last = next((i for i in reversed(tried) if i.outcome is not None), None)
    match last.outcome if last else None:
        case Outcome.EXPIRED if last:
            return f"nobody agreed in time to {last.wish.action}"
        case Outcome.REJECTED if last:
            return f"{last.wish.action} was turned down: {last.closed_because}"
        case _ if last:
            return f"{last.wish.action} did not help: {last.closed_because}"
    return "nothing is left that Sentinel may try by itself"


def _in_vain(tried: Sequence[Intent]) -> bool:
    """The last thing done did not work: a person is called, even if no alert fires any more."""
    return bool(tried) and tried[-1].outcome is Outcome.FAILED
