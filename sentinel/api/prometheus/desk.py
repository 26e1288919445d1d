"""Where questions to the store are worked on: few at a time, each before its deadline.

All of them share one interpreter with the loop, so more at once would make the loop late and
none of them faster. Who waits, waits in line and is told so when the time is up; who is slow
gives way to the loop every few milliseconds.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from sentinel.api.aside import Seats
from sentinel.api.prometheus.envelope import ApiError
from sentinel.core.promql import Budget, EvaluationError

T = TypeVar("T")

Clock = Callable[[], float]

AT_ONCE = 4
LONGEST = 30.0  # seconds from the question to the answer
MOST_SAMPLES = 500_000  # held for one answer
WORK_AT_ONCE = 2_000_000  # units of a budget, for one instant: they fill memory
WORK = 0.002  # seconds of work, and then of rest
REST = 0.0005
TOO_MANY = "query processing would load too many samples into memory in query execution"


class Deadline:
    """The moment an answer must be there by."""

    __slots__ = ("clock", "until")

    def __init__(self, clock: Clock, within: float) -> None:
        self.clock = clock  # seconds, never set back
        self.until = clock() + within

    def left(self) -> float:
        return max(self.until - self.clock(), 0.0)


class Desk:
    def __init__(self) -> None:
        self._line = asyncio.Semaphore(AT_ONCE)
        self._seats = Seats(AT_ONCE)

    async def run(self, call: Callable[[Deadline], T], within: float) -> T:
        """What `call` makes of its deadline."""
        deadline = Deadline(asyncio.get_running_loop().time, min(within, LONGEST))
        try:
            async with asyncio.timeout_at(deadline.until):
                await self._line.acquire()
        except TimeoutError:
            raise ApiError("timeout", "query timed out in query queue") from None
        try:
            if not deadline.left():
                raise ApiError("timeout", "query timed out in query queue")
            return await self._seats.run(lambda: call(deadline))
        finally:
            self._line.release()


class Measure(Budget):
    """What one query may still cost: work, time, and samples held for the answer.

    `whole`: what is read is the answer, so all of it is held.
    """

    __slots__ = ("_deadline", "_held", "_left_at_once", "_never", "_rest_at", "_whole")

    def __init__(self, deadline: Deadline, *, whole: bool = False) -> None:
        super().__init__()
        self._whole = whole
        self._left_at_once = WORK_AT_ONCE
        self._deadline = deadline
        self._rest_at = deadline.clock() + WORK
        self._held = 0
        self._never = threading.Event()

    def begin(self) -> None:
        """Another instant: what the last one needed is free again."""
        self.go_on()
        self._left_at_once = WORK_AT_ONCE

    def spend(self, series: int, samples: int = 0) -> None:
        self.go_on()
        self._left_at_once -= series
        if self._whole:
            self.hold(samples)
        try:
            super().spend(series, samples)
        except EvaluationError:
            self._left_at_once = -1
        if self._left_at_once < 0:
            raise EvaluationError(TOO_MANY)

    def hold(self, samples: int) -> None:
        """So many samples more are in the answer."""
        self._held += samples
        if self._held > MOST_SAMPLES:
            raise EvaluationError(TOO_MANY)

    def go_on(self) -> None:
        """Let the loop have its turn; raises `ApiError` if the time is up."""
        now = self._deadline.clock()
        if now >= self._deadline.until:
            raise ApiError("timeout", "query timed out in expression evaluation")
        if now >= self._rest_at:
            self._never.wait(REST)
            self._rest_at = self._deadline.clock() + WORK
