"""The API server's end of the engine: what it sends there, hears from it, and how it loses it.

A dead engine fails every request that waits, with the text that clients of vLLM get. Whether
the server then leaves is `server.py`'s business.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable

from .calls import Call, Calls, EngineDeadError
from .exposition import Exposition
from .journal import Journal


class Backend:
    def __init__(
        self, engine: tuple[int, int, int], exposition: Exposition, journal: Journal
    ) -> None:
        self.pid, self._commands, self._events = engine
        self._exposition, self._journal = exposition, journal
        self._unread = b""
        self.calls = Calls(exposition)
        self.dead = self.asleep = self.stopping = False
        self._gone = asyncio.Event()
        self.after_failure: Callable[[], None] = lambda: None

    def listen(self) -> None:
        asyncio.get_running_loop().add_reader(self._events, self._hear)

    def tell(self, **values: float) -> None:
        if not self.dead:
            os.write(self._commands, json.dumps(values).encode() + b"\n")

    def _hear(self) -> None:
        data = os.read(self._events, 1 << 20)
        if not data:
            self.lose("engine_drained" if self.stopping else "engine_died")
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self.calls.take_step(json.loads(line))

    def kill(self, recording: str, *, silently: bool = False) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.lose(recording, silently=silently)

    def lose(self, recording: str, *, silently: bool = False) -> None:
        """The engine is gone: say so in vLLM's words, and fail whatever waits for it.

        `silently`: those that wait are never told, which a SIGTERM often does to them.
        """
        if self.dead:
            return
        self.dead = True
        self._gone.set()
        asyncio.get_running_loop().remove_reader(self._events)
        os.waitpid(self.pid, 0)
        self._journal.play(recording)
        if not silently:
            self.calls.fail_all()

    async def gone_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._gone.wait(), seconds)

    def sleep(self, *, asleep: bool) -> None:
        self.asleep = asleep
        show, family = self._exposition, "vllm:engine_sleep_state"
        show.set(family, 0.0 if asleep else 1.0, 'sleep_state="awake"')
        show.set(family, 1.0 if asleep else 0.0, 'sleep_state="weights_offloaded"')

    async def complete(self, *, prompt: int, limit: int) -> None:
        """One whole request. Raises EngineDeadError; a cancelled one is aborted in the engine."""
        call = self.begin(prompt=prompt, limit=limit)
        try:
            while not await call.next_token():
                pass
        except EngineDeadError:
            self.after_failure()
            raise
        finally:
            self.end(call)

    def begin(self, *, prompt: int, limit: int) -> Call:
        if self.asleep and not self.dead:
            self.kill("engine_illegal_access")
        if self.dead:
            self.after_failure()
            raise EngineDeadError
        call = self.calls.open(prompt=prompt, limit=limit)
        self.tell(add=call.id, prompt=prompt, limit=limit)
        return call

    def end(self, call: Call) -> None:
        if self.calls.forget(call):
            self.tell(abort=call.id)
