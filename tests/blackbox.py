"""A daemon as a process, seen from outside: files, flags, socket, webhook. Nothing of it is
imported, so several run beside each other and any of them may be killed."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import pytest

from deploy.testbed import wait_until

Json = Mapping[str, Any]

CONFIG = """
mode: {mode}
docker: {{host: "{docker}", reconcile_interval: 2s}}
global: {{scrape_interval: 1s, scrape_timeout: 900ms}}
targets:
  discover: [{{name: "{prefix}*"}}]
{override}
guards: {{verify_within: 5m}}
receivers:
  - name: hook
    webhook_configs: [{{url: "{hook}"}}]
{more}
"""


class Hook:
    """Takes Alertmanager's webhook and keeps what came, with the time it came."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.times: list[datetime] = []
        self.status = 200
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                if hook.status == 200:
                    hook.times.append(datetime.now(UTC))
                    hook.messages.append(json.loads(body))
                self.send_response(hook.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def kinds(self) -> list[str]:
        return [message["sentinel"]["kind"] for message in self.messages]

    @property
    def alertnames(self) -> set[str]:
        return {a["labels"]["alertname"] for m in self.messages for a in m["alerts"]}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


class Daemon:
    """`sentinel run` over a folder of its own; may be killed and started again."""

    journals: ClassVar[list[tuple[str, Path]]] = []  # whose containers, and what was done to them

    def __init__(self, folder: Path, *, prefix: str, hook: str, **settings: str) -> None:
        self.journals.append((prefix, folder / "state" / "state.db"))
        self.folder = folder
        self.within: Sequence[str] = ()  # the command that runs it, if it is to run elsewhere
        self.socket = folder / "s.sock"
        self.config = folder / "sentinel.yaml"
        self.log_file = folder / "sentinel.log"
        wanted = {
            "mode": "act",
            "docker": "unix:///var/run/docker.sock",
            "override": "",
            "more": "",
            **settings,
        }
        self.config.write_text(CONFIG.format(prefix=prefix, hook=hook, **wanted))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Daemon":
        state = str(self.folder / "state")
        flags = ["--config", str(self.config), "--state-dir", state, "--socket", str(self.socket)]
        return self._start("-m", "sentinel", "run", *flags)

    def start_mortal(self, point: str, when: str, nth: int) -> "Daemon":
        """As `start`, but killed at one word of a remedy: see `tests.docker.mortal_daemon`."""
        places = [str(path) for path in (self.config, self.folder / "state", self.socket)]
        return self._start("-m", "tests.docker.mortal_daemon", point, when, str(nth), *places)

    def _start(self, *words: str) -> "Daemon":
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.within, sys.executable, *words], stdout=log, stderr=log
            )
        return self

    def ask(self, *words: str) -> Json:
        """What such a command prints with --json, from the socket itself: no process for each
        question. Empty when the daemon does not answer."""
        path = "/".join(quote(word, safe="") for word in words if word != "show")
        with contextlib.closing(_UnixConnection(self.socket)) as connection:
            try:
                connection.request("GET", f"/api/sentinel/v1/{path}")
                answer = connection.getresponse()
                found: Json = json.loads(answer.read())
            except (OSError, http.client.HTTPException):
                return {}
        return found if answer.status == 200 else {}

    def tell(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Ask the socket for a change. The status is 0 when nothing answers."""
        with contextlib.closing(_UnixConnection(self.socket)) as connection:
            try:
                headers = {"content-type": "application/json"}
                connection.request(method, path, json.dumps(body), headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read() or b"null")
            except (OSError, ValueError, http.client.HTTPException):
                return 0, None

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "sentinel", *words],
            capture_output=True,
            text=True,
            env={**os.environ, "SENTINEL_SOCKET": str(self.socket)},
            check=False,
            timeout=60,
        )

    def target(self, name: str) -> Json:
        found = [t for t in self.ask("status").get("targets", []) if t["name"] == name]
        return found[0] if found else {}

    def wait_for_state(self, name: str, *states: str, seconds: float = 40) -> Json:
        def there() -> Json:
            found = self.target(name)
            return found if found.get("state") in states else {}

        return wait_until(there, seconds, f"{name} to be {' or '.join(states)}:\n{self.tail()}")

    def wait_for_incident(self, status: str, seconds: float = 60) -> Json:
        def there() -> Json:
            found = self.ask("incidents").get("incidents", [])
            return next((i for i in found if i["status"] == status), {})

        found = wait_until(there, seconds, f"an incident to be {status}:\n{self.tail()}")
        return self.ask("incidents", "show", found["id"])

    def events(self) -> list[str]:
        lines = self.log_file.read_text(errors="replace").splitlines()
        return [json.loads(line)["event"] for line in lines if line.startswith("{")]

    def tail(self) -> str:
        return self.log_file.read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """As the kernel would: no chance to say goodbye."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def close(self) -> None:
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
            raise
