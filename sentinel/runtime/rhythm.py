"""When the loop scrapes and when it takes a turn: at aligned slots, and when something calls.

Something urgent brings a turn at once. The turn of a slot waits a moment for answers that are
sure to come. Answers that come after it bring one together, not each its own: eight slow targets
must not cost eight turns.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sentinel.core.alerting.rule import RuleGroup
from sentinel.runtime.plan import Plan
from sentinel.runtime.schedule import Rota, Slots

_EVALUATE_AFTER = timedelta(milliseconds=50)  # the scrapes of a slot get this long
_APART = timedelta(milliseconds=100)  # two turns for late answers; no slot's turn waits longer


class Rhythm:
    def __init__(self, plan: Plan) -> None:
        self._rota = Rota()
        self._turned_at: datetime | None = None
        self._late_at: datetime | None = None  # when a turn for late answers is due
        self._waits_until: datetime | None = None  # the turn of a slot, for answers
        self.use(plan)

    def use(self, plan: Plan) -> None:
        self._scrapes = Slots(plan.scrape_interval)
        self._turns = Slots(plan.evaluation_interval, after=_EVALUATE_AFTER)
        self._woken = True

    @property
    def missed(self) -> int:
        """Turns whose slot came and went while the loop was late."""
        return self._turns.missed

    def wake(self) -> None:
        self._woken = True

    def wake_for(self, news: Sequence[bool], now: datetime) -> None:
        """Each says whether it is urgent."""
        next_at, waits = self._turns.next_at, self._waits_until is not None
        if any(news):
            self._woken = True
        elif news and not waits and (next_at is None or next_at - now > _EVALUATE_AFTER):
            last = self._turned_at
            self._late_at = self._late_at or (now if last is None else max(now, last + _APART))

    def is_time_to_scrape(self, now: datetime) -> bool:
        return self._scrapes.due(now)

    def is_time_for_a_turn(self, now: datetime, *, awaits: bool = False) -> bool:
        """If so, what called for it has been answered by asking. `awaits` answers, sure to come."""
        if self._turns.due(now):
            self._waits_until = now + _APART
        slot = self._waits_until is not None and not (awaits and now < self._waits_until)
        late = self._late_at is not None and now >= self._late_at
        if not (slot or self._woken or late):
            return False
        self._woken, self._late_at, self._turned_at = False, None, now
        self._waits_until = None
        return True

    def groups_due(self, groups: Sequence[RuleGroup], now: datetime) -> list[RuleGroup]:
        return self._rota.due(groups, now)

    def moments(self) -> list[datetime | None]:
        """When something is next due."""
        return [self._scrapes.next_at, self._turns.next_at, self._late_at, self._waits_until]
