"""Programs that speak to a Prometheus, unchanged, to the daemon over real containers."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import docker
import pytest

from deploy.testbed import Testbed, free_port, wait_until
from tests.blackbox import Daemon, Hook
from tests.docker.engine import QUICK

prometheus_api_client = pytest.importorskip("prometheus_api_client")

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

NAME = "vllm:num_requests_running"


@dataclass(frozen=True)
class Watching:
    """A daemon with an address, and two containers it has scraped a few times."""

    daemon: Daemon
    url: str
    targets: tuple[str, str]

    def promtool(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["promtool", "query", *words], capture_output=True, text=True, check=False, timeout=30
        )

    def ask(self, path: str, *pairs: tuple[str, str], method: str = "GET") -> Any:
        form = urlencode(pairs)
        url = f"{self.url}/api/v1/{path}"
        asked = Request(url, form.encode()) if method == "POST" else Request(f"{url}?{form}")
        with urlopen(asked, timeout=30) as answer:
            assert answer.headers["content-type"] == "application/json"
            told = json.loads(answer.read())
        assert told["status"] == "success"
        return told["data"]


@pytest.fixture(scope="module")
def watching(
    tmp_path_factory: pytest.TempPathFactory, docker_engine: docker.DockerClient
) -> Iterator[Watching]:
    folder: Path = tmp_path_factory.mktemp("tools")
    bench = Testbed(docker_engine)
    port = free_port()
    with closing(Hook()) as hook:
        listen = f'api: {{listen: "127.0.0.1:{port}"}}'
        daemon = Daemon(folder, prefix=bench.prefix, hook=hook.url, override=listen)
        try:
            boxes = [bench.run_simulated(name, env=QUICK) for name in "ab"]
            daemon.start()
            for box in boxes:
                daemon.wait_for_state(box.name, "idle")
            found = Watching(daemon, f"http://127.0.0.1:{port}", (boxes[0].name, boxes[1].name))

            def three_scrapes() -> bool:
                data = found.ask("query", ("query", f"count_over_time({NAME}[1m]) >= 3"))
                return len(data["result"]) == 2

            wait_until(three_scrapes, 30, "three scrapes of both")
            yield found
        finally:
            daemon.close()
            bench.clean()


needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")


@needs_promtool
def test_promtool_asks_for_an_instant(watching: Watching) -> None:
    done = watching.promtool("instant", watching.url, NAME)

    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 2
    for name, line in zip(sorted(watching.targets), sorted(lines, key=_target), strict=True):
        assert line.startswith(f"{NAME}{{")
        assert f'target="{name}"' in line
        assert ' job="vllm"' in line
        assert " host=" in line
        assert ' instance="127.0.0.1:' in line
        assert " => 0 @[" in line


def _target(line: str) -> str:
    return line.partition('target="')[2]


@needs_promtool
def test_promtool_is_told_what_is_wrong(watching: Watching) -> None:
    done = watching.promtool("instant", watching.url, "sum(")

    assert done.returncode != 0
    assert "bad_data: invalid parameter" in done.stderr
    assert "1:4: parse error: unclosed left parenthesis" in done.stderr


@needs_promtool
def test_promtool_asks_over_time(watching: Watching) -> None:
    start = str(time.time() - 3)

    done = watching.promtool("range", "--step=1s", f"--start={start}", watching.url, "1 + 1")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "{} =>"
    assert [line.split()[0] for line in done.stdout.strip().splitlines()[1:]] == ["2"] * 4


@needs_promtool
def test_promtool_lists_series_and_labels(watching: Watching) -> None:
    series = watching.promtool("series", f"--match={NAME}", watching.url)
    labels = watching.promtool("labels", watching.url, "target")

    assert (series.returncode, labels.returncode) == (0, 0), series.stderr + labels.stderr
    assert len(series.stdout.strip().splitlines()) == 2
    assert set(watching.targets) <= set(labels.stdout.split())


def test_the_command_line_prints_what_promtool_prints(watching: Watching) -> None:
    at = f"{time.time() - 1:.3f}"
    ours = watching.daemon.run("query", NAME, "--time", at)

    assert ours.returncode == 0, ours.stderr
    if shutil.which("promtool") is not None:
        theirs = watching.promtool("instant", f"--time={at}", watching.url, NAME)
        assert sorted(ours.stdout.splitlines()) == sorted(theirs.stdout.splitlines())


def test_prometheus_api_client_reads_all_it_can(watching: Watching) -> None:
    connect = prometheus_api_client.PrometheusConnect(url=watching.url, disable_ssl=True)
    now = datetime.now(UTC)
    before = now - timedelta(seconds=30)

    assert connect.check_prometheus_connection()
    assert NAME in connect.all_metrics()
    assert {"__name__", "target", "host", "instance", "job"} <= set(connect.get_label_names())
    assert set(watching.targets) <= set(connect.get_label_values("target"))
    assert len(connect.get_series(before, now, {"match[]": NAME})) == 2
    one = {"target": watching.targets[0]}
    [current] = connect.get_current_metric_value(NAME, label_config=one)
    assert current["value"][1] == "0"
    assert len(connect.custom_query(f"sum({NAME})")) == 1
    [over_time] = connect.custom_query_range(f"sum({NAME})", before, now, "1s")
    assert len(over_time["values"]) >= 2
    [ranged] = connect.get_metric_range_data(
        NAME, label_config=one, start_time=before, end_time=now, chunk_size=timedelta(seconds=10)
    )[-1:]
    assert ranged["metric"]["target"] == watching.targets[0]


def test_prometheus_api_client_aggregates(watching: Watching) -> None:
    pytest.importorskip("numpy")
    connect = prometheus_api_client.PrometheusConnect(url=watching.url, disable_ssl=True)
    now = datetime.now(UTC)
    before = now - timedelta(seconds=30)

    numbers = connect.get_metric_aggregation(
        f"sum({NAME})", ["sum", "max", "percentile_95"], before, now, "1s"
    )
    assert (numbers["sum"], numbers["max"]) == (0, 0)


def test_prometheus_api_client_reads_of_targets(watching: Watching) -> None:
    connect = prometheus_api_client.PrometheusConnect(url=watching.url, disable_ssl=True)

    active = connect.get_targets(state="active")["activeTargets"]
    assert {target["labels"]["target"] for target in active} == set(watching.targets)
    assert {target["health"] for target in active} == {"up"}
    assert connect.get_scrape_pools() == ["vllm"]
    [meta] = connect.get_metric_metadata(NAME)
    assert meta["type"] == "gauge"
    assert meta["help"]
    told = connect.get_target_metadata({"target": watching.targets[0]}, metric=NAME)
    assert [one["type"] for one in told] == ["gauge"]


def test_what_grafana_asks_is_answered(watching: Watching) -> None:
    """Saving the data source, then the query builder, a panel and the alert list."""
    now = str(int(time.time()))
    before = str(int(time.time()) - 60)
    span = (("start", before), ("end", now))

    for method in ("GET", "POST"):
        health = watching.ask("query", ("query", "1+1"), ("time", now), method=method)
        assert health == {"resultType": "scalar", "result": [int(now), "2"]}
    assert watching.ask("status/buildinfo")["version"].startswith("3.")
    assert "target" in watching.ask("labels", *span, method="POST")
    names = watching.ask("label/__name__/values", *span, ("match[]", '{job="vllm"}'))
    assert NAME in names
    values = watching.ask("label/target/values", *span, ("match[]", NAME), ("limit", "40000"))
    assert values == sorted(watching.targets)
    assert len(watching.ask("series", *span, ("match[]", NAME), method="POST")) == 2
    assert watching.ask("metadata", ("limit", "5000"))[NAME][0]["type"] == "gauge"
    panel = watching.ask(
        "query_range", ("query", f"sum by (target) ({NAME})"), *span, ("step", "15"), method="POST"
    )
    assert panel["resultType"] == "matrix"
    assert len(panel["result"]) == 2
    assert watching.ask("query_exemplars", ("query", NAME), *span) == []
    groups = watching.ask("rules")["groups"]
    health_of_all = {rule["health"] for group in groups for rule in group["rules"]}
    assert health_of_all == {"ok"}
    assert watching.ask("alerts") == {"alerts": []}
    assert (
        len(watching.ask("rules", ("group_limit", "1"), ("exclude_alerts", "true"))["groups"]) == 1
    )
    up = watching.ask("query", ("query", 'up{job="vllm"}'))["result"]
    assert [row["value"][1] for row in up] == ["1", "1"]
