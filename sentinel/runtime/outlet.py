"""The network thread and the connections it holds: everything that leaves goes through here.

Sessions are opened and closed on the thread that uses them.
"""

from collections.abc import Callable, Coroutine
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import aiohttp

from sentinel.runtime.deliver import OnDone, Send
from sentinel.runtime.net import Net, NetAnswer

T = TypeVar("T")
_SEND_WITHIN = 60.0  # seconds; each notifier has a shorter limit of its own


class Outlet:
    def __init__(self) -> None:
        self._net = Net()
        self._net.start()
        self.ask = self._net.submit
        self.session = self._open_session()

    def send(self, send: Send, done: OnDone) -> None:
        self._net.submit(send, deadline=_SEND_WITHIN, deliver=lambda answer: done(answer.error))

    def close(self, also: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Close the connections, `also` those of somebody else, and end the thread."""

        async def close() -> None:
            await also()
            await self.session.close()

        self._wait_for(close, 1.0)
        self._net.stop(2.0)

    def _open_session(self) -> aiohttp.ClientSession:
        async def make() -> aiohttp.ClientSession:
            return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())

        session = self._wait_for(make, 5.0)
        assert isinstance(session, aiohttp.ClientSession)
        return session

    def _wait_for(self, work: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T | None:
        box: SimpleQueue[NetAnswer[T]] = SimpleQueue()
        self._net.submit(work, deadline=seconds, deliver=box.put)
        try:
            return box.get(timeout=seconds + 4.0).value
        except Empty:
            return None
