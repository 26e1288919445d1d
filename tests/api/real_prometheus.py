"""Debian's Prometheus as the judge: over the same samples as ours, on a port of its own."""

import json
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from sentinel.api.prometheus import figures

Samples = Mapping[int, Sequence[tuple[str, Mapping[str, str], float]]]


def exposition(samples: Samples) -> str:
    """OpenMetrics with the time of every sample, one series after the other."""
    by_series: dict[str, list[str]] = {}
    for at in sorted(samples):
        for name, labels, value in samples[at]:
            shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            series = f"{name}{{{shown}}}" if shown else name
            by_series.setdefault(series, []).append(f"{series} {figures.value(value)} {at}")
    lines = [line for series in sorted(by_series) for line in by_series[series]]
    return "\n".join([*lines, "# EOF", ""])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextmanager
def prometheus_holding(folder: Path, samples: Samples) -> Iterator[str]:
    """The address of a Prometheus that holds `samples` and scrapes nothing."""
    (folder / "samples.txt").write_text(exposition(samples), encoding="utf-8")
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples.txt", "data"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    with prometheus(folder, "global: {scrape_interval: 15s}\n") as address:
        yield address


@contextmanager
def prometheus(folder: Path, config: str) -> Iterator[str]:
    """The address of a Prometheus that runs in `folder` until the block ends."""
    (folder / "prometheus.yml").write_text(config)
    port = _free_port()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            ],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait_for(address, process)
        yield address
    finally:
        process.kill()
        process.wait(10)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(address: str, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(f"{address}/-/ready", timeout=2) as answer:
                if answer.status == 200:
                    return
        except HTTPError as refusal:
            refusal.close()
        except URLError:
            pass
        time.sleep(0.05)
    raise AssertionError("Prometheus did not start")


def ask(address: str, method: str, path: str, pairs: Sequence[tuple[str, str]]) -> tuple[int, Any]:
    form = urlencode(pairs)
    url = f"{address}/api/v1/{path}"
    request = (
        Request(f"{url}?{form}") if method == "GET" else Request(url, form.encode(), method="POST")
    )
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except HTTPError as refusal:
        with refusal:
            return refusal.code, json.loads(refusal.read())
