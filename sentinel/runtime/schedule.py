"""Aligned slots: the same instants on every host and after every restart.

A slot that was missed is counted, never made up for. A clock that jumps, either way, costs
at most one slot.
"""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Slots:
    def __init__(self, interval: timedelta, *, after: timedelta = timedelta(0)) -> None:
        self._interval, self._after = interval, after
        self.next_at: datetime | None = None
        self.missed = 0

    def due(self, now: datetime) -> bool:
        """Has a slot come since this was last asked? The first answer is always yes."""
        if self.next_at is not None and now < self.next_at <= now + 2 * self._interval:
            return False
        if self.next_at is not None and now >= self.next_at:
            self.missed += max((now - self.next_at) // self._interval, 0)
        self.next_at = self._next(now)
        return True

    def _next(self, now: datetime) -> datetime:
        slot = (now - self._after - _EPOCH) // self._interval + 1
        return _EPOCH + slot * self._interval + self._after
