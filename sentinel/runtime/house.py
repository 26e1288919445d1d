"""What the daemon offers to those who ask, over threads' bounds.

Reading takes the published snapshot or the state file; asking puts a command into the inbox
and waits for the loop's answer. Nothing here touches what the loop works with.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from sentinel.api.prometheus.copies import Copies
from sentinel.api.snapshot import Snapshot
from sentinel.core.dispatch.board import Board
from sentinel.core.model.command import Command
from sentinel.core.model.errors import Ambiguous, Transient
from sentinel.ports import Clock
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.order import Later
from sentinel.store.picture import Reader
from sentinel.telemetry.metrics import Metrics, Reading

Obey = Callable[[Command], dict[str, Any] | Later]
Answer = dict[str, Any] | BaseException


class House:
    def __init__(
        self, inbox: Inbox, clock: Clock, state_file: Path, evidence: Path, metrics: Metrics
    ) -> None:
        self._inbox, self._metrics = inbox, metrics
        self._reader = Reader(state_file, evidence)
        self._snapshot = Snapshot(at=clock.now(), ready=False)
        self._samples: Sequence[WrittenSample] = ()
        self._board: Board | None = None
        self.obey: Obey | None = None  # set once the loop is there
        self.board_of: Callable[[], Board] | None = None  # likewise; for the loop's thread
        self.queries: Copies | None = None  # likewise

    def publish(self, snapshot: Snapshot, samples: Sequence[WrittenSample]) -> None:
        """By one assignment each: readers need no lock. Nothing of it is changed any more."""
        self._snapshot, self._samples, self._board = snapshot, samples, snapshot.board

    def snapshot(self) -> Snapshot:
        return self._snapshot

    def board(self) -> Board:
        if self._board is None:
            raise Transient("Sentinel is still starting")
        return self._board

    def history(self) -> Reader:
        return self._reader

    def metrics(self) -> bytes:
        return self._metrics.exposition(_readings_of(self._samples))

    def copies(self) -> Copies:
        if self.queries is None:
            raise Transient("Sentinel is still starting")
        return self.queries

    def ask(self, command: Command, deadline: float) -> dict[str, Any]:
        box: SimpleQueue[Answer] = SimpleQueue()

        def carry_out() -> None:
            assert self.obey is not None
            assert self.board_of is not None
            try:
                done = self.obey(command)
                self._board = self.board_of()  # who asks next sees what this one did
                done.then(box.put) if isinstance(done, Later) else box.put(done)
            except BaseException as error:  # noqa: BLE001 - handed to who asked
                box.put(error)

        self._inbox.put(carry_out)
        try:
            answer = box.get(timeout=deadline)
        except Empty:
            raise Ambiguous("the loop has not answered in time; look before asking again") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _readings_of(samples: Sequence[WrittenSample]) -> Iterator[Reading]:
    """Synthetic series as `/metrics` shows them."""
    for name, labels, value in samples:
        if name.startswith("sentinel_"):
            yield Reading(name, value, labels)
