"""Runs what blocks beside the event loop, on daemon threads.

Not `asyncio.to_thread`: its threads are joined when the interpreter ends, so that one
answer that never comes would keep the daemon from exiting. Seats are few on purpose; when
all are taken the caller is told so instead of being queued behind what is stuck.
"""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

from sentinel.core.model.errors import Transient

T = TypeVar("T")


class Seats:
    def __init__(self, count: int = 16) -> None:
        self._free = threading.BoundedSemaphore(count)

    async def run(self, call: Callable[[], T]) -> T:
        """What `call` returns or raises. Raises `Transient` if every seat is taken."""
        if not self._free.acquire(blocking=False):
            raise Transient(
                "too many questions wait for an answer",
                hint="Something in the daemon is slow; try again, and see sentinel status.",
            )
        loop = asyncio.get_running_loop()
        came: asyncio.Future[T] = loop.create_future()
        threading.Thread(
            target=self._sit, args=(call, loop, came), name="api-aside", daemon=True
        ).start()
        return await came

    def _sit(
        self, call: Callable[[], T], loop: asyncio.AbstractEventLoop, came: "asyncio.Future[T]"
    ) -> None:
        settle: Callable[[], None]
        try:
            settle = functools.partial(came.set_result, call())
        except Exception as error:  # noqa: BLE001 - carried over to the route, which judges it
            settle = functools.partial(came.set_exception, error)
        finally:
            self._free.release()
        # RuntimeError: the loop was closed meanwhile; nobody waits any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if came.done() else settle())
