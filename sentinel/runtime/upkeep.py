"""What the loop sees to beside its turns: the state file, old history, a clock that was set.

Everything here may be late, and none of it may keep a turn from coming.
"""

import sqlite3
from datetime import datetime, timedelta

import structlog

from sentinel.ports import Clock
from sentinel.runtime.tally import Tally
from sentinel.store.memory import Memory
from sentinel.store.silences import KEPT
from sentinel.telemetry import events

_log = structlog.get_logger("sentinel.loop")
_TRY_AGAIN = 10.0  # seconds between two tries to have the state file back
_PURGE_EVERY = timedelta(hours=1)
_JUMP = 5.0  # seconds; less is the clock being kept right


class Upkeep:
    def __init__(self, memory: Memory, clock: Clock, tally: Tally) -> None:
        self._memory, self._clock, self._tally = memory, clock, tally
        self._last = (clock.now(), clock.monotonic())
        self._try_at = 0.0
        self._purged_at: datetime | None = None

    def state_file_failed(self, error: sqlite3.Error) -> None:
        """Leave it, and go on in RAM: watching and telling, but not acting."""
        if self._memory.trouble:
            return
        self._memory.retreat(str(error))
        self._try_at = self._clock.monotonic() + _TRY_AGAIN
        _log.critical(
            events.PROBLEM_SEEN,
            because=f"the state file cannot be used ({error}): acting on nothing",
        )

    def keep_up(self, now: datetime, history_for: timedelta) -> None:
        tick = self._clock.monotonic()
        self._notice_jump(now, tick)
        if self._memory.trouble and tick >= self._try_at:
            self._try_at = tick + _TRY_AGAIN
            if self._memory.come_back():
                _log.warning(events.PROBLEM_SEEN, because="the state file is in use again")
        if self._purged_at is None or not timedelta(0) <= now - self._purged_at < _PURGE_EVERY:
            self._purged_at = now
            self._memory.forget(now - history_for)
            self._memory.silences.forget(now - KEPT)

    def _notice_jump(self, now: datetime, tick: float) -> None:
        (at, then), self._last = self._last, (now, tick)
        back = (tick - then) - (now - at).total_seconds()
        if abs(back) > _JUMP:
            self._tally.clock_jump()
        if back > _JUMP:
            _log.warning(events.PROBLEM_SEEN, because=f"the clock was set back by {back:.0f} s")
            self._memory.outbox.hasten(now)
