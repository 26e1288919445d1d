"""Carries out intents, one step at a time, and settles them by looking.

Level-triggered: each turn asks the journal what is open and does what comes next. A step is
begun in the journal before it is done in the world, and every step may be repeated, so a
kill at any instant costs at most the same step once more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.model.incident import incident_id
from sentinel.core.model.intent import Intent, Outcome, Step
from sentinel.core.policy.grace import stop_grace
from sentinel.core.policy.guard import Held
from sentinel.core.policy.verify import verify_restart
from sentinel.ports import Clock, ContainerHands
from sentinel.runtime.decide import Decider
from sentinel.runtime.evidence import Evidence, Scene
from sentinel.runtime.history import History
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.runtime.tries import Tries
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_MARGIN = 60.0  # seconds a step may take beyond the container's own grace
_LAUNCHES = 5  # of the last ones, kept with the evidence


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
        evidence: Evidence | None = None,
    ) -> None:
        self._hands, self._clock, self._evidence = hands, clock, evidence
        self._memory, self._history, self._decider = memory, history, decider
        self._inbox, self._lane = inbox, lane
        self._ready: list[Callable[[], None]] = []
        self._under_way: int | None = None  # the intent whose step is in the lane
        self._tries = Tries(clock)
        self._held: dict[int, str] = {}
        self._touched = False

    @property
    def overdue(self) -> bool:
        return self._lane.overdue(self._clock.monotonic())

    def advance(
        self, plan: Plan, targets: dict[str, Target], now: datetime, *, engine_lost: bool
    ) -> list[Settled]:
        """Prepare the next step of each open intent, or settle it. `go` then carries it out."""
        settled: list[Settled] = []
        if engine_lost:
            self._tries.engine_lost()
            return settled
        for intent in self._memory.journal.open():
            if intent.number == self._under_way:
                continue
            done = self._one(intent, _target_of(intent, targets), plan, now)
            if done is not None:
                settled.append(done)
        for intent in self._memory.journal.proposed():
            ended = self._waiting(intent, _target_of(intent, targets), now)
            settled += [] if ended is None else [ended]
        return settled

    def forget_prepared(self) -> None:
        """What was prepared in a turn that was not committed is in no journal."""
        self._ready.clear()

    def go(self) -> None:
        """Carry out what was prepared. Call only after it has been committed."""
        ready, self._ready = self._ready, []
        for call in ready:
            call()

    def step_of(self, target: Target) -> str | None:
        """The step Sentinel is in the middle of, or has done since the target was last seen."""
        intent = self.proving(target)
        if intent is None or intent.number in self._held:
            return None
        if (step := intent.next_step) is not None:
            return step.name if _has_begun(intent) else None
        last = intent.steps[-1]
        return last.name if last.done_at is None or last.done_at >= target.seen_at else None

    def has_touched(self) -> bool:
        """Whether a step was done since this was last asked: then it is time to look."""
        touched, self._touched = self._touched, False
        return touched

    def proving(self, target: Target) -> Intent | None:
        """The open intent on `target`, if there is one."""
        return next((i for i in self._memory.journal.open() if _concerns(i, target)), None)

    def _one(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        step = intent.next_step
        if step is None:
            return self._prove(intent, target, plan, now)
        if (says := self._tries.hopeless.get(intent.number)) is not None:
            outcome = Outcome.FAILED if step.position else Outcome.REFUSED
            return self._close(intent, outcome, says, now)
        if target is None or target.is_gone:
            outcome = Outcome.FAILED if _has_begun(intent) else Outcome.REFUSED
            return self._close(intent, outcome, "its container is gone", now)
        if not _has_begun(intent) and (says := self._decider.withdrawn(intent)):
            return self._close(intent, Outcome.REFUSED, says, now)
        if not self._tries.has_been_seen(intent.number, target):
            return None  # something has happened to it: first a look
        if held := self._decider.guards_before_step(intent, target, now):
            if held[0].guard == "human_stop":
                return self._close(intent, Outcome.REFUSED, held[0].because, now)
            self._hold(intent, step, target, held, now)
            return None
        failing_for, says = self._tries.failing_for(intent.number)
        if failing_for >= plan.verify_within:
            says = f"{step.name} could not be done in time: {says}"
            return self._close(intent, Outcome.FAILED, says, now)
        free = self._lane.busy_since is None and not self._ready
        if free and self._tries.may_try(intent.number):
            self._prepare(intent, step, target, now)
        return None

    def _prepare(self, intent: Intent, step: Step, target: Target, now: datetime) -> None:
        self._held.pop(intent.number, None)
        target.held_action, target.held = None, ()
        save = self._saving(intent, target, now)
        if step.started_at is None:
            self._memory.journal.begin(intent, step, now)
            self._tell(intent, events.STEP_STARTED, f"{step.name} {intent.wish.target}", now)
        grace = stop_grace(target.container)
        saw, container_id = intent.wish.saw_started_at, intent.wish.container_id

        def stop() -> None:
            self._hands.stop(container_id, if_started_at=saw, grace=grace)

        def start() -> None:
            self._hands.start(container_id, if_started_at=saw)

        act = {"stop": stop, "start": start}[step.name]

        def work() -> None:
            save()
            act()

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

    def _saving(self, intent: Intent, target: Target, now: datetime) -> Callable[[], None]:
        """Evidence first: what there is, before the first step; nothing for a step repeated."""
        evidence, number = self._evidence, intent.wish.incident
        if evidence is None or number is None or _has_begun(intent):
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
                self._inbox.put(lambda: self._tell(intent, events.EVIDENCE_SAVED, says, now))

        return save

    def _answered(self, intent: Intent, step: Step, answer: LaneAnswer[None]) -> None:
        self._under_way, self._touched = None, True
        now, error = self._clock.now(), answer.error
        if error is None:
            self._tries.succeeded(intent.number)
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
            self._tries.hopeless[intent.number] = f"{step.name}: {says}"
            return
        if self._tries.failed(intent.number, says):
            self._tell(intent, events.STEP_DONE, f"{step.name} is not done yet: {says}", now)

    def _prove(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        verdict = verify_restart(
            intent,
            target.container if target else None,
            target.launch if target else None,
            target.probe if target else None,
            overdue=self._tries.is_overdue(intent, plan.verify_within, now),
        )
        if verdict.outcome is None:
            return None
        return self._close(intent, verdict.outcome, verdict.because, now)

    def _hold(
        self, intent: Intent, step: Step, target: Target, held: Sequence[Held], now: datetime
    ) -> None:
        target.held_action, target.held = intent.wish.action, tuple(held)
        guard, because = held[0].guard, held[0].because
        if self._held.get(intent.number) == guard:
            return
        self._held[intent.number] = guard
        self._tell(intent, events.INTENT_HELD, f"before {step.name}: {because}", now, guard=guard)

    def _waiting(self, intent: Intent, target: Target | None, now: datetime) -> Settled | None:
        """A proposal ends when its time is over, or when what it was made for is."""
        if intent.expires_at is not None and now >= intent.expires_at:
            return self._close(intent, Outcome.EXPIRED, "nobody agreed in time", now)
        seen = (intent.wish.container_id, intent.wish.saw_started_at)
        says = self._decider.withdrawn(intent)
        if target is None or target.key != seen:
            says = says or "the container it was asked for has been started anew or is gone"
        return self._close(intent, Outcome.REFUSED, says, now) if says else None

    def _close(self, intent: Intent, outcome: Outcome, because: str, now: datetime) -> Settled:
        self._memory.journal.close(intent, outcome, because, now)
        self._tries.forget(intent.number)
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


def _has_begun(intent: Intent) -> bool:
    """Whether something may have been done to the world: then what was begun is finished."""
    return any(step.started_at is not None for step in intent.steps)


def _concerns(intent: Intent, target: Target) -> bool:
    return intent.wish.target == target.name or intent.wish.container_id == target.container.id


def _target_of(intent: Intent, targets: Mapping[str, Target]) -> Target | None:
    """The very container, also under another name; else whatever has its name now."""
    same = (t for t in targets.values() if t.container.id == intent.wish.container_id)
    return next(same, None) or targets.get(intent.wish.target)
