"""The API server's life: serve, notice a dead engine, leave; drain and stop when told to.

Its manners are vLLM's: a dead engine is noticed by the first request that fails, or else by a
watchdog every five seconds; the process then leaves with exit code 0.
"""

import asyncio
import os
import signal
import socket
import time
from collections.abc import Coroutine

from .arguments import Arguments
from .backend import Backend
from .calls import EngineDeadError, StatsLine
from .exposition import Exposition
from .faults import Trouble, read_commands
from .journal import Journal
from .routes import Routes
from .settings import Settings
from .web import Connection

STATS_INTERVAL = 10.0
UVICORN_BEAT = 0.1


class Server:
    def __init__(
        self, arguments: Arguments, settings: Settings, journal: Journal, exposition: Exposition
    ) -> None:
        self._arguments, self._settings = arguments, settings
        self._journal, self._exposition = journal, exposition
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leave = asyncio.Event()

    async def run(
        self, listener: socket.socket, engine: tuple[int, int, int], max_len: int
    ) -> None:
        self._backend = Backend(engine, self._exposition, self._journal)
        self._backend.after_failure = self._leave_if_dead
        self._trouble = Trouble(self._backend, self._journal)
        self._routes = Routes(
            arguments=self._arguments,
            backend=self._backend,
            exposition=self._exposition,
            journal=self._journal,
            trouble=self._trouble,
            max_len=max_len,
            dev_mode=self._settings.dev_mode,
        )
        self._backend.listen()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        http = await asyncio.start_server(self._accept, sock=listener, backlog=2048)
        self._begin()
        await self._leave.wait()
        await self._close(http)

    def _begin(self) -> None:
        self._start(self._watchdog())
        self._start(self._log_stats())
        self._start(self._generate_load())
        if self._settings.control_file:
            self._start(self._trouble.follow(self._settings.control_file))
        for command in read_commands(self._settings.fault):
            self._trouble.begin(command)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer, self._routes.respond, self._routes.log)
        self._connections.add(connection)
        try:
            await connection.serve()
        finally:
            self._connections.discard(connection)

    def _say(self, text: str) -> None:
        self._journal.say("APIServer", "INFO", text)

    def _stop(self) -> None:
        if not self._backend.stopping:
            self._backend.stopping = True
            self._start(self._shut_down())

    async def _shut_down(self) -> None:
        timeout, backend = self._arguments.shutdown_timeout, self._backend
        mode = f"mode={'drain' if timeout else 'abort'} timeout={timeout}s"
        self._say("[launcher.py:254] [shutdown] API server: shutdown triggered")
        self._say(f"[launcher.py:270] [shutdown] API server: stopping engine client {mode}")
        if timeout:
            backend.tell(drain=float(timeout))
            await backend.gone_within(timeout + 5)
        if not backend.dead:
            told = bool(self._settings.stop_answers) or not len(backend.calls)
            backend.kill("engine_aborted", silently=not told)
            if told:
                self._journal.play("engine_dead")
        self._say("[launcher.py:279] [shutdown] API server: engine client stopped")
        self._say("[launcher.py:282] [shutdown] API server: signalling HTTP server shutdown")
        self._say("[launcher.py:304] [shutdown] API server: shutting down FastAPI HTTP server")
        self._leave.set()

    async def _close(self, http: asyncio.Server) -> None:
        http.close()
        say = self._journal.say
        say("", "", "INFO:     Shutting down")
        await asyncio.sleep(UVICORN_BEAT)
        for connection in [c for c in self._connections if not c.answering]:
            connection.close()
        if any(c.answering for c in self._connections):
            say("", "", "INFO:     Waiting for connections to close. (CTRL+C to force quit)")
        while any(c.answering for c in self._connections):  # noqa: ASYNC110 - as uvicorn does
            await asyncio.sleep(UVICORN_BEAT)
        say("", "", "INFO:     Waiting for application shutdown.")
        say("", "", "INFO:     Application shutdown complete.")
        if not self._backend.stopping:
            say("", "", f"INFO:     Finished server process [{os.getpid()}]")
        await asyncio.sleep(self._settings.teardown_seconds)

    async def _watchdog(self) -> None:
        while True:
            await asyncio.sleep(self._settings.watchdog_seconds)
            self._leave_if_dead()

    def _leave_if_dead(self) -> None:
        keep = self._settings.keep_alive or self._trouble.keep_alive
        if self._backend.dead and not keep:
            self._leave.set()

    async def _log_stats(self) -> None:
        stats = StatsLine(self._exposition)
        while not self._arguments.disable_log_stats:
            await asyncio.sleep(STATS_INTERVAL)
            line = stats.next(STATS_INTERVAL)
            if line:
                self._say(line)

    async def _generate_load(self) -> None:
        while True:
            rate = self._settings.load if self._trouble.load is None else self._trouble.load
            await asyncio.sleep(1 / rate if rate else 0.5)
            if rate and not self._backend.dead and not self._backend.stopping:
                self._start(self._request_something())

    async def _request_something(self) -> None:
        prompt, limit = self._settings.load_prompt, self._settings.load_tokens
        begun, status = time.monotonic(), 200
        try:
            await self._backend.complete(prompt=prompt, limit=limit)
        except EngineDeadError:
            status = 500
        took = time.monotonic() - begun
        sizes = (prompt * 5, limit * 6)
        self._routes.http.count("/v1/completions", "POST", status, sizes=sizes, took=took)
