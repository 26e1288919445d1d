"""Programs that speak to an Alertmanager, unchanged, to the daemon: a Prometheus, and amtool."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker
import pytest

from deploy.testbed import Testbed, free_port, wait_until
from tests.api.real_prometheus import prometheus
from tests.blackbox import Daemon, Hook

pytestmark = [
    pytest.mark.docker,
    pytest.mark.timeout(180),
    pytest.mark.skipif(shutil.which("amtool") is None, reason="needs amtool"),
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus"),
]

TOKEN = "sesame"
PROMETHEUS = """
global: {{scrape_interval: 1s, evaluation_interval: 1s, external_labels: {{site: here}}}}
alerting:
  alertmanagers:
    - authorization: {{credentials_file: token}}
      static_configs: [{{targets: ["{sentinel}"]}}]
rule_files: [rules.yml]
scrape_configs:
  - {{job_name: lamp, static_configs: [{{targets: ["{lamp}"]}}]}}
"""
RULES = """
groups:
  - name: lamps
    rules:
      - alert: LampIsOn
        expr: lamp == 1
        labels: {severity: warning, room: "{{ $labels.room }}"}
        annotations: {summary: "the lamp is on in {{ $labels.room }}"}
"""


class Lamp:
    """A gauge that a test turns on and off."""

    def __init__(self) -> None:
        self.is_on = False
        lamp = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(f'lamp{{room="cellar"}} {int(lamp.is_on)}\n'.encode())

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()


@dataclass(frozen=True)
class Beside:
    """A daemon with an address, and a Prometheus for which it is the Alertmanager."""

    daemon: Daemon
    hook: Hook
    lamp: Lamp
    folder: Path
    address: str

    def amtool(self, *words: str) -> str:
        done = subprocess.run(
            [
                "amtool",
                "--no-version-check",
                "--http.config.file=http.yml",
                f"--alertmanager.url=http://{self.address}",
                *words,
            ],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def alerts(self, *words: str) -> Any:
        return json.loads(self.amtool("alert", "query", "--output=json", *words))

    def statuses(self) -> list[str]:
        """What the hook was told of the lamp, in order."""
        return [
            alert["status"]
            for message in self.hook.messages
            for alert in message["alerts"]
            if alert["labels"].get("alertname") == "LampIsOn"
        ]


@pytest.fixture
def beside(tmp_path: Path, docker_engine: docker.DockerClient) -> Iterator[Beside]:
    bench = Testbed(docker_engine)
    address = f"127.0.0.1:{free_port()}"
    for name in ("token", "http.yml", "rules.yml"):
        text = {"token": TOKEN, "rules.yml": RULES}.get(
            name, "authorization: {credentials_file: token}"
        )
        (tmp_path / name).write_text(text)
    (tmp_path / "token").chmod(0o600)
    override = (
        f'api: {{listen: "{address}", token_file: token}}\n'
        "route: {receiver: hook, group_by: [alertname], group_wait: 0s, group_interval: 1s}"
    )
    with closing(Hook()) as hook, closing(Lamp()) as lamp:
        daemon = Daemon(tmp_path, prefix=bench.prefix, hook=hook.url, override=override)
        try:
            daemon.start()
            wait_until(lambda: daemon.ask("status"), 40, "the daemon to answer")
            config = PROMETHEUS.format(sentinel=address, lamp=lamp.address)
            with prometheus(tmp_path, config):
                yield Beside(daemon, hook, lamp, tmp_path, address)
        finally:
            daemon.close()
            bench.clean()


def test_a_prometheus_is_heard_and_passed_on(beside: Beside) -> None:
    beside.lamp.is_on = True
    [alert] = wait_until(beside.alerts, 40, "the alert to arrive")
    wait_until(lambda: beside.statuses() == ["firing"], 40, "somebody to be told")

    assert alert["labels"] == {
        "alertname": "LampIsOn",
        "instance": beside.lamp.address,
        "job": "lamp",
        "room": "cellar",
        "severity": "warning",
        "site": "here",
    }
    assert alert["annotations"] == {"summary": "the lamp is on in cellar"}
    assert alert["receivers"] == [{"name": "hook"}]
    assert alert["status"]["state"] == "active"
    assert "/graph?g0.expr=lamp" in alert["generatorURL"]

    beside.lamp.is_on = False
    wait_until(lambda: beside.statuses() == ["firing", "resolved"], 60, "its end to be told")
    assert beside.alerts() == []


def test_what_is_silenced_is_not_told(beside: Beside) -> None:
    made = beside.daemon.run("silence", "add", 'alertname="LampIsOn"', "room=cellar", "--for", "1h")
    assert made.returncode == 0, made.stderr
    name = made.stdout.strip()

    beside.lamp.is_on = True
    [alert] = wait_until(lambda: beside.alerts("--silenced"), 40, "the alert to arrive")
    assert alert["status"] == {"inhibitedBy": [], "silencedBy": [name], "state": "suppressed"}
    assert beside.statuses() == []

    beside.daemon.kill()
    beside.daemon.start()
    wait_until(lambda: beside.daemon.ask("status"), 40, "the daemon to be back")
    [again] = wait_until(lambda: beside.alerts("--silenced"), 40, "the alert to be there still")
    assert again["status"]["silencedBy"] == [name]

    beside.amtool("silence", "expire", name)
    wait_until(lambda: beside.statuses() == ["firing"], 40, "somebody to be told")


def test_amtool_follows_the_routes(beside: Beside) -> None:
    assert beside.amtool("config", "routes", "test", "alertname=X").strip() == "hook"
    shown = beside.amtool("config", "show")
    assert beside.hook.url not in shown
    assert "<secret>" in shown
