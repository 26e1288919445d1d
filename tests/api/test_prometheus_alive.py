"""Rules, alerts, targets and metadata beside those of a real Prometheus that scrapes and judges.

What differs from one moment to the next (times, durations, the address) is left out.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from sentinel.api.prometheus.copies import Judged, Scraped
from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.model.series import Store
from sentinel.runtime.describe import descriptions_in
from tests.api.fake_house import FakeHouse, served, wait_until
from tests.api.library import Client, Library
from tests.api.real_prometheus import ask, prometheus

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")

RULES = r"""
groups:
- name: first
  interval: 200ms
  limit: 5
  rules:
  - record: job:one:sum
    expr: sum(vector(1))
    labels: {kind: recorded}
  - record: bare
    expr: vector(2)
  - alert: Always
    expr: vector(1.5) > 1
    labels: {severity: page, shown: "{{ $value }}"}
    annotations: {summary: "is {{ $value }}"}
  - alert: Waiting
    expr: vector(123456)
    for: 1h
    keep_firing_for: 90s
  - alert: Never
    expr: vector(0) > 1
    for: 500ms
  - alert: Broken
    expr: label_replace(vector(1), "x", "1", "", "") or label_replace(vector(1), "x", "2", "", "")
    labels: {x: same}
- name: second
  rules:
  - alert: Small
    expr: vector(1e-07)
"""
CONFIG = """
global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}
rule_files: [rules.yml]
scrape_configs:
- job_name: vllm
  static_configs: [{{targets: ["{address}"], labels: {{target: a}}}}]
"""
BODY = r"""# HELP reqs_total Requests, \\ and \n a line.
# TYPE reqs_total counter
reqs_total{code="200"} 1
# TYPE size gauge
size 3
# HELP ttft Time.
# TYPE ttft histogram
ttft_bucket{le="1"} 1
ttft_bucket{le="+Inf"} 1
ttft_sum 1
ttft_count 1
# HELP only Said, never measured.
# TYPE odd untyped
odd NaN
"""
PASSING = ("evaluationTime", "lastEvaluation", "activeAt", "lastScrape", "lastScrapeDuration")


@contextmanager
def exposing(body: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(5)
    server.server_close()


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with exposing(BODY) as address:
        yield address


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory, target: str) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "rules.yml").write_text(RULES)
    with prometheus(folder, CONFIG.format(address=target)) as address:
        wait_until(lambda: is_at_work(address), 30)
        yield address


def is_at_work(address: str) -> bool:
    _, scraped = ask(address, "GET", "targets", [])
    _, judged = ask(address, "GET", "rules", [])
    health = [target["health"] for target in scraped["data"]["activeTargets"]]
    rules = [rule for group in judged["data"]["groups"] for rule in group["rules"]]
    return health == ["up"] and bool(rules) and all(r["health"] != "unknown" for r in rules)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory, target: str) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("sentinel")
    library = Library(rules=judged(folder), targets=[scraped(target)])
    with served(FakeHouse(library=library), folder / "s.sock"):
        yield Client(folder / "s.sock")


def judged(folder: Path) -> Judged:
    file = folder / "rules.yml"
    file.write_text(RULES)
    now = datetime(2030, 1, 1, tzinfo=UTC)
    evaluator = Evaluator(load_rule_files([file]), Store())
    evaluator.evaluate(now)
    evaluation = evaluator.evaluate(now + timedelta(seconds=1))
    return Judged(
        groups=evaluator.groups,
        active=evaluation.active,
        failing={failure.rule.id: failure.because for failure in evaluation.failures},
        evaluated_at=now,
        interval=timedelta(milliseconds=200),
    )


def scraped(address: str) -> Scraped:
    return Scraped(
        labels={"instance": address, "job": "vllm", "target": "a"},
        discovered={
            "__address__": address,
            "__metrics_path__": "/metrics",
            "__scheme__": "http",
            "__scrape_interval__": "200ms",
            "__scrape_timeout__": "200ms",
            "job": "vllm",
            "target": "a",
        },
        url=f"http://{address}/metrics",
        health="up",
        at=datetime(2030, 1, 1, tzinfo=UTC),
        took=0.001,
        descriptions=descriptions_in(BODY),
    )


def lasting(value: Any) -> Any:
    """Without what passes; a file by its name alone, an error by its last words."""
    if isinstance(value, list):
        return [lasting(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: lasting(each) for key, each in value.items() if key not in PASSING}
    if "file" in kept:
        kept["file"] = Path(kept["file"]).name
    if kept.get("lastError"):
        kept["lastError"] = kept["lastError"].rpartition(": ")[2]
    return kept


@pytest.mark.parametrize(
    "pairs",
    [[], [("type", "alert")], [("type", "record")]],
    ids=["all", "alerting", "recording"],
)
def test_rules_are_told_alike(theirs: str, ours: Client, pairs: list[tuple[str, str]]) -> None:
    _, answer = ask(theirs, "GET", "rules", pairs)
    expected = [group for group in lasting(answer["data"]["groups"]) if group["rules"]]

    found = lasting(ours.data("rules", *pairs)["groups"])

    for group in (*expected, *found):
        for rule in group["rules"]:
            rule["labels"] = rule.get("labels") or {}  # Prometheus 2 leaves out empty ones
    assert found == expected


def test_alerts_are_told_alike(theirs: str, ours: Client) -> None:
    _, answer = ask(theirs, "GET", "alerts", [])

    def ordered(data: Any) -> list[Any]:
        return sorted(lasting(data["alerts"]), key=lambda alert: str(alert["labels"]))

    assert ordered(ours.data("alerts")) == ordered(answer["data"])


def test_targets_are_told_alike(theirs: str, ours: Client) -> None:
    _, answer = ask(theirs, "GET", "targets", [])
    [expected] = answer["data"]["activeTargets"]
    [found] = ours.data("targets")["activeTargets"]

    assert found.keys() == expected.keys()
    for key in ("discoveredLabels", "labels", "scrapePool", "scrapeUrl", "lastError", "health"):
        assert found[key] == expected[key]
    for key in PASSING[3:]:
        assert type(found[key]) is type(expected[key])


@pytest.mark.parametrize("pairs", [[], [("metric", "ttft")], [("metric", "nothing")]])
@pytest.mark.parametrize("path", ["metadata", "targets/metadata"])
def test_what_targets_say_is_told_alike(
    theirs: str, ours: Client, path: str, pairs: list[tuple[str, str]]
) -> None:
    status, answer = ask(theirs, "GET", path, pairs)
    found_status, found = ours.get(path, *pairs)

    assert found_status == status
    assert named(found) == named(answer)


def named(answer: Any) -> Any:
    data = answer["data"]
    if isinstance(data, dict):
        return {name: told for name, told in data.items() if not name.startswith("sentinel_")}
    return sorted(data, key=lambda told: told.get("metric", ""))
