"""What was decided, written down: an intent, or why there is none, or that a person is called.

Each is said once: what stands as it stood is not said again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel import __version__
from sentinel.core.model.intent import Action, Intent, Mode, Outcome, Wish
from sentinel.core.model.record import SENTINEL
from sentinel.core.policy.change import Change
from sentinel.core.policy.guard import Held
from sentinel.runtime.casebook import Case, Casebook
from sentinel.runtime.choose import Step
from sentinel.runtime.history import History
from sentinel.runtime.plan import Plan
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What an alert asks for, and what holds it."""

    case: Case
    target: Target
    step: Step
    mode: Mode
    held: Sequence[Held]
    because: str
    change: Change | None


class Resolutions:
    def __init__(self, memory: Memory, history: History, casebook: Casebook) -> None:
        self._memory, self._history, self._casebook = memory, history, casebook
        self._told: dict[int, set[tuple[str, tuple[str, ...]]]] = {}

    def hold(self, weighed: Weighed, plan: Plan, now: datetime) -> Decision | None:
        case, target, step, held = weighed.case, weighed.target, weighed.step, weighed.held
        first, action, number = held[0], step.rung.action, case.incident.number
        says = (action, tuple(h.guard for h in held))
        told = self._told.setdefault(number, set())
        if says in told:
            return None  # also where guards take turns, as in a crash loop
        told.add(says)
        if first.guard not in _SILENT:
            self._memory.scorecard.note(
                target=target.name,
                incident=number,
                remedy=step.remedy.title,
                action=action,
                guard=first.guard,
                deadline=now + (step.rung.deadline or plan.verify_within),
                now=now,
            )
        if first.guard == "many_failing":
            self.call(case, (), now, first.because)
        change = weighed.change
        self._history.write(
            events.INTENT_HELD,
            first.because,
            at=now,
            target=target.name,
            incident=number,
            action=action,
            guard=first.guard,
            remedy=step.remedy.title,
            would=f"{action} because {weighed.because}",
            patch=change.patch or None if change is not None else None,
        )
        if first.guard in _SILENT:
            return None
        return Decision(
            case=case, action=action, kind="held", because=first.because, guard=first.guard
        )

    def resolve(self, weighed: Weighed, plan: Plan, now: datetime) -> Decision | None:
        """Propose it, or reserve it: whichever the mode says."""
        case, target, change = weighed.case, weighed.target, weighed.change
        if target.container.started_at is None:
            return None
        step, action = weighed.step, weighed.step.rung.action
        wish = Wish(
            target=target.name,
            action=action,
            mode=weighed.mode,
            because=weighed.because,
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
        intent = self.write_down(wish, change, plan, now)
        if intent is None:
            return None
        self.forget(case, target)
        kind = "proposed" if intent.reserved_at is None else "reserved"
        return Decision(case=case, action=action, kind=kind, because=weighed.because, intent=intent)

    def write_down(
        self, wish: Wish, change: Change | None, plan: Plan, now: datetime
    ) -> Intent | None:
        """Into the journal and the history; None if something is being done already."""
        journal = self._memory.journal
        if wish.mode is Mode.APPROVE:
            intent = journal.propose(wish, now, now + plan.approval_expires)
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
            config=plan.fingerprint[:12] or None,
            version=__version__,
        )
        return intent

    def call(
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

    def forget(self, case: Case, target: Target | None) -> None:
        self._told.pop(case.incident.number, None)
        if target is not None:
            target.held_action, target.held = None, ()

    def forget_told(self) -> None:
        """What was said in a turn that was not committed has not been said."""
        self._told.clear()


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
