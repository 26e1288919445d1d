"""A real Prometheus for a while, the targets it scrapes, and what it has seen."""

import json
import shutil
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from sentinel.core.model.labels import Labels, labels_of

needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")

Points = dict[Labels, list[tuple[int, float]]]  # milliseconds


class Target:
    """Says one body after the other, one for each scrape; None is a scrape that fails."""

    def __init__(self, bodies: Sequence[bytes | None]) -> None:
        self._bodies = bodies
        self._served = 0
        self.said: list[bytes | None] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def is_done(self) -> bool:
        return len(self.said) > len(self._bodies)

    def next(self) -> bytes | None:
        body = self._bodies[min(len(self.said), len(self._bodies) - 1)]
        self.said.append(body)
        return body

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = target.next()
                self.send_response(200 if body is not None else 503)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                pass

        return Handler


class Prometheus:
    def __init__(self, address: str) -> None:
        self._url = f"http://{address}"

    def points(self, matrix: str) -> Points:
        """The samples of a range selector, as they were stored."""
        return {
            _labels(one): [(round(at * 1000), float(value)) for at, value in one["values"]]
            for one in self._ask(matrix, None)
        }

    def vector(self, expr: str, at_ms: int) -> dict[Labels, float]:
        return {_labels(one): float(one["value"][1]) for one in self._ask(expr, at_ms)}

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _ask(self, expr: str, at_ms: int | None) -> list[dict[str, Any]]:
        asked = {"query": expr} | ({} if at_ms is None else {"time": f"{at_ms / 1000:.3f}"})
        url = f"{self._url}/api/v1/query?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        result = found["data"]["result"]
        assert isinstance(result, list)
        return result


def _labels(one: dict[str, Any]) -> Labels:
    return labels_of(one["metric"])


@contextmanager
def running_prometheus(folder: Path, config: str) -> Iterator[Prometheus]:
    """Started on a free port, and stopped by its process id."""
    (folder / "prometheus.yml").write_text(config)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             f"--web.listen-address={address}", "--log.level=warn"],
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        prometheus = Prometheus(address)
        wait_until(lambda: prometheus.is_ready() or process.poll() is not None, 20)
        assert process.poll() is None, (folder / "log").read_text()
        yield prometheus
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_until(is_so: Any, within: float) -> None:
    until = monotonic() + within
    while not is_so():
        assert monotonic() < until, f"not within {within} s"
        sleep(0.05)
