"""From firing alerts to what is done, asked for, or held back, and the sentence for it.

Nothing is done here: a decision ends as a row in the journal, or as a record of why not.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sentinel.core.model.intent import STEPS, Action, Intent, Mode, Outcome, strictest
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
from sentinel.runtime.resolutions import Decision, Resolutions, Weighed
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory


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
        self._memory, self._casebook = memory, casebook
        self.circumstances, self.prospects = circumstances, prospects
        self.chooser = Chooser(memory, casebook, circumstances)
        self.resolutions = Resolutions(memory, history, casebook)
        self.plan = plan

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
            self.resolutions.forget(case, target)
            return None
        step = self.chooser.step_for(case, target, self.plan, now)
        if step is None:
            self.resolutions.forget(case, target)
            return self.resolutions.call(case, tried, now) if _in_vain(tried) else None
        action = step.rung.action
        if action is Action.PAGE or action not in STEPS or target is None:
            return None if step.is_posted else self.resolutions.call(case, tried, now)
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
        weighed = Weighed(
            case=case,
            target=target,
            step=step,
            mode=mode,
            held=held,
            because=because,
            change=change,
        )
        if not held or (mode is Mode.APPROVE and [h.guard for h in held] == ["mode"]):
            return self.resolutions.resolve(weighed, self.plan, now)
        return self.resolutions.hold(weighed, self.plan, now)


def _in_words(change: Change) -> str:
    before, after = (line.partition(": ")[2] for line in change.diff)
    return f"{before} → {after}: {change.because}"


def _says_something(probe: Completion | None) -> bool:
    """It serves, or asking again would never tell."""
    return probe is not None and (probe.ok or probe.unsupported or probe.unauthorised)


def _in_vain(tried: Sequence[Intent]) -> bool:
    """The last thing done did not work: a person is called, even if no alert fires any more."""
    return bool(tried) and tried[-1].outcome is Outcome.FAILED
