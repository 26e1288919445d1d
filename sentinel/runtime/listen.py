"""Follows the container engine's events for as long as the daemon lives.

Its thread only puts into the inbox. Every end of the stream is a disconnect, after which
everything is looked at anew; what the engine still remembers of the gap is replayed.
"""

import threading
from collections.abc import Callable

from sentinel.core.model.container import EngineEvent
from sentinel.core.model.errors import SentinelError
from sentinel.ports import EngineEvents

_PAUSE = 1.0  # seconds between two tries


class Listener:
    def __init__(
        self,
        stream: EngineEvents,
        since_ns: int | None,
        heard: Callable[[EngineEvent], None],
        opened: Callable[[], None],
    ) -> None:
        self._stream, self._since_ns = stream, since_ns
        self._heard, self._opened = heard, opened
        self._stop = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="docker-events", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._stream.follow(self._since_ns, opened=self._opened, heard=self._take)
            except SentinelError:
                pass  # the survey says that Docker is lost, in its own time
            except Exception:  # noqa: BLE001, S110 - a stream may break in any way; look again
                pass
            self._opened()
            self._stop.wait(_PAUSE)

    def _take(self, event: EngineEvent) -> None:
        self._since_ns = max(event.at_ns, self._since_ns or 0)
        self._heard(event)
