"""Carries out intents, one step at a time, and settles them by looking.

Level-triggered: each turn asks the journal what is open and does what comes next. A step is
begun in the journal before it is done in the world, and every step may be repeated, so a
kill at any instant costs at most the same step once more.
"""

from collections.abc import Mapping
from datetime import datetime

from sentinel.core.model.intent import Action, Intent, Outcome
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.circumstances import is_looping, start_fails
from sentinel.runtime.decide import Decider
from sentinel.runtime.plan import Plan
from sentinel.runtime.recreate import Recreate
from sentinel.runtime.restart import Restart
from sentinel.runtime.stoploop import StopLoop
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

__all__ = ["Actor", "Settled"]


class Actor:
    def __init__(
        self,
        memory: Memory,
        decider: Decider,
        bench: Bench,
        restart: Restart,
        recreate: Recreate,
        stop_loop: StopLoop,
    ) -> None:
        self._stop_loop = stop_loop
        self._memory, self._decider, self._bench = memory, decider, bench
        self._restart, self._recreate = restart, recreate

    @property
    def overdue(self) -> bool:
        return self._bench.overdue

    def advance(
        self, plan: Plan, targets: dict[str, Target], now: datetime, *, engine_lost: bool
    ) -> list[Settled]:
        """Prepare the next step of each open intent, or settle it. `go` then carries it out."""
        settled: list[Settled] = []
        if engine_lost:
            self._bench.tries.engine_lost()
            return settled
        for intent in self._memory.journal.open():
            if intent.number == self._bench.at:
                continue
            done = self._how(intent).advance(intent, _target_of(intent, targets), plan, now)
            if done is not None:
                settled.append(done)
        for intent in self._memory.journal.proposed():
            ended = self._waiting(intent, _target_of(intent, targets), now)
            settled += [] if ended is None else [ended]
        return settled

    def _how(self, intent: Intent) -> Recreate | StopLoop | Restart:
        if intent.wish.is_made_anew:
            return self._recreate
        return self._stop_loop if intent.wish.action is Action.STOP_LOOP else self._restart

    def forget_prepared(self) -> None:
        """What was prepared in a turn that was not committed is in no journal."""
        self._bench.forget_prepared()

    def go(self) -> None:
        """Carry out what was prepared. Call only after it has been committed."""
        self._bench.go()

    def step_of(self, target: Target) -> str | None:
        """The step Sentinel is in the middle of, or has done since the target was last seen."""
        intent = self.proving(target)
        if intent is None or intent.number in self._bench.held:
            return None
        if intent.wish.action is Action.STOP_LOOP:
            return None  # what it does is not to bring it back
        if intent.wish.is_made_anew and (step := self._recreate.step_of(intent)):
            return step
        if (following := intent.next_step) is not None:
            return following.name if intent.has_begun else None
        last = intent.steps[-1]
        return last.name if last.done_at is None or last.done_at >= target.seen_at else None

    def has_touched(self) -> bool:
        """Whether a step was done since this was last asked: then it is time to look."""
        return self._bench.has_touched()

    def proving(self, target: Target) -> Intent | None:
        """The open intent on `target`, if there is one."""
        return next((i for i in self._memory.journal.open() if _concerns(i, target)), None)

    def _waiting(self, intent: Intent, target: Target | None, now: datetime) -> Settled | None:
        """A proposal ends when its time is over, or when what it was made for is."""
        if intent.expires_at is not None and now >= intent.expires_at:
            return self._bench.close(intent, Outcome.EXPIRED, "nobody agreed in time", now)
        says = self._decider.withdrawn(intent)
        if target is None or not _is_as_seen(intent, target):
            says = says or "the container it was asked for has been started anew or is gone"
        elif intent.wish.action is Action.STOP_LOOP and not is_looping(target):
            says = says or "Docker does not start it again any more"
        return self._bench.close(intent, Outcome.REFUSED, says, now) if says else None


def _is_as_seen(intent: Intent, target: Target) -> bool:
    """One that Docker starts again and again is the same all along."""
    same_run = target.container.started_at == intent.wish.saw_started_at
    anyhow = intent.wish.is_made_anew or intent.wish.action is Action.STOP_LOOP
    loops = anyhow and start_fails(target)
    return target.container.id == intent.wish.container_id and (same_run or loops)


def _concerns(intent: Intent, target: Target) -> bool:
    return intent.wish.target == target.name or intent.wish.container_id == target.container.id


def _target_of(intent: Intent, targets: Mapping[str, Target]) -> Target | None:
    """The very container, also under another name; else whatever has its name now."""
    same = (t for t in targets.values() if t.container.id == intent.wish.container_id)
    return next(same, None) or targets.get(intent.wish.target)
