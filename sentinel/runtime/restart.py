"""Carries out a restart: stop, start, and the proof that it serves again."""

from collections.abc import Callable
from datetime import datetime

from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.model.intent import Intent, Outcome, Step
from sentinel.core.policy.grace import stop_grace
from sentinel.core.policy.verify import verify_restart
from sentinel.ports import Clock, ContainerHands
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.decide import Decider
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_MARGIN = 60.0  # seconds a step may take beyond the container's own grace


class Restart:
    def __init__(
        self, hands: ContainerHands, clock: Clock, memory: Memory, decider: Decider, bench: Bench
    ) -> None:
        self._hands, self._clock, self._memory = hands, clock, memory
        self._decider, self._bench = decider, bench

    def advance(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        """Prepare its next step, or settle it."""
        step, tries = intent.next_step, self._bench.tries
        if step is None:
            return self._prove(intent, target, plan, now)
        if (says := tries.hopeless.get(intent.number)) is not None:
            outcome = Outcome.FAILED if step.position else Outcome.REFUSED
            return self._bench.close(intent, outcome, says, now)
        if target is None or target.is_gone:
            outcome = Outcome.FAILED if intent.has_begun else Outcome.REFUSED
            return self._bench.close(intent, outcome, "its container is gone", now)
        if not intent.has_begun and (says := self._decider.withdrawn(intent)):
            return self._bench.close(intent, Outcome.REFUSED, says, now)
        return self._next(intent, step, target, plan, now)

    def _next(
        self, intent: Intent, step: Step, target: Target, plan: Plan, now: datetime
    ) -> Settled | None:
        tries = self._bench.tries
        if not tries.has_been_seen(intent.number, target):
            return None  # something has happened to it: first a look
        if held := self._decider.guards_before_step(intent, target, now):
            if held[0].guard == "human_stop":
                return self._bench.close(intent, Outcome.REFUSED, held[0].because, now)
            self._bench.hold(intent, step.name, target, held, now)
            return None
        failing_for, says = tries.failing_for(intent.number)
        if failing_for >= plan.verify_within:
            says = f"{step.name} could not be done in time: {says}"
            return self._bench.close(intent, Outcome.FAILED, says, now)
        if step.name == "start" and self._bench.must_wait_for_memory(intent, [target.container.id]):
            return None
        if self._bench.is_free and tries.may_try(intent.number):
            self._prepare(intent, step, target, now)
        return None

    def _prepare(self, intent: Intent, step: Step, target: Target, now: datetime) -> None:
        self._bench.let_go(intent, target)
        save = self._bench.saving(intent, target, now)
        if step.started_at is None:
            self._memory.journal.begin(intent, step, now)
            says = f"{step.name} {intent.wish.target}"
            self._bench.tell(intent, events.STEP_STARTED, says, now)
        grace = stop_grace(target.container, target.launch)
        act = self._act(intent, step, grace)

        def work() -> None:
            save()
            act()

        self._bench.prepare(
            intent,
            work,
            deadline=grace + _MARGIN,
            answered=lambda answer: self._answered(intent, step, answer),
        )

    def _act(self, intent: Intent, step: Step, grace: int) -> Callable[[], None]:
        saw, container_id = intent.wish.saw_started_at, intent.wish.container_id
        if step.name == "stop":
            return lambda: self._hands.stop(container_id, if_started_at=saw, grace=grace)
        return lambda: self._hands.start(container_id, if_started_at=saw)

    def _answered(self, intent: Intent, step: Step, answer: LaneAnswer[None]) -> None:
        now, error, tries = self._clock.now(), answer.error, self._bench.tries
        if error is None:
            tries.succeeded(intent.number)
            with self._memory.together():
                self._memory.journal.done(intent, step, "done", now)
                self._bench.tell(intent, events.STEP_DONE, f"{step.name}: done", now)
                if step.position == len(intent.steps) - 1:
                    within = intent.wish.within or self._decider.plan.verify_within
                    self._memory.journal.expect_proof(intent, now + within)
            return
        says = error.message if isinstance(error, SentinelError) else repr(error)
        if isinstance(error, Permanent):
            tries.hopeless[intent.number] = f"{step.name}: {says}"
            return
        if tries.failed(intent.number, says):
            says = f"{step.name} is not done yet: {says}"
            self._bench.tell(intent, events.STEP_DONE, says, now)

    def _prove(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        within = intent.wish.within or plan.verify_within
        verdict = verify_restart(
            intent,
            target.container if target else None,
            target.launch if target else None,
            target.probe if target else None,
            served=target.served if target else None,
            overdue=self._bench.tries.is_overdue(intent, within, now),
        )
        if verdict.outcome is None:
            return None
        return self._bench.close(intent, verdict.outcome, verdict.because, now)
