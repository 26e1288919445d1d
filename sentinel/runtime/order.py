"""Carries out what a person orders done to a target: held by every guard but the mode.

The order is its own approval. What would be changed is looked at first, so the answer may
come a little later; it says what was decided, what holds it, and what it would change.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sentinel.core.model.command import Act
from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.model.incident import Subject
from sentinel.core.model.intent import Action, Intent, Mode, Wish
from sentinel.core.model.moment import stamp_or_none
from sentinel.core.policy.change import Change, Lower, Wanted
from sentinel.core.policy.guard import GUARDS, NEVER_FORCED, Held, holds
from sentinel.core.policy.remedy import cause_for
from sentinel.ports import Clock
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.decide import Decider
from sentinel.runtime.target import Target
from sentinel.runtime.watch import Watch
from sentinel.store.memory import Memory
from sentinel.store.picture import intent_json

Json = dict[str, Any]


class Later:
    """An answer that waits for a look at the world. Of the loop's thread alone."""

    def __init__(self) -> None:
        self._answer: Json | BaseException | None = None
        self._told: Callable[[Json | BaseException], None] | None = None

    def give(self, find: Callable[[], Json]) -> None:
        try:
            self._answer = find()
        except SentinelError as error:
            self._answer = error
        if self._told is not None:
            self._told(self._answer)

    def then(self, told: Callable[[Json | BaseException], None]) -> None:
        """Have it told, now or once it is there."""
        self._told = told
        if self._answer is not None:
            told(self._answer)


class Orders:
    def __init__(
        self, clock: Clock, memory: Memory, watch: Watch, decider: Decider, casebook: Casebook
    ) -> None:
        self._clock, self._memory, self._watch = clock, memory, watch
        self._decider, self._casebook = decider, casebook

    def take(self, order: Act) -> Json | Later:
        """Raises `Permanent` if it makes no sense."""
        target = self._target(order)
        unknown = [guard for guard in order.force if guard not in GUARDS]
        if unknown:
            raise Permanent(f"there is no guard {unknown[0]}", hint="See sentinel explain.")
        wanted = self._wanted(order, target)
        if wanted is None:
            return self._answer(order, None)
        later = Later()

        def looked(found: Change | SentinelError) -> None:
            later.give(lambda: self._looked(order, found))

        self._decider.prospects.ask(target, wanted, looked)
        return later

    def _looked(self, order: Act, found: Change | SentinelError) -> Json:
        if isinstance(found, SentinelError):
            if order.action is not Action.RESTART:
                raise found
            return self._answer(order, None)
        if order.action is Action.RESTART and found.refusals:
            return self._answer(order, None)  # then it is started again as it is
        return self._answer(order, found)

    def _answer(self, order: Act, change: Change | None) -> Json:
        now, target = self._clock.now(), self._target(order)
        situation = self._decider.situation(target, order.action, Mode.ACT, now, change=change)
        forced = frozenset(order.force) - NEVER_FORCED
        held = [_held(one) for one in holds(situation, but=forced | {"mode"})]
        diff = list(change.diff) if change is not None else []
        patch = {"patch": change.patch} if change is not None and change.patch else {}
        if change is not None and change.edited is None and not held:
            refusal = change.refusals[0]  # that one cannot be done, whoever wants it
            raise Permanent(refusal.because, status=409, guard=refusal.guard)
        if held or order.dry_run:
            return {"intent": None, "held": held, "diff": diff, **patch}
        with self._memory.together():
            intent = self._write_down(order, target, change, now)
        if intent is None:
            raise Permanent(
                "something is being done to it already", guard="open_intent", status=409
            )
        return {"intent": self._picture(intent), "held": [], "diff": diff, **patch}

    def _write_down(
        self, order: Act, target: Target, change: Change | None, now: datetime
    ) -> Intent | None:
        if target.container.started_at is None:
            raise Permanent(f"{order.target} has never been started", status=409)
        subject = Subject(kind="target", name=target.name)
        says = f"{order.by} asked for {order.action}"
        wish = Wish(
            target=target.name,
            action=order.action,
            mode=Mode.ACT,
            because=says,
            by=order.by,
            container_id=target.container.id,
            saw_started_at=target.container.started_at,
            incident=self._casebook.open(subject, "info", says, now),
            cause=self._cause(target),
            limit=change.limit if change is not None else None,
            restores=change is not None and order.action is not Action.LOWER_MAX_NUM_SEQS,
            forced=tuple(order.force),
        )
        return self._decider.resolutions.write_down(wish, change, self._decider.plan, now)

    def _wanted(self, order: Act, target: Target) -> Wanted | None:
        cause = self._cause(target)
        if order.action is Action.LOWER_MAX_NUM_SEQS:
            return Lower(to=order.to, cause=cause or "preemption_storm", floor=1)
        return self._decider.chooser.wanted(target, order.action, None, cause)

    def _cause(self, target: Target) -> str:
        case = self._casebook.case_of_target(target.name)
        diagnosed = self._decider.circumstances.cause_of(target)
        implied = (cause_for(alert.alertname, diagnosed) for alert in (case.firing if case else ()))
        return diagnosed or next((cause for cause in implied if cause), "")

    def _target(self, order: Act) -> Target:
        target = self._watch.targets.get(order.target)
        if target is None:
            raise Permanent(
                f"there is no target {order.target}", hint="See sentinel status.", status=404
            )
        return target

    def _picture(self, intent: Intent) -> Json:
        row = self._memory.db.execute("SELECT * FROM intent WHERE number = ?", (intent.number,))
        return intent_json(row.fetchone())


def _held(held: Held) -> Json:
    return {"guard": held.guard, "because": held.because, "until": stamp_or_none(held.until)}
