"""Where everything arrives: scrapes, lanes' answers, Docker's events, people's commands.

Other threads only ever put; the loop alone takes. What is put is a call the loop makes on
its own thread, so nothing behind the inbox needs a lock.
"""

from collections.abc import Callable
from queue import Empty, SimpleQueue

Call = Callable[[], None]
Letter = tuple[Call, bool | None]  # and whether a turn should follow at once; None: none at all
_AT_MOST = 1000  # calls taken at once, so that a flood cannot keep a turn from coming


class Inbox:
    def __init__(self) -> None:
        self._queue: SimpleQueue[Letter] = SimpleQueue()

    def put(self, call: Call) -> None:
        """Something has happened: a turn follows at once."""
        self._queue.put((call, True))

    def put_sample(self, call: Call) -> None:
        """An answer to what was asked at a slot: the turn of that slot will see it."""
        self._queue.put((call, False))

    def put_question(self, call: Call) -> None:
        """Somebody only wants to look: nothing has changed, and no turn follows."""
        self._queue.put((call, None))

    def wait(self, seconds: float) -> list[Letter]:
        """What has arrived; waits for the first of it, `seconds` at the longest."""
        try:
            calls = [self._queue.get(timeout=max(seconds, 0.0))]
        except Empty:
            return []
        while len(calls) < _AT_MOST:
            try:
                calls.append(self._queue.get_nowait())
            except Empty:
                break
        return calls
