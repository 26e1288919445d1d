"""Debian's Prometheus and Alertmanager on the same targets, rules and intervals as Sentinel.

Tuned for speed: no `group_wait`, evaluation as often as scrapes. It cannot see Docker, so a
dead container is to it a target that does not answer.
"""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import yaml

from deploy.testbed import Box, free_port
from tests.bench.setup import HOST, RULES, Setup

NAMES = ("prometheus", "prometheus-alertmanager")


class Prometheus:
    """Two processes. `pids` are theirs."""

    def __init__(self, folder: Path, setup: Setup, boxes: Sequence[Box], hook: str) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        alerts, metrics = free_port(), free_port()
        self._write("alertmanager.yml", _alertmanager(setup, hook))
        self._write("prometheus.yml", _prometheus(setup, boxes, alerts))
        self._start(
            "prometheus-alertmanager",
            f"--config.file={folder}/alertmanager.yml",
            f"--storage.path={folder}/alertmanager",
            f"--web.listen-address=127.0.0.1:{alerts}",
            "--cluster.listen-address=",
        )
        self._start(
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/tsdb",
            f"--web.listen-address=127.0.0.1:{metrics}",
        )

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes]

    def close(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(20)

    def _write(self, name: str, content: object) -> None:
        (self._folder / name).write_text(yaml.safe_dump(content))

    def _start(self, *words: str) -> None:
        with (self._folder / f"{words[0]}.log").open("wb") as log:
            self._processes.append(subprocess.Popen(words, stdout=log, stderr=log))


def is_installed() -> bool:
    return all(shutil.which(name) for name in NAMES)


def versions() -> dict[str, str]:
    return {name: _version(name) for name in NAMES}


def _version(name: str) -> str:
    done = subprocess.run([name, "--version"], capture_output=True, text=True, check=True)
    return (done.stdout + done.stderr).split("version ")[1].split(" ")[0]


def _alertmanager(setup: Setup, hook: str) -> object:
    return {
        "route": {"receiver": "hook", "group_by": ["target"], **setup.pace},
        "receivers": [{"name": "hook", "webhook_configs": [{"url": hook}]}],
    }


def _prometheus(setup: Setup, boxes: Sequence[Box], alertmanager: int) -> object:
    interval = f"{setup.interval}s"
    targets = [
        {"targets": [f"127.0.0.1:{box.port}"], "labels": {"target": box.name, "host": HOST}}
        for box in boxes
    ]
    return {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": setup.timeout,
            "evaluation_interval": interval,
        },
        "rule_files": [*map(str, RULES), str(setup.rules)],
        "scrape_configs": [{"job_name": "vllm", "static_configs": targets}],
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager}"]}]}]
        },
    }
