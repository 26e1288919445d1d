"""Runs the API in a thread of its own, with an event loop of its own.

The thread is a daemon thread and `stop` has a deadline: a client that hangs must not keep
Sentinel from exiting. The socket and the TCP address are separate servers, so that a crowd
on the network cannot take the command line's place.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog
import uvicorn
from starlette.applications import Starlette

from sentinel.api.app import build_api
from sentinel.api.listen import Listener, give_to_group, is_loopback, open_tcp, open_unix
from sentinel.api.peer import PeerProtocol
from sentinel.api.routes import House
from sentinel.telemetry import events

CONNECTIONS = 128  # at once, for each listener

log = structlog.get_logger()


class ApiServer:
    def __init__(
        self,
        house: House,
        *,
        socket: Path,
        socket_group: str | None = None,
        listen: str | None = None,
        token: Callable[[], str] | None = None,
        now: Callable[[], datetime],
    ) -> None:
        self._house = house
        self._path = socket
        self._group = socket_group
        self._listen = listen
        self._token = token
        self._now = now
        self._servers: list[tuple[_Server, list[Listener]]] = []
        self._thread: threading.Thread | None = None
        self._ours: tuple[int, int] | None = None  # device and inode of our socket file

    def start(self) -> None:
        """Listen. Raises `Permanent` if the socket or the address cannot be had."""
        unix = open_unix(self._path)
        self._ours = _identity(self._path)
        try:
            tcp = open_tcp(self._listen) if self._listen else []
        except BaseException:
            unix.close()
            self._remove()
            raise
        if self._group and (why := give_to_group(self._path, self._group)):
            log.warning(events.PROBLEM_SEEN, because=why)
        self._servers = [(_server(self._app(trusted=True, open_reads=True)), [unix])]
        if tcp:
            app = self._app(trusted=False, open_reads=is_loopback(tcp))
            self._servers.append((_server(app), tcp))
        self._thread = threading.Thread(target=self._run, name="api", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def addresses(self) -> list[str]:
        """Where TCP is listened on, as host:port; the port is the real one."""
        return [
            "{}:{}".format(*sock.getsockname()[:2])
            for _, held in self._servers[1:]
            for sock in held
        ]

    def stop(self, deadline: float) -> None:
        """Answer what is being asked, for up to `deadline` seconds, then leave."""
        for server, _ in self._servers:
            server.leave()
        self._remove()
        if self._thread is not None:
            self._thread.join(deadline)
        for server, _ in self._servers:
            server.force_exit = True

    def _app(self, *, trusted: bool, open_reads: bool) -> Starlette:
        return build_api(
            self._house,
            token=self._token,
            trusted=trusted,
            now=self._now,
            open_reads=open_reads,
        )

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        await asyncio.gather(*(server.serve(sockets=held) for server, held in self._servers))

    def _remove(self) -> None:
        """Take our socket file away; not one that another daemon has put there since."""
        if self._ours is not None and _identity(self._path) == self._ours:
            with contextlib.suppress(OSError):
                self._path.unlink()
        self._ours = None


class _Server(uvicorn.Server):
    """Wakes once a second, for the date in its answers, and not ten times to see if it may stay."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._leave = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._leave.wait()

    def leave(self) -> None:
        """From any thread."""
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # has ended already
                self._loop.call_soon_threadsafe(self._leave.set)


def _server(app: Starlette) -> _Server:
    return _Server(
        uvicorn.Config(
            app,
            http=PeerProtocol,
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,  # nobody may claim another address
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=1,
        )
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
