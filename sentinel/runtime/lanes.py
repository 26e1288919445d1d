"""A lane is one thread that owns one blocking resource.

Docker, NVML and SMTP calls block, and now and then one never returns. A lane turns that into
a value: the answer goes to whoever `deliver` names, the loop notices by asking `overdue`, and
no second call is queued behind a stuck one. Lanes are daemon threads on purpose: a stuck
driver must not keep the process from exiting.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from sentinel.core.model.errors import Transient

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneAnswer(Generic[T]):
    """What came of one call: a value, or the error it raised."""

    lane: str
    token: int  # what `submit` returned
    value: T | None = None
    error: BaseException | None = None
    late: bool = False  # `overdue` had already said so


@dataclass(slots=True)
class _Call:
    token: int
    since: float
    deadline: float  # seconds after `since`
    given_up: bool = False


class Lane:
    def __init__(self, name: str) -> None:
        self.name = name
        self._out: _Call | None = None
        self._lock = threading.Lock()
        self._tokens = itertools.count(1)
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._run, name=f"lane-{name}", daemon=True).start()

    @property
    def busy_since(self) -> float | None:
        """Monotonic time at which the call that is out was submitted."""
        out = self._out
        return None if out is None else out.since

    def submit(
        self,
        call: Callable[[], T],
        *,
        now: float,
        deadline: float,
        deliver: Callable[[LaneAnswer[T]], Any],
    ) -> int:
        """Start `call`; its answer goes to `deliver`, on the lane's own thread, exactly once.

        Raises `Transient` while an earlier call is still out. `now` is monotonic; `deadline` is
        in seconds from there. Returns a token that the answer carries too.
        """
        with self._lock:
            if self._out is not None:
                raise Transient("an earlier call has not come back", lane=self.name)
            out = self._out = _Call(next(self._tokens), now, deadline)
        self._work.put(lambda: self._carry_out(out, call, deliver))
        return out.token

    def overdue(self, now: float) -> bool:
        """Is the call that is out past its deadline? If so, its answer will be marked late."""
        with self._lock:
            out = self._out
            if out is None or now - out.since < out.deadline:
                return False
            out.given_up = True
            return True

    def _carry_out(
        self, out: _Call, call: Callable[[], T], deliver: Callable[[LaneAnswer[T]], Any]
    ) -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = call()
        except BaseException as raised:  # noqa: BLE001 - handed to the caller, not hidden
            error = raised
        with self._lock:  # free before it is known to be: the receiver may submit the next one
            self._out = None
        deliver(
            LaneAnswer(lane=self.name, token=out.token, value=value, error=error, late=out.given_up)
        )

    def _run(self) -> None:
        while True:
            self._work.get()()
