"""Ends a crash loop that Docker keeps up: one stop, after which Docker leaves it alone.

What dies at every start is not helped by another; each start may take more of the host with
it. It stays down until a person starts it.
"""

from dataclasses import replace
from datetime import datetime

from sentinel.core.model.container import Status
from sentinel.core.model.errors import Permanent
from sentinel.core.model.intent import Intent, Outcome, Step
from sentinel.core.model.launch import EndedAs
from sentinel.core.policy.grace import stop_grace
from sentinel.core.recreate.deeds import Stop
from sentinel.core.recreate.port import ContainerRecreation
from sentinel.ports import Clock
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.decide import Decider
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.recreations import error_in_words
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_MARGIN = 60.0  # seconds
_SAYS = "it died at every start and was stopped, so that Docker does not start it again"


class StopLoop:
    def __init__(
        self,
        hands: ContainerRecreation,
        clock: Clock,
        memory: Memory,
        decider: Decider,
        bench: Bench,
    ) -> None:
        self._hands, self._clock, self._memory = hands, clock, memory
        self._decider, self._bench = decider, bench

    def advance(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        """Stop it, or settle it once it has been seen to stay down."""
        tries = self._bench.tries
        failing_for, says = tries.failing_for(intent.number)
        hopeless = tries.hopeless.get(intent.number)
        if hopeless or failing_for >= plan.verify_within:
            return self._bench.close(intent, Outcome.FAILED, hopeless or says, now)
        if target is None or target.container.id != intent.wish.container_id:
            return self._bench.close(intent, Outcome.REFUSED, "its container is gone", now)
        step = intent.next_step
        if step is None:
            return self._settle(intent, target, now)
        if not intent.has_begun and (says := self._decider.withdrawn(intent)):
            return self._bench.close(intent, Outcome.REFUSED, says, now)
        return self._next(intent, step, target, now)

    def _next(self, intent: Intent, step: Step, target: Target, now: datetime) -> Settled | None:
        tries = self._bench.tries
        if not tries.has_been_seen(intent.number, target):
            return None  # something has happened to it: first a look
        if held := self._decider.guards_before_step(intent, target, now):
            if held[0].guard == "human_stop":
                return self._bench.close(intent, Outcome.REFUSED, held[0].because, now)
            self._bench.hold(intent, step.name, target, held, now)
        elif self._bench.is_free and tries.may_try(intent.number):
            self._stop(intent, step, target, now)
        return None

    def _stop(self, intent: Intent, step: Step, target: Target, now: datetime) -> None:
        self._bench.let_go(intent, target)
        save = self._bench.saving(intent, target, now)
        if step.started_at is None:
            self._memory.journal.begin(intent, step, now)
            self._bench.tell(intent, events.STEP_STARTED, f"stop {target.name}", now)
        deed = Stop(
            container_id=target.container.id, grace=stop_grace(target.container, target.launch)
        )

        def work() -> None:
            save()
            self._hands.do(deed)

        self._bench.prepare(
            intent,
            work,
            deadline=deed.grace + _MARGIN,
            answered=lambda answer: self._answered(intent, step, answer),
        )

    def _answered(self, intent: Intent, step: Step, answer: LaneAnswer[None]) -> None:
        now, tries = self._clock.now(), self._bench.tries
        if answer.error is None:
            tries.succeeded(intent.number)
            with self._memory.together():
                self._memory.journal.done(intent, step, "done", now)
                self._bench.tell(intent, events.STEP_DONE, "stop: done", now)
            return
        says = error_in_words(answer.error)
        if isinstance(answer.error, Permanent):
            tries.hopeless[intent.number] = says
        elif tries.failed(intent.number, says):
            self._bench.tell(intent, events.STEP_DONE, f"stop is not done yet: {says}", now)

    def _settle(self, intent: Intent, target: Target, now: datetime) -> Settled | None:
        if not self._bench.tries.has_been_seen(intent.number, target):
            return None
        container, launch = target.container, target.launch
        if container.is_up or container.status is Status.RESTARTING:
            return self._bench.close(intent, Outcome.FAILED, "it was started again", now)
        if launch is not None and launch.ending is not None:
            ending = replace(launch.ending, kind=EndedAs.PERSON, because=_SAYS)
            self._memory.launches.end(launch, ending, now)
            target.launch = replace(launch, ending=ending)
        return self._bench.close(intent, Outcome.VERIFIED, _SAYS, now)
