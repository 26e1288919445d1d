"""One thread with one event loop for everything that only waits: scrapes, probes, messages.

Nothing here may block it; whatever blocks belongs in a lane. Every submitted piece of work
delivers exactly one answer, at its deadline at the latest, and exceptions become values.
Looking up a name blocks in the C library, so it gets a daemon thread of its own: the pool
asyncio would use keeps the process from exiting while a name server is silent.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sentinel.core.model.errors import Ambiguous, Transient

T = TypeVar("T")

_STOPPED = Ambiguous("Sentinel stopped before the answer came")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetAnswer(Generic[T]):
    """What came of one piece of work: a value, or the error it raised."""

    value: T | None = None
    error: BaseException | None = None


class Net:
    def __init__(
        self, lookup: Callable[..., Any] = socket.getaddrinfo, *, name: str = "net"
    ) -> None:
        self._loop = _Loop(lookup)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopping = False

    def start(self) -> None:
        self._thread.start()

    def submit(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        deadline: float,
        deliver: Callable[[NetAnswer[T]], Any],
    ) -> None:
        """Run `work()`; its answer goes to `deliver`, on this thread, exactly once.

        At `deadline` (seconds) it is cancelled and the answer is `Ambiguous`. From any thread.
        Raises `Transient` after `stop`.
        """
        try:
            self._loop.call_soon_threadsafe(self._begin, work, deadline, deliver)
        except RuntimeError:
            raise Transient("the network thread has stopped") from None

    def stop(self, deadline: float) -> bool:
        """Cancel what is under way and wait up to `deadline` seconds; did it end?"""
        self._stopping = True
        if self._thread.ident is None:  # never started
            self._loop.close()
            return True
        with contextlib.suppress(RuntimeError):  # has ended already
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(deadline)
        return not self._thread.is_alive()

    def _begin(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        deadline: float,
        deliver: Callable[[NetAnswer[T]], Any],
    ) -> None:
        if self._stopping:
            deliver(NetAnswer(error=_STOPPED))
            return
        task = self._loop.create_task(_answer(work, deadline, deliver))
        self._loop.under_way.add(task)
        task.add_done_callback(self._loop.under_way.discard)

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            for task in loop.under_way:
                task.cancel()
            if loop.under_way:
                loop.run_until_complete(asyncio.wait(loop.under_way))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


async def _answer(
    work: Callable[[], Coroutine[Any, Any, T]],
    deadline: float,
    deliver: Callable[[NetAnswer[T]], Any],
) -> None:
    answer: NetAnswer[T]
    limit = asyncio.timeout(deadline)
    try:
        async with limit:
            answer = NetAnswer(value=await work())
    except asyncio.CancelledError:
        answer = NetAnswer(error=_STOPPED)
    except Exception as error:  # noqa: BLE001 - handed to the caller, not hidden
        passed = limit.expired() and isinstance(error, TimeoutError)
        answer = NetAnswer(error=Ambiguous("no answer before the deadline") if passed else error)
    deliver(answer)


class _Loop(asyncio.SelectorEventLoop):
    """asyncio's loop, with name look-ups that cannot hold up anything but themselves."""

    def __init__(self, lookup: Callable[..., Any]) -> None:
        super().__init__()
        self.under_way: set[asyncio.Task[None]] = set()
        self._lookup = lookup

    async def getaddrinfo(self, *args: Any, **options: Any) -> Any:
        found: asyncio.Future[Any] = self.create_future()

        def settle(set_it: Callable[[Any], None], outcome: Any) -> None:
            if not found.done():
                set_it(outcome)

        def look_up() -> None:
            try:
                outcome, set_it = self._lookup(*args, **options), found.set_result
            except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
                outcome, set_it = error, found.set_exception
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self.call_soon_threadsafe(settle, set_it, outcome)

        threading.Thread(target=look_up, name="name-lookup", daemon=True).start()
        return await found
