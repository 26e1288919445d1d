"""Makes a container anew with another limit: what is looked at before anything is touched.

What it takes is written down first; from then on `Swap` works the next step out from what
is there.
"""

from datetime import datetime

from sentinel.core.model.intent import Intent, Outcome
from sentinel.core.policy.grace import stop_grace
from sentinel.core.recreate.port import ContainerRecreation
from sentinel.core.recreate.preflight import Refusal
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.circumstances import start_fails
from sentinel.runtime.decide import Decider
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.recreation import Recreation, begun
from sentinel.runtime.recreations import Recreations
from sentinel.runtime.swap import Swap
from sentinel.runtime.target import Target
from sentinel.runtime.tries import has_been_heard_out

_DESCRIBING = 60.0  # seconds

Begun = tuple[Recreation, tuple[str, ...]] | Refusal


class Recreate:
    def __init__(
        self,
        hands: ContainerRecreation,
        recreations: Recreations,
        decider: Decider,
        bench: Bench,
        swap: Swap,
    ) -> None:
        self._hands, self._recreations = hands, recreations
        self._decider, self._bench, self._swap = decider, bench, swap

    def step_of(self, intent: Intent) -> str | None:
        """What it is in the middle of, where the journal's steps do not say."""
        return "start" if self._recreations.is_taken_back(intent) else None

    def advance(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        """Prepare its next step, or settle it."""
        recreation = self._recreations.of(intent)
        if recreation is None:
            return self._begin(intent, target, plan, now)
        if not self._bench.is_free:
            return None
        return self._swap.advance(intent, recreation, target, plan, now)

    def _begin(
        self, intent: Intent, target: Target | None, plan: Plan, now: datetime
    ) -> Settled | None:
        tries = self._bench.tries
        if (says := self._hopeless(intent, target, plan)) or target is None:
            return self._recreations.close(intent, Outcome.REFUSED, says, now)
        if not has_been_heard_out(target):
            return None
        if held := self._decider.guards_before_step(intent, target, now):
            if held[0].guard == "human_stop":
                return self._recreations.close(intent, Outcome.REFUSED, held[0].because, now)
            self._bench.hold(intent, "anything", target, held, now)
        elif self._bench.is_free and tries.may_try(intent.number):
            self._describe(intent, target, now)
        return None

    def _hopeless(self, intent: Intent, target: Target | None, plan: Plan) -> str:
        tries = self._bench.tries
        if target is None or target.is_gone:
            return "its container is gone"
        if says := tries.hopeless.get(intent.number) or self._decider.withdrawn(intent):
            return says
        failing_for, why = tries.failing_for(intent.number)
        late = failing_for >= plan.verify_within
        return f"it could not be described in time: {why}" if late else ""

    def _describe(self, intent: Intent, target: Target, now: datetime) -> None:
        self._bench.let_go(intent, target)
        save = self._bench.saving(intent, target, now)
        grace, lowered = (
            stop_grace(target.container, target.launch),
            self._recreations.lowered(target.name),
        )
        container_id, loops = intent.wish.container_id, start_fails(target)

        def work() -> Begun:
            save()
            described = self._hands.describe(container_id)
            found = begun(described, intent, lowered, grace, loops=loops)
            return found if isinstance(found, Refusal) else (found[0], found[1].diff)

        self._bench.prepare(
            intent,
            work,
            deadline=_DESCRIBING,
            touches=False,
            answered=lambda answer: self._described(intent, answer),
        )

    def _described(self, intent: Intent, answer: LaneAnswer[Begun]) -> None:
        found, tries = answer.value, self._bench.tries
        if found is None:
            self._recreations.failed(intent, "describe it", answer.error)
        elif isinstance(found, Refusal):
            tries.hopeless[intent.number] = f"held by {found.guard}: {found.because}"
        else:
            tries.succeeded(intent.number)
            self._recreations.begin(intent, *found)
