"""A real Alertmanager for a while, and somebody who listens to what it says."""

import asyncio
import http.client
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import pytest
from aiohttp import web

from deploy.testbed import free_port, wait_until

_NAMES = ("prometheus-alertmanager", "alertmanager")
_BINARY = next((found for name in _NAMES if (found := shutil.which(name))), None)
needs_alertmanager = pytest.mark.skipif(_BINARY is None, reason="needs prometheus-alertmanager")


@dataclass(frozen=True, slots=True)
class Heard:
    """One webhook message."""

    at: float  # seconds since 1970
    path: str
    body: dict[str, Any]


class Listener:
    """Serves webhooks on a port of its own, and keeps what arrives."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 24)
        app.router.add_post("/{path:.*}", self._hear)
        runner = web.AppRunner(app, access_log=None)
        self._loop.run_until_complete(runner.setup())
        self._loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", self.port).start())
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _hear(self, request: web.Request) -> web.Response:
        at = time.time()
        self.heard.append(Heard(at, request.path, await request.json()))
        return web.Response()


class Alertmanager:
    """Its API, over one connection."""

    def __init__(self, port: int, log: Path) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self._log = log

    def again(self) -> "Alertmanager":
        """The same one over another connection, for another thread."""
        return Alertmanager(self._port, self._log)

    @property
    def began_at(self) -> float:
        """When it began to dispatch; its clean-ups are every 30 seconds from then."""
        said = re.findall(r"ts=(\S+) .*Completed loading of configuration", self._log.read_text())
        return datetime.fromisoformat(said[-1]).timestamp()

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status, and what the answer says."""
        sent = None if body is None else json.dumps(body)
        headers = {} if sent is None else {"Content-Type": "application/json"}
        self._connection.request(method, f"/api/v2/{path}", sent, headers)
        answer = self._connection.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said.strip() else None

    def close(self) -> None:
        self._connection.close()

    def is_ready(self) -> bool:
        try:
            return self.ask("GET", "status")[0] == 200
        except OSError:
            self.close()
            return False


class Pulse:
    """Asks all the time, to know whether Alertmanager or this process was ever late."""

    def __init__(self, alertmanager: Alertmanager, late: float) -> None:
        self.was_late = False
        self._alertmanager, self._late = alertmanager, late
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._feel, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def _feel(self) -> None:
        last = time.monotonic()
        while not self._over.wait(0.04):
            ready = self._alertmanager.is_ready()
            now = time.monotonic()
            self.was_late |= not ready or now - last > self._late
            last = now
        self._alertmanager.close()


@contextmanager
def running_alertmanager(folder: Path, config: str) -> Iterator[Alertmanager]:
    """Started on a free port with storage of its own, and stopped by its process id."""
    assert _BINARY is not None, f"none of {_NAMES} is installed"
    (folder / "alertmanager.yml").write_text(config)
    port, log = free_port(), folder / "alertmanager.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [_BINARY, "--config.file=alertmanager.yml", "--storage.path=alertmanager-data",
             f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
            cwd=folder, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        alertmanager = Alertmanager(port, log)
        wait_until(lambda: alertmanager.is_ready() or process.poll() is not None, 20)
        assert process.poll() is None, log.read_text()
        yield alertmanager
        alertmanager.close()
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
