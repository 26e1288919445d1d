"""From firing alerts to what is done, asked for, or held back, and the sentence for it.

Nothing is done here: a decision ends as a row in the journal, or as a record of why not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel import __version__
from sentinel.core.model.intent import STEPS, Action, Intent, Mode, Outcome, Wish, strictest
from sentinel.core.model.record import SENTINEL
from sentinel.core.model.target import Completion
from sentinel.core.policy.change import Change
from sentinel.core.policy.guard import (
    BEFORE_A_STEP,
    BEFORE_THE_FIRST,
    Held,
    Situation,
    holds,
)
from sentinel.runtime.casebook import Case, Casebook
from sentinel.runtime.choose import Chooser, Step
from sentinel.runtime.circumstances import Background, Circumstances
from sentinel.runtime.history import History
from sentinel.runtime.plan import Plan
from sentinel.runtime.prospects import Prospects
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_SILENT = ("external_alert", "unconfirmed")  # held without a message of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided for one incident in this turn, for whoever tells people."""

    case: Case
    action: Action
    kind: str  # held | reserved | proposed | called
    because: str
    guard: str | None = None
    intent: Intent | None = None


class Decider:
    def __init__(
        self,
        memory: Memory,
        history: History,
        casebook: Casebook,
        plan: Plan,
        circumstances: Circumstances,
        prospects: Prospects,
    ) -> None:
        self._memory, self._history, self._casebook = memory, history, casebook
        self.circumstances, self.prospects = circumstances, prospects
        self.chooser = Chooser(memory, casebook, circumstances)
        self.plan = plan
        self._told: dict[int, set[tuple[str, tuple[str, ...]]]] = {}

    def decide(self, targets: Mapping[str, Target], now: datetime) -> list[Decision]:
        made: list[Decision] = []
        self.circumstances.targets = targets
        for case in list(self._casebook.cases.values()):
            subject = case.incident.subject
            target = targets.get(subject.name) if subject.kind == "target" else None
            decision = self._for_case(case, target, now)
            if decision is not None:
                made.append(decision)
        return made

    def guards_before_step(
        self, intent: Intent, target: Target | None, now: datetime
    ) -> tuple[Held, ...]:
        """The guards that are asked again just before each step."""
        if target is None:
            situation = self.circumstances.without_target(intent, now, self.plan)
        else:
            situation = self.situation(target, intent.wish.action, intent.wish.mode, now)
        asked = BEFORE_A_STEP if intent.has_begun else BEFORE_THE_FIRST
        if self._memory.is_whole and intent.has_begun:
            asked -= {"journal_unreadable"}  # it was written down: better done than half done
        asked -= set(intent.wish.forced)
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
        if intent.wish.action is not Action.RESTORE and (case is None or not case.firing):
            return "no alert asks for it any more"
        return ""

    def background(self, now: datetime) -> Background:
        """What is the same for every target, until something is written down."""
        return self.circumstances.background(self.plan, now)

    def situation(  # noqa: PLR0913 - what a situation depends on
        self,
        target: Target,
        action: Action,
        mode: Mode,
        now: datetime,
        known: Background | None = None,
        *,
        change: Change | None = None,
        only_posted: bool = False,
    ) -> Situation:
        return self.circumstances.of(
            target,
            action,
            mode,
            now,
            self.plan,
            known=known,
            change=change,
            only_posted=only_posted,
        )

    def _for_case(self, case: Case, target: Target | None, now: datetime) -> Decision | None:
        tried = self._memory.journal.of_incident(case.incident.number)
        if any(intent.closed_at is None for intent in tried):
            self._forget(case, target)
            return None
        step = self.chooser.step_for(case, target, self.plan, now)
        if step is None:
            self._forget(case, target)
            return self._call(case, tried, now) if _in_vain(tried) else None
        action = step.rung.action
        if action is Action.PAGE or action not in STEPS or target is None:
            return None if step.is_posted else self._call(case, tried, now)
        wanted = self.chooser.wanted(target, action, step.rung, step.cause)
        change = self.prospects.of(target, wanted) if wanted is not None else None
        if wanted is not None and change is None and not self.prospects.failed(target):
            return None  # it is being looked at; a turn follows
        if action is Action.RESTART and change is not None and change.refusals:
            change = None  # then it is started again as it is
        if wanted is not None and action is not Action.RESTART and change is None:
            return None
        return self._weigh(case, target, step, change, now)

    def _weigh(
        self, case: Case, target: Target, step: Step, change: Change | None, now: datetime
    ) -> Decision | None:
        action = step.rung.action
        mode = strictest(self.plan.target(target.name).mode, step.mode)
        situation = self.situation(
            target, action, mode, now, change=change, only_posted=step.is_posted
        )
        held = holds(situation)
        target.held_action, target.held = action, held
        because = f"{step.alertname}: {target.standing.because}"
        if action is not Action.RESTART and change is not None and change.edited is not None:
            because += f"; {_in_words(change)}"
        if not held or (mode is Mode.APPROVE and [h.guard for h in held] == ["mode"]):
            return self._write_down(case, target, step, mode, because, change, now)
        return self._hold(case, target, step, held, because, change, now)

    def _hold(  # noqa: PLR0913, PLR0917 - what a refusal is told with
        self,
        case: Case,
        target: Target,
        step: Step,
        held: Sequence[Held],
        because: str,
        change: Change | None,
        now: datetime,
    ) -> Decision | None:
        first, action = held[0], step.rung.action
        says = (action, tuple(h.guard for h in held))
        told = self._told.setdefault(case.incident.number, set())
        if says in told:
            return None  # also where guards take turns, as in a crash loop
        told.add(says)
        if first.guard not in _SILENT:
            self._memory.scorecard.note(
                target=target.name,
                incident=case.incident.number,
                remedy=step.remedy.title,
                action=action,
                guard=first.guard,
                deadline=now + (step.rung.deadline or self.plan.verify_within),
                now=now,
            )
        if first.guard == "many_failing":
            self._call(case, (), now, first.because)
        self._history.write(
            events.INTENT_HELD,
            first.because,
            at=now,
            target=target.name,
            incident=case.incident.number,
            action=action,
            guard=first.guard,
            remedy=step.remedy.title,
            would=f"{action} because {because}",
            patch=change.patch or None if change is not None else None,
        )
        if first.guard in _SILENT:
            return None
        return Decision(
            case=case, action=action, kind="held", because=first.because, guard=first.guard
        )

    def _write_down(  # noqa: PLR0913, PLR0917 - what an intent is made of
        self,
        case: Case,
        target: Target,
        step: Step,
        mode: Mode,
        because: str,
        change: Change | None,
        now: datetime,
    ) -> Decision | None:
        if target.container.started_at is None:
            return None
        action = step.rung.action
        wish = Wish(
            target=target.name,
            action=action,
            mode=mode,
            because=because,
            by=SENTINEL,
            container_id=target.container.id,
            saw_started_at=target.container.started_at,
            incident=case.incident.number,
            cause=step.cause,
            remedy=step.remedy.title,
            limit=change.limit if change is not None else None,
            restores=change is not None and action is not Action.LOWER_MAX_NUM_SEQS,
            within=step.rung.deadline,
        )
        intent = self.write_down(wish, change, now)
        if intent is None:
            return None
        target.held_action, target.held = None, ()
        self._told.pop(case.incident.number, None)
        kind = "proposed" if intent.reserved_at is None else "reserved"
        return Decision(case=case, action=action, kind=kind, because=because, intent=intent)

    def write_down(self, wish: Wish, change: Change | None, now: datetime) -> Intent | None:
        """Into the journal and the history; None if something is being done already."""
        journal = self._memory.journal
        if wish.mode is Mode.APPROVE:
            intent = journal.propose(wish, now, now + self.plan.approval_expires)
            event = events.INTENT_PROPOSED
        else:
            intent, event = journal.reserve(wish, now), events.INTENT_RESERVED
        if intent is None:
            return None
        diff = change.diff if change is not None else ()
        if diff:
            journal.differ(intent, diff)
        self._history.write(
            event,
            wish.because,
            at=now,
            target=wish.target,
            incident=wish.incident,
            by=wish.by,
            intent=intent.id,
            action=wish.action,
            mode=wish.mode,
            remedy=wish.remedy or None,
            diff=list(diff) or None,
            forced=list(wish.forced) or None,
            config=self.plan.fingerprint[:12] or None,
            version=__version__,
        )
        return intent

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


def _in_words(change: Change) -> str:
    before, after = (line.partition(": ")[2] for line in change.diff)
    return f"{before} → {after}: {change.because}"


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
