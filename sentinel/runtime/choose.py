"""Chooses what a firing alert asks for: the remedy, the rung of its ladder, and what it changes.

What is known of the cause chooses with it. Nothing is decided here: guards come after.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.model.intent import Action, Intent, Mode, Outcome, strictest
from sentinel.core.policy.change import Lower, Restore, Wanted
from sentinel.core.policy.remedy import (
    SHIPPED,
    Remedy,
    Rung,
    Trial,
    cause_for,
    next_rung,
    remedy_for,
)
from sentinel.core.policy.subject import SEVERITIES
from sentinel.core.recreate.fit import CURED
from sentinel.core.recreate.inspected import ORIGINAL
from sentinel.runtime.casebook import Case, Casebook
from sentinel.runtime.circumstances import Circumstances, is_looping
from sentinel.runtime.plan import Plan
from sentinel.runtime.posted import is_posted
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

_RECENTLY = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a firing alert asks for next."""

    rung: Rung
    remedy: Remedy
    alertname: str
    cause: str
    is_posted: bool = False

    @property
    def mode(self) -> Mode:
        return strictest(Mode.ACT, self.remedy.mode, self.rung.mode)


class Chooser:
    def __init__(self, memory: Memory, casebook: Casebook, circumstances: Circumstances) -> None:
        self._memory, self._casebook = memory, casebook
        self._circumstances = circumstances

    def step_for(self, case: Case, target: Target | None, plan: Plan, now: datetime) -> Step | None:
        """What the worst alert that has a remedy asks for next; those of others come last."""
        tried = self._memory.journal.of_incident(case.incident.number)
        found = [(a, self._step(a, target, tried, plan, now)) for a in case.firing]
        steps = [(alert, step) for alert, step in found if step is not None]
        remedies = [*plan.remedies, *SHIPPED]

        def order(each: tuple[ActiveAlert, Step]) -> tuple[object, ...]:
            alert, step = each
            place = remedies.index(step.remedy)
            return is_posted(alert), -_rank(alert), _merely_pages(step, tried), place

        return min(steps, key=order)[1] if steps else None

    def wanted(
        self, target: Target, action: Action, rung: Rung | None, cause: str
    ) -> Wanted | None:
        """What of its command line is to be changed with `action`; None: nothing."""
        if action is Action.LOWER_MAX_NUM_SEQS:
            to, floor = (rung.to, rung.floor) if rung else (None, 1)
            return Lower(to=to, cause=cause, floor=floor)
        restores = action is Action.RESTORE or (
            action is Action.RESTART and self._is_to_be_restored(target, cause)
        )
        return Restore() if restores else None

    def _step(
        self,
        alert: ActiveAlert,
        target: Target | None,
        tried: Sequence[Intent],
        plan: Plan,
        now: datetime,
    ) -> Step | None:
        diagnosed = self._circumstances.cause_of(target) if target is not None else ""
        cause = cause_for(alert.alertname, diagnosed)
        remedy = remedy_for(alert.labels, plan.remedies, cause)
        if remedy is None:
            return None
        trial = Trial(
            tried=tried,
            cause=cause,
            loops=target is not None and is_looping(target),
            has_recurred=target is not None and self._has_recurred(target, cause, now),
            fired_at=alert.fired_at,
            now=now,
        )
        rung, posted = next_rung(remedy, trial), is_posted(alert)
        if rung is None or (posted and rung.action is Action.PAGE):
            return None
        return Step(
            rung=rung, remedy=remedy, alertname=alert.alertname, cause=cause, is_posted=posted
        )

    def _has_recurred(self, target: Target, cause: str, now: datetime) -> bool:
        return any(
            i.wish.target == target.name and i.wish.cause == cause and i.closed_at is not None
            for i in self._memory.journal.since(now - _RECENTLY)
        )

    def _is_to_be_restored(self, target: Target, cause: str) -> bool:
        """It runs with a lowered limit, and now it is something else that ails it."""
        if ORIGINAL not in target.container.labels or cause in CURED:
            return False
        last = self._memory.journal.last_made_anew(target.name)
        case = self._casebook.case_of_target(target.name)
        if last is None:
            return True
        same_case = case is not None and last.wish.incident == case.incident.number
        return not same_case and (not cause or cause != last.wish.cause)


def _merely_pages(step: Step, tried: Sequence[Intent]) -> bool:
    """A person is all it ever asked for: first what may be done about the other alerts."""
    if step.rung.action is not Action.PAGE:
        return False
    own = {rung.action for rung in step.remedy.ladder}
    done = (intent for intent in tried if intent.outcome is not Outcome.REFUSED)
    return not any(intent.wish.action in own for intent in done)


def _rank(alert: ActiveAlert) -> int:
    severity = alert.labels.get("severity", "")
    return SEVERITIES.index(severity) if severity in SEVERITIES else 1
