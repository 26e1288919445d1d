"""What the journal and the history are told of a container that is made anew.

Everything is written before it is done; what is written here is all that a crash leaves.
"""

from datetime import datetime

from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.model.intent import Intent, Outcome
from sentinel.core.policy.change import Lowered
from sentinel.core.recreate.plan import Aim
from sentinel.ports import Clock
from sentinel.runtime.bench import Bench, Settled
from sentinel.runtime.recreation import Recreation, is_taken_back, lowered_by, recreation_of
from sentinel.store.memory import Memory
from sentinel.telemetry import events


class Recreations:
    def __init__(self, clock: Clock, memory: Memory, bench: Bench) -> None:
        self._clock, self._memory, self._bench = clock, memory, bench

    def of(self, intent: Intent) -> Recreation | None:
        """None: nothing has been touched yet."""
        facts = self._memory.journal.recreation(intent.number)
        return None if facts is None else recreation_of(facts)

    def is_taken_back(self, intent: Intent) -> bool:
        return is_taken_back(self._memory.journal.recreation(intent.number))

    def lowered(self, target: str) -> Lowered | None:
        return lowered_by(self._memory.journal.last_made_anew(target))

    def begin(self, intent: Intent, recreation: Recreation, diff: tuple[str, ...]) -> None:
        with self._memory.together():
            self.write(intent, recreation)
            self._memory.journal.differ(intent, diff)

    def write(self, intent: Intent, recreation: Recreation) -> None:
        self._memory.journal.recreate(intent.number, recreation.facts())

    def found_same(self, intent: Intent, recreation: Recreation) -> None:
        with self._memory.together():
            self.write(intent, recreation)
            self.done(intent, 1, self._clock.now())

    def found_different(self, intent: Intent, recreation: Recreation, says: str) -> None:
        with self._memory.together():
            self.take_back(intent, recreation, says, self._clock.now())

    def take_back(
        self,
        intent: Intent,
        recreation: Recreation,
        because: str,
        now: datetime,
        *,
        stays_down: bool = False,
    ) -> Recreation:
        back = recreation.towards_roll_back(because, stays_down=stays_down)
        self.write(intent, back)
        self._bench.tries.succeeded(intent.number)
        self._bench.tell(intent, events.STEP_STARTED, f"taking it back: {because}", now)
        return back

    def begin_step(self, intent: Intent, name: str, now: datetime) -> None:
        position = next(step.position for step in intent.steps if step.name == name)
        self.done(intent, position, now)
        step = intent.steps[position]
        if step.started_at is None:
            self._memory.journal.begin(intent, step, now)
            self._bench.tell(intent, events.STEP_STARTED, f"{name} {intent.wish.target}", now)

    def done(self, intent: Intent, count: int, now: datetime) -> None:
        """Its first `count` steps are done."""
        for step in intent.steps[:count]:
            if step.done_at is None:
                self._memory.journal.begin(intent, step, now)
                self._memory.journal.done(intent, step, "done", now)
                self._bench.tell(intent, events.STEP_DONE, f"{step.name}: done", now)

    def failed(self, intent: Intent, words: str, error: BaseException | None) -> None:
        says = error_in_words(error)
        if isinstance(error, Permanent):
            self._bench.tries.hopeless[intent.number] = f"{words}: {says}"
        if self._bench.tries.failed(intent.number, says):
            says = f"{words} is not done yet: {says}"
            self._bench.tell(intent, events.STEP_DONE, says, self._clock.now())

    def give_up(self, intent: Intent, recreation: Recreation, says: str, now: datetime) -> Settled:
        """It serves, and only the old one is left to remove; or a person has to look."""
        if recreation.plan.aim is Aim.COMMIT:
            because = f"{recreation.because}; {recreation.plan.old_name} is left behind: {says}"
            return self.close(intent, Outcome.VERIFIED, because, now)
        because = f"{recreation.because}, and it could not be taken back: {says}"
        return self.close(intent, Outcome.FAILED, because, now, keeps=True)

    def close(
        self,
        intent: Intent,
        outcome: Outcome,
        because: str,
        now: datetime,
        *,
        keeps: bool = False,
        patch: str | None = None,
    ) -> Settled:
        """`keeps`: how it was made stays in the journal, for a person who has to look."""
        if not keeps:
            self._memory.journal.recreate(intent.number, None)
        return self._bench.close(intent, outcome, because, now, patch=patch)


def error_in_words(error: BaseException | None) -> str:
    return error.message if isinstance(error, SentinelError) else repr(error)
