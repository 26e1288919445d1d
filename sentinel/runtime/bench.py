"""The one pair of hands: what is prepared for it, what it is at, and what is told of that.

A step is prepared in a turn and carried out once the turn has been committed: nothing is
ever done that the journal does not know of.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sentinel.core.model.incident import incident_id
from sentinel.core.model.intent import Intent, Outcome
from sentinel.core.policy.guard import Held
from sentinel.ports import Clock
from sentinel.runtime.evidence import Evidence, Scene
from sentinel.runtime.history import History
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.target import Target
from sentinel.runtime.tries import Tries
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_MEMORY_WITHIN = 120.0  # seconds
_LAUNCHES = 5  # of the last ones, kept with the evidence

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """An intent that came to its end in this turn."""

    intent: Intent
    outcome: Outcome
    because: str


class Bench:
    def __init__(  # noqa: PLR0913, PLR0917 - one part of each kind
        self,
        clock: Clock,
        memory: Memory,
        history: History,
        inbox: Inbox,
        lane: Lane,
        evidence: Evidence | None = None,
        gpus_held: Callable[[Collection[str], float], bool] = lambda _ids, _since: False,
    ) -> None:
        self._gpus_held = gpus_held
        self._clock, self._memory, self._history = clock, memory, history
        self._inbox, self._lane, self._evidence = inbox, lane, evidence
        self._ready: list[Callable[[], None]] = []
        self.at: int | None = None  # the intent that is in the lane
        self.tries = Tries(clock)
        self.held: dict[int, str] = {}  # by number of the intent: the guard that was told
        self._touched = False

    @property
    def overdue(self) -> bool:
        return self._lane.overdue(self._clock.monotonic())

    @property
    def is_free(self) -> bool:
        return self._lane.busy_since is None and not self._ready

    def prepare(
        self,
        intent: Intent,
        work: Callable[[], T],
        *,
        deadline: float,
        answered: Callable[[LaneAnswer[T]], None],
        touches: bool = True,
    ) -> None:
        """Have `work` done in the lane once the turn is committed, and `answered` on the loop."""

        def take(answer: LaneAnswer[T]) -> None:
            self.at, self._touched = None, self._touched or touches
            answered(answer)

        def submit() -> None:
            self.at = intent.number
            self._lane.submit(
                work,
                now=self._clock.monotonic(),
                deadline=deadline,
                deliver=lambda answer: self._inbox.put(lambda: take(answer)),
            )

        self._ready.append(submit)

    def forget_prepared(self) -> None:
        """What was prepared in a turn that was not committed is in no journal."""
        self._ready.clear()

    def go(self) -> None:
        """Carry out what was prepared. Call only after it has been committed."""
        ready, self._ready = self._ready, []
        for call in ready:
            call()

    def has_touched(self) -> bool:
        """Whether a step was done since this was last asked: then it is time to look."""
        touched, self._touched = self._touched, False
        return touched

    def saving(self, intent: Intent, target: Target, now: datetime) -> Callable[[], None]:
        """Evidence first: what there is, before the first step; nothing for a step repeated."""
        evidence, number = self._evidence, intent.wish.incident
        if evidence is None or number is None or intent.has_begun:
            return lambda: None
        scene = Scene(
            incident=incident_id(number),
            intent=intent.id,
            container_id=intent.wish.container_id,
            started_at=target.container.started_at,
            metrics=target.last_body,
            launches=self._memory.launches.facts(target.name, _LAUNCHES),
        )

        def save() -> None:
            if saved := evidence.save(scene, now):
                says = f"saved before anything is done: {', '.join(saved)}"
                self._inbox.put(lambda: self.tell(intent, events.EVIDENCE_SAVED, says, now))

        return save

    def must_wait_for_memory(self, intent: Intent, container_ids: Collection[str]) -> bool:
        """Whether what was stopped has not let go of its GPU yet: two do not fit.

        For a while only; what never lets go is for the start that fails to tell.
        """
        since = self.tries.answered_at(intent.number)
        if self._clock.monotonic() - since > _MEMORY_WITHIN:
            return False
        return self._gpus_held(container_ids, since)

    def hold(
        self, intent: Intent, step: str, target: Target | None, held: Sequence[Held], now: datetime
    ) -> None:
        if target is not None:
            target.held_action, target.held = intent.wish.action, tuple(held)
        guard, because = held[0].guard, held[0].because
        if self.held.get(intent.number) == guard:
            return
        self.held[intent.number] = guard
        self.tell(intent, events.INTENT_HELD, f"before {step}: {because}", now, guard=guard)

    def let_go(self, intent: Intent, target: Target | None) -> None:
        """No guard holds it any more."""
        self.held.pop(intent.number, None)
        if target is not None:
            target.held_action, target.held = None, ()

    def close(
        self,
        intent: Intent,
        outcome: Outcome,
        because: str,
        now: datetime,
        *,
        patch: str | None = None,
    ) -> Settled:
        self._memory.journal.close(intent, outcome, because, now)
        self.tries.forget(intent.number)
        self.held.pop(intent.number, None)
        event = events.INTENT_EXPIRED if outcome is Outcome.EXPIRED else events.INTENT_CLOSED
        self.tell(intent, event, because, now, outcome=outcome, patch=patch)
        return Settled(intent=intent, outcome=outcome, because=because)

    def tell(  # noqa: PLR0913 - what is told of an intent
        self,
        intent: Intent,
        event: str,
        because: str,
        now: datetime,
        *,
        outcome: Outcome | None = None,
        guard: str | None = None,
        patch: str | None = None,
    ) -> None:
        self._history.write(
            event,
            because,
            at=now,
            target=intent.wish.target,
            incident=intent.wish.incident,
            intent=intent.id,
            action=intent.wish.action,
            outcome=outcome,
            guard=guard,
            patch=patch,
        )
