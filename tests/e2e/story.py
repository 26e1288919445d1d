"""A Sentinel daemon as a process and a webhook that listens, for stories told end to end."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from deploy.testbed import wait_until

CONFIG = """
mode: act
docker: {{host: "unix:///var/run/docker.sock", reconcile_interval: 2s}}
global: {{scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}}
targets:
  discover:
    - {{name: "{prefix}*"}}
  overrides:
    - {{name: "{prefix}*", hung_after: 20s, startup_deadline: 5m}}
guards: {{cooldown: 5s, verify_within: 5m}}
route: {{receiver: hook, group_by: [incident], group_wait: 0s, group_interval: 2s}}
receivers:
  - name: hook
    webhook_configs: [{{url: "{hook}", send_resolved: true}}]
"""


class Hook:
    """Takes Alertmanager's webhook and keeps what came."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        kept = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", "0"))
                kept.append(json.loads(self.rfile.read(length)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def kinds(self) -> list[str]:
        return [message["sentinel"]["kind"] for message in self.messages]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()


class Sentinel:
    """`sentinel run` in `folder`, and the commands that ask it."""

    def __init__(self, folder: Path, *, prefix: str, hook: str) -> None:
        self._socket = folder / "s.sock"
        self._log = (folder / "sentinel.log").open("wb")
        config = folder / "sentinel.yaml"
        config.write_text(CONFIG.format(prefix=prefix, hook=hook))
        flags = ["--config", str(config), "--state-dir", str(folder / "state")]
        self._process = subprocess.Popen(
            [*self._program(), "run", *flags, "--socket", str(self._socket)],
            stdout=self._log,
            stderr=self._log,
        )
        self.log_file = folder / "sentinel.log"

    @staticmethod
    def _program() -> list[str]:
        return [sys.executable, "-m", "sentinel"]

    def ask(self, *words: str) -> Mapping[str, Any]:
        """One command with --json; empty when the daemon does not answer yet."""
        command = [*self._program(), *words, "--json"]
        environment = {**os.environ, "SENTINEL_SOCKET": str(self._socket)}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        found: Mapping[str, Any] = json.loads(done.stdout) if done.stdout.startswith("{") else {}
        return found

    def target(self, name: str) -> Mapping[str, Any]:
        found = [t for t in self.ask("status").get("targets", []) if t["name"] == name]
        return found[0] if found else {}

    def wait_for_state(self, name: str, *states: str, seconds: float) -> Mapping[str, Any]:
        return (
            wait_until(
                lambda: (found := self.target(name)) and found["state"] in states and found,
                seconds,
                f"{name} to be {' or '.join(states)}; the daemon said:\n{self._tail()}",
            )
            or {}
        )

    def _tail(self) -> str:
        return self.log_file.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(5)
        self._log.close()
