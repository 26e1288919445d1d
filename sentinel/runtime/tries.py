"""What came of the tries to carry out open intents, for as long as the daemon lives.

In monotonic time, so that a clock that jumps neither hurries nor delays anything. All of it
may be forgotten at any instant: it makes Sentinel more patient, never more violent.
"""

from datetime import datetime, timedelta

from sentinel.core.model.intent import Intent
from sentinel.ports import Clock
from sentinel.runtime.target import Target

_AGAIN = 5.0  # seconds between two tries of one step


class Tries:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answered_at: dict[int, float] = {}  # by number of the intent
        self._failing: dict[int, tuple[float, str]] = {}  # since when a step fails, and how
        self._prove_by: dict[int, float] = {}
        self.hopeless: dict[int, str] = {}  # why its step can never be done

    def succeeded(self, number: int) -> None:
        self._answered_at[number] = self._clock.monotonic()
        self._failing.pop(number, None)

    def failed(self, number: int, says: str) -> bool:
        """True if it fails in a way that has not been told yet."""
        tick = self._answered_at[number] = self._clock.monotonic()
        since, said = self._failing.get(number, (tick, ""))
        self._failing[number] = (since, says)
        return says != said

    def answered_at(self, number: int) -> float:
        """Monotonic: when the last thing done for it was answered."""
        return self._answered_at.get(number, 0.0)

    def engine_lost(self) -> None:
        """An engine that is away is no step that fails."""
        self._failing.clear()

    def failing_for(self, number: int) -> tuple[timedelta, str]:
        tick = self._clock.monotonic()
        since, says = self._failing.get(number, (tick, ""))
        return timedelta(seconds=tick - since), says

    def may_try(self, number: int) -> bool:
        if number not in self._failing:
            return True
        return self._clock.monotonic() >= self._answered_at[number] + _AGAIN

    def has_been_seen(self, number: int, target: Target) -> bool:
        """Whether it was looked at after the last thing that happened to it."""
        return has_been_heard_out(target) and (
            target.looked_tick >= self._answered_at.get(number, 0.0)
        )

    def is_overdue(self, intent: Intent, within: timedelta, now: datetime) -> bool:
        """Whether the time for the proof is over."""
        left = intent.verify_by - now if intent.verify_by else within
        left = min(max(left, timedelta(0)), within)
        tick = self._clock.monotonic()
        return tick >= self._prove_by.setdefault(intent.number, tick + left.total_seconds())

    def forget(self, number: int) -> None:
        for kept in (self._answered_at, self._failing, self._prove_by, self.hopeless):
            kept.pop(number, None)


def has_been_heard_out(target: Target) -> bool:
    """Whether it was looked at after the last thing that was heard of it."""
    return target.looked_tick >= target.heard_tick
