"""Carries out intents, one step at a time, and settles them by looking.

Level-triggered: each turn asks the journal what is open and does what comes next. A step is
begun in the journal before it is done in the world, and every step may be repeated, so a
kill at any instant costs at most the same step once more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.model.container import Container
from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.model.intent import Intent, Outcome, Step
from sentinel.core.policy.grace import stop_grace
from sentinel.core.policy.verify import verify_restart
from sentinel.ports import Clock, ContainerHands
from sentinel.runtime.decide import Decider
from sentinel.runtime.history import History
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_MARGIN = 60.0  # seconds a step may take beyond the container's own grace
_AGAIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """An intent that came to its end in this turn."""

    intent: Intent
    outcome: Outcome
    because: str


class Actor:
    def __init__(  # noqa: PLR0913, PLR0917 - one part of each kind
        self,
        hands: ContainerHands,
        clock: Clock,
        memory: Memory,
        history: History,
        decider: Decider,
        inbox: Inbox,
        lane: Lane,
    ) -> None:
        self._hands, self._clock = hands, clock
        self._memory, self._history, self._decider = memory, history, decider
        self._inbox, self._lane = inbox, lane
        self._ready: list[Callable[[], None]] = []
        self._under_way: int | None = None  # the intent whose step is in the lane
        self._not_before: dict[int, datetime] = {}
        self._held: dict[int, str] = {}
        self._touched = False
        self._closed_between: list[Settled] = []  # by an answer, between two turns

    @property
    def overdue(self) -> bool:
        return self._lane.overdue(self._clock.monotonic())

    def advance(
        self, plan: Plan, targets: dict[str, Target], now: datetime, *, engine_lost: bool
    ) -> list[Settled]:
        """Prepare the next step of each open intent, or settle it. `go` then carries it out."""
        settled, self._closed_between = self._closed_between, []
        for intent in self._memory.journal.open():
            if intent.number == self._under_way or engine_lost:
                continue
            target = targets.get(intent.wish.target)
            done = self._one(intent, target, plan, now)
            if done is not None:
                settled.append(done)
        for intent in self._memory.journal.proposed():
            if intent.expires_at is not None and now >= intent.expires_at:
                settled.append(self._expire(intent, now))
        return settled

    def go(self) -> None:
        """Carry out what was prepared. Call only after it has been committed."""
        ready, self._ready = self._ready, []
        for call in ready:
            call()

    def step_of(self, target: Target) -> str | None:
        """The step Sentinel is in the middle of, or has done since the target was last seen."""
        for intent in self._memory.journal.open():
            if intent.wish.target != target.name:
                continue
            if (step := intent.next_step) is not None:
                return step.name
            last = intent.steps[-1]
            return last.name if last.done_at is None or last.done_at >= target.seen_at else None
        return None

    def has_touched(self) -> bool:
        """Whether a step was done since this was last asked: then it is time to look."""
        touched, self._touched = self._touched, False
        return touched

    def proving(self, target: str) -> Intent | None:
        """The open intent on `target`, if there is one."""
        return next((i for i in self._memory.journal.open() if i.wish.target == target), None)

    def _one(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        step = intent.next_step
        if step is None:
            return self._prove(intent, target, now)
        if target is None:
            return self._close(intent, Outcome.FAILED, "its container is gone", now)
        if intent.reserved_at is not None and now - intent.reserved_at >= plan.verify_within:
            return self._close(
                intent, Outcome.FAILED, f"{step.name} could not be done in time", now
            )
        if now < self._not_before.get(intent.number, now):
            return None
        held = self._decider.guards_before_step(intent, target, now)
        if held:
            self._hold(intent, step, held[0].guard, held[0].because, now)
            return None
        if self._lane.busy_since is None and not self._ready:
            self._prepare(intent, step, target.container, now)
        return None

    def _prepare(self, intent: Intent, step: Step, container: Container, now: datetime) -> None:
        self._held.pop(intent.number, None)
        if step.started_at is None:
            self._memory.journal.begin(intent, step, now)
            self._tell(intent, events.STEP_STARTED, f"{step.name} {intent.wish.target}", now)
        grace = stop_grace(container)
        saw, container_id = intent.wish.saw_started_at, intent.wish.container_id

        def stop() -> None:
            self._hands.stop(container_id, if_started_at=saw, grace=grace)

        def start() -> None:
            self._hands.start(container_id, if_started_at=saw)

        work = {"stop": stop, "start": start}[step.name]

        def submit() -> None:
            self._under_way = intent.number
            self._lane.submit(
                work,
                now=self._clock.monotonic(),
                deadline=grace + _MARGIN,
                deliver=lambda answer: self._inbox.put(
                    lambda: self._answered(intent, step, answer)
                ),
            )

        self._ready.append(submit)

    def _answered(self, intent: Intent, step: Step, answer: LaneAnswer[None]) -> None:
        self._under_way, self._touched = None, True
        now, error = self._clock.now(), answer.error
        if error is None:
            with self._memory.together():
                self._memory.journal.done(intent, step, "done", now)
                self._tell(intent, events.STEP_DONE, f"{step.name}: done", now)
                if step.position == len(intent.steps) - 1:
                    self._memory.journal.expect_proof(
                        intent, now + self._decider.plan.verify_within
                    )
            return
        says = error.message if isinstance(error, SentinelError) else repr(error)
        if isinstance(error, Permanent):
            with self._memory.together():
                outcome = Outcome.FAILED if step.position else Outcome.REFUSED
                self._closed_between.append(
                    self._close(intent, outcome, f"{step.name}: {says}", now)
                )
            return
        self._not_before[intent.number] = now + _AGAIN
        self._tell(intent, events.STEP_DONE, f"{step.name} is not done yet: {says}", now)

    def _prove(self, intent: Intent, target: Target | None, now: datetime) -> Settled | None:
        verdict = verify_restart(
            intent,
            target.container if target else None,
            target.launch if target else None,
            target.probe if target else None,
            now,
        )
        if verdict.outcome is None:
            return None
        return self._close(intent, verdict.outcome, verdict.because, now)

    def _hold(self, intent: Intent, step: Step, guard: str, because: str, now: datetime) -> None:
        if self._held.get(intent.number) == guard:
            return
        self._held[intent.number] = guard
        self._tell(intent, events.INTENT_HELD, f"before {step.name}: {because}", now, guard=guard)

    def _expire(self, intent: Intent, now: datetime) -> Settled:
        return self._close(intent, Outcome.EXPIRED, "nobody agreed in time", now)

    def _close(self, intent: Intent, outcome: Outcome, because: str, now: datetime) -> Settled:
        self._memory.journal.close(intent, outcome, because, now)
        self._not_before.pop(intent.number, None)
        self._held.pop(intent.number, None)
        event = events.INTENT_EXPIRED if outcome is Outcome.EXPIRED else events.INTENT_CLOSED
        self._tell(intent, event, because, now, outcome=outcome)
        return Settled(intent=intent, outcome=outcome, because=because)

    def _tell(
        self,
        intent: Intent,
        event: str,
        because: str,
        now: datetime,
        *,
        outcome: Outcome | None = None,
        guard: str | None = None,
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
        )
