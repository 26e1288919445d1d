"""Carries out the swap of two containers, one deed at a time.

There is no counter of steps: each time the next is worked out from the containers there are.
The aim is in the journal before anything serves it.
"""

from dataclasses import replace
from datetime import datetime

from sentinel.core.model.errors import Permanent, Transient
from sentinel.core.model.intent import Intent, Outcome
from sentinel.core.recreate.deeds import (
    Abandon,
    Check,
    Deed,
    Finished,
    Prove,
    Seen,
    Start,
    Stranded,
)
from sentinel.core.recreate.differences import differences
from sentinel.core.recreate.plan import Aim
from sentinel.core.recreate.port import ContainerRecreation
from sentinel.core.recreate.transaction import next_step
from sentinel.ports import Clock
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.decide import Decider
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.proof import Proof
from sentinel.runtime.recreation import Recreation, deadline_of, step_for, words_for
from sentinel.runtime.recreations import Recreations, error_in_words
from sentinel.runtime.target import Target
from sentinel.runtime.tries import has_been_heard_out

_LOOKING = 30.0  # seconds
_LOOK_AGAIN = 5.0
_START_TRIES = 3


class Swap:
    def __init__(
        self,
        hands: ContainerRecreation,
        clock: Clock,
        recreations: Recreations,
        decider: Decider,
        bench: Bench,
        proof: Proof,
    ) -> None:
        self._hands, self._clock, self._recreations = hands, clock, recreations
        self._decider, self._bench, self._proof = decider, bench, proof
        self._seen: dict[int, tuple[float, tuple[Seen, ...]]] = {}  # by number of the intent
        self._refused_starts: dict[int, int] = {}

    def advance(
        self,
        intent: Intent,
        recreation: Recreation,
        target: Target | None,
        plan: Plan,
        now: datetime,
    ) -> Settled | None:
        """Prepare the next deed, or settle it. The lane must be free."""
        seen = self._fresh(intent.number)
        if seen is None:
            self._look(intent, recreation)
            return None
        if (says := self._hopeless(intent, recreation, plan)) is not None:
            recreation = self._recreations.take_back(intent, recreation, says, now)
        step = next_step(recreation.plan, seen)
        match step:
            case Abandon(because=because):
                back = self._recreations.take_back(intent, recreation, because, now)
                return self.advance(intent, back, target, plan, now)
            case Stranded(because=because):
                self._forget(intent)
                return self._recreations.close(intent, Outcome.FAILED, because, now, keeps=True)
            case Finished(container_id=new_id):
                return self._finish(intent, recreation, target, new_id, now)
            case Check(container_id=new_id):
                self._check(intent, recreation, new_id)
            case Prove(container_id=new_id):
                proved = self._proof.advance(intent, recreation, target, new_id, plan, now)
                if proved is not None:
                    return self.advance(intent, proved, target, plan, now)
            case _:
                return self._do(intent, recreation, step, target, plan, now)
        return None

    # looking

    def _fresh(self, number: int) -> tuple[Seen, ...] | None:
        at, seen = self._seen.get(number, (0.0, None))
        return None if self._clock.monotonic() - at > _LOOK_AGAIN else seen

    def _look(self, intent: Intent, recreation: Recreation) -> None:
        tick, plan = self._clock.monotonic(), recreation.plan
        if not self._bench.tries.may_try(intent.number):
            return

        def looked(answer: LaneAnswer[tuple[Seen, ...]]) -> None:
            if answer.value is not None:
                self._seen[intent.number] = tick, answer.value
            else:
                self._recreations.failed(intent, "look at it", answer.error)

        self._bench.prepare(
            intent,
            lambda: tuple(self._hands.look(plan)),
            deadline=_LOOKING,
            answered=looked,
            touches=False,
        )

    def _check(self, intent: Intent, recreation: Recreation, new_id: str) -> None:
        """Nothing but the argument may differ, before the old one is touched."""
        plan = recreation.plan

        def work() -> list[str]:
            old, new = self._hands.raw(plan.old_id), self._hands.raw(new_id)
            if old is None or new is None:
                raise Transient("one of the two containers is gone")
            return differences(old, new, expected=plan.command_line)

        def checked(answer: LaneAnswer[list[str]]) -> None:
            self._seen.pop(intent.number, None)
            if answer.value is None:
                self._recreations.failed(intent, "compare them", answer.error)
            elif answer.value:
                says = f"it would not be the same: {'; '.join(answer.value)}"
                self._recreations.found_different(intent, recreation, says)
            else:
                same = replace(recreation, plan=plan.found_same(new_id))
                self._recreations.found_same(intent, same)

        self._bench.prepare(intent, work, deadline=_LOOKING, answered=checked, touches=False)

    def _hopeless(self, intent: Intent, recreation: Recreation, plan: Plan) -> str | None:
        """Why the new one will never come to be."""
        if recreation.plan.aim is not Aim.REPLACE:
            return None
        failing_for, says = self._bench.tries.failing_for(intent.number)
        if failing_for >= (intent.wish.within or plan.verify_within):
            return f"it could not be done in time: {says}"
        return self._bench.tries.hopeless.pop(intent.number, None)

    # doing

    def _do(
        self,
        intent: Intent,
        recreation: Recreation,
        deed: Deed,
        target: Target | None,
        plan: Plan,
        now: datetime,
    ) -> Settled | None:
        replaces, tries = recreation.plan.aim is Aim.REPLACE, self._bench.tries
        if not self._is_safe_to_judge(intent, target):
            return None
        words = words_for(deed, recreation.plan, self._seen[intent.number][1])
        held = self._decider.guards_before_step(intent, target, now)
        if replaces and held and held[0].guard == "human_stop":
            self._recreations.take_back(intent, recreation, held[0].because, now, stays_down=True)
            return None
        held = tuple(one for one in held if one.guard != "human_stop")
        if held:
            self._bench.hold(intent, words, target, held, now)
            return None
        failing_for, says = tries.failing_for(intent.number)
        if not replaces and failing_for >= plan.verify_within:
            self._forget(intent)
            return self._recreations.give_up(intent, recreation, says, now)
        if tries.may_try(intent.number) and not self._must_wait(intent, deed):
            self._bench.let_go(intent, target)
            if replaces:
                self._recreations.begin_step(intent, step_for(deed), now)
            self._carry_out(intent, recreation, deed, words)
        return None

    def _must_wait(self, intent: Intent, deed: Deed) -> bool:
        if not isinstance(deed, Start):
            return False
        seen = self._seen[intent.number][1]
        others = [one.id for one in seen if one.id != deed.container_id]
        return self._bench.must_wait_for_memory(intent, others)

    def _is_safe_to_judge(self, intent: Intent, target: Target | None) -> bool:
        """Until ours is stopped, a stop by somebody else may just have been heard of."""
        has_stopped = any(s.name == "stop" and s.started_at is not None for s in intent.steps)
        return target is None or has_stopped or has_been_heard_out(target)

    def _carry_out(self, intent: Intent, recreation: Recreation, deed: Deed, words: str) -> None:
        number, tries = intent.number, self._bench.tries

        def done(answer: LaneAnswer[None]) -> None:
            self._seen.pop(number, None)
            error = answer.error
            if error is None:
                tries.succeeded(number)
                return
            self._recreations.failed(intent, words, error)
            if recreation.plan.aim is not Aim.REPLACE:
                return
            refused = isinstance(deed, Start) and isinstance(error, Transient)
            starts = self._refused_starts[number] = self._refused_starts.get(number, 0) + refused
            if isinstance(error, Permanent) or starts >= _START_TRIES:
                tries.hopeless[number] = f"{words}: {error_in_words(error)}"

        self._bench.prepare(
            intent, lambda: self._hands.do(deed), deadline=deadline_of(deed), answered=done
        )

    # the end

    def _finish(
        self,
        intent: Intent,
        recreation: Recreation,
        target: Target | None,
        container_id: str,
        now: datetime,
    ) -> Settled | None:
        """Over once it has been seen under its name: until then it is ours to explain."""
        if target is not None and target.container.id != container_id:
            self._seen.pop(intent.number, None)
            return None
        self._forget(intent)
        return self._proof.close(intent, recreation, target, now)

    def _forget(self, intent: Intent) -> None:
        self._seen.pop(intent.number, None)
        self._refused_starts.pop(intent.number, None)
        self._proof.forget(intent)
