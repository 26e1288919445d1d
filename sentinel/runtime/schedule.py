"""Aligned slots: the same instants on every host and after every restart.

A slot that was missed is counted, never made up for. A clock that jumps, either way, costs
at most one slot.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sentinel.core.alerting.rule import RuleGroup

Group = tuple[str, str]  # file and name

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


class Rota:
    """Whose turn it is: a group with an interval of its own waits for its slot, whatever wakes."""

    def __init__(self) -> None:
        self._slots: dict[Group, tuple[timedelta, Slots]] = {}

    def due(self, groups: Sequence[RuleGroup], now: datetime) -> list[RuleGroup]:
        return [group for group in groups if self._is_due(group, now)]

    def _is_due(self, group: RuleGroup, now: datetime) -> bool:
        if group.interval is None:
            return True
        key = (group.file, group.name)
        interval, slots = self._slots.get(key, (None, None))
        if slots is None or interval != group.interval:
            slots = Slots(group.interval)
            self._slots[key] = (group.interval, slots)
        return slots.due(now)
