"""The same rules over the same targets: evaluated here, and by a real Prometheus."""

import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.testbed import free_port, wait_until
from sentinel.adapters.clock import MachineClock
from sentinel.adapters.prometheus_source import PrometheusSource
from sentinel.config.evaluation import PrometheusSource as Setting
from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.alerting.outside import Answer, Question
from sentinel.core.model.errors import Permanent
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.ingest import Exposition
from sentinel.runtime.outside import OutsideRules, Place
from sentinel.runtime.plan import Plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus"),
]

EVERY = timedelta(milliseconds=400)
RULES = """
groups:
  - name: g
    rules:
      - record: waiting:max
        expr: max without (engine) (vllm:num_requests_waiting)
        labels: {team: infra}
      - alert: Queue
        expr: waiting:max > 5
        for: 1200ms
      - alert: Cache
        expr: vllm:kv_cache_usage_perc > 0.9
        keep_firing_for: 1s
        labels: {severity: warning}
        annotations: {summary: '{{ $labels.target }} at {{ $value | humanizePercentage }}'}
      - alert: Busy
        expr: count(vllm:num_requests_waiting > 0) > 1
      - alert: Watchdog
        expr: vector(1)
      - alert: Never
        expr: absent(vllm:num_requests_waiting)
"""
WATCHDOG = ("Watchdog", "", "firing")


class Target:
    """Serves numbers that a test sets, as vLLM does."""

    def __init__(self, name: str) -> None:
        self.name, self.waiting, self.cache = name, 0, 0.0
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = target.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.instance = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def text(self) -> str:
        return (
            "# TYPE vllm:num_requests_waiting gauge\n"
            f'vllm:num_requests_waiting{{engine="0",model_name="m"}} {self.waiting}\n'
            "# TYPE vllm:kv_cache_usage_perc gauge\n"
            f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {self.cache}\n'
        )


class Prometheus:
    def __init__(self, folder: Path, targets: list[Target]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        configs = [{"targets": [t.instance], "labels": {"container": t.name}} for t in targets]
        scrape = {"job_name": "vllm", "scrape_interval": "200ms", "static_configs": configs}
        (folder / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [scrape]}))
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._is_ready, 30, "prometheus to be ready")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(20)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


States = set[tuple[str, str, str]]


class Both:
    """Two evaluators over the same targets, turned by hand as the loop would."""

    def __init__(self, targets: list[Target], url: str, rules: Path) -> None:
        self.clock, self.inbox, self.targets = MachineClock(), Inbox(), targets
        groups = tuple(load_rule_files([rules], compat=2))
        plan = Plan(host="gpu1", rules=groups, evaluation_interval=EVERY)
        self.outside = OutsideRules(self.clock, self.inbox)
        source = PrometheusSource(Setting(url=url), {}, self.clock)
        self.outside.use(Place(source=source, url=url, target_label="container"), plan)
        self.there = Evaluator(groups, Store())
        self.store = Store()
        self.here = Evaluator(groups, self.store)
        self._texts = {
            t.name: Exposition(
                self.store.source(
                    t.name,
                    {"target": t.name, "host": "gpu1", "instance": t.instance, "job": "vllm"},
                )
            )
            for t in targets
        }

    def turn(self) -> None:
        now = self.clock.now()
        for target in self.targets:
            self._texts[target.name].take(target.text.encode(), millis(now))
        self.here.evaluate(now)
        self.outside.ask_if_due(now)
        for call, _ in self.inbox.wait(0.04):
            call()
        self.there.evaluate(now, outside=self.outside.take(now))

    def run(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self.turn()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def met() -> bool:
            self.turn()
            return condition()

        wait_until(met, 15, f"{what}: here {states(self.here)}, there {states(self.there)}")

    def until_both(self, *expected: tuple[str, str, str]) -> None:
        wanted = {*expected, WATCHDOG}
        self.until(lambda: states(self.here) == wanted, f"here {wanted}")
        self.until(lambda: states(self.there) == wanted, f"there {wanted}")


def states(evaluator: Evaluator) -> States:
    return {
        (alert.alertname, alert.labels.get("target", ""), alert.state)
        for alert in evaluator.active
        if alert.state != "resolved"
    }


def details(evaluator: Evaluator) -> list[Any]:
    """All that is told of alerts; what names the target there is left out."""
    return sorted(
        (
            sorted(pair for pair in alert.labels.items() if pair[0] != "container"),
            sorted(alert.annotations.items()),
            alert.value,
        )
        for alert in evaluator.active
        if alert.state == "firing"
    )


@pytest.fixture
def targets() -> Iterator[list[Target]]:
    made = [Target("t1-a"), Target("t1-b")]
    yield made
    for target in made:
        target.server.shutdown()
        target.server.server_close()


@pytest.fixture
def prometheus(tmp_path: Path, targets: list[Target]) -> Iterator[Prometheus]:
    made = Prometheus(tmp_path, targets)
    yield made
    made.stop()


@pytest.fixture
def both(tmp_path: Path, targets: list[Target], prometheus: Prometheus) -> Both:
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    return Both(targets, prometheus.url, rules)


def test_alerts_are_the_same_wherever_rules_are_evaluated(
    both: Both, targets: list[Target], prometheus: Prometheus
) -> None:
    first, second = targets
    both.until_both()

    first.waiting = 9
    both.until(lambda: ("Queue", "t1-a", "pending") in states(both.there), "pending there")
    both.until_both(("Queue", "t1-a", "firing"))

    second.waiting, second.cache = 2, 0.97
    expected = [("Queue", "t1-a", "firing"), ("Cache", "t1-b", "firing"), ("Busy", "", "firing")]
    both.until_both(*expected)
    assert details(both.there) == details(both.here)

    prometheus.stop()
    first.waiting = second.waiting = 0
    both.run(3)
    assert states(both.there) == {*expected, WATCHDOG}
    [problem] = both.outside.problems()
    assert "connection refused" in problem

    prometheus.start()
    second.cache = 0.1
    both.until_both()
    both.until(lambda: both.outside.problems() == [], "no problem any more")


def test_what_prometheus_refuses_is_said_in_its_own_words(prometheus: Prometheus) -> None:
    clock = MachineClock()
    source = PrometheusSource(Setting(url=prometheus.url), {}, clock)
    wait_until(lambda: _is_true(source, clock), 15, "two targets to be up")
    questions = [
        Question(text, clock.now())
        for text in ("nonsense(", "vector(1) * on () group_left () up", "count(up)")
    ]

    found = source.ask(questions, within=timedelta(seconds=5))

    assert found.broken is None
    malformed, impossible, answered = (found.outcomes[question] for question in questions)
    assert isinstance(malformed, Permanent)
    assert "parse error" in malformed.message
    assert isinstance(impossible, Permanent)
    assert "many-to-many" in impossible.message
    assert isinstance(answered, Answer)
    assert [sample.value for sample in answered.vector] == [2.0]


def _is_true(source: PrometheusSource, clock: MachineClock) -> bool:
    question = Question("count(up == 1) == 2", clock.now())
    answer = source.ask([question], within=timedelta(seconds=5)).outcomes.get(question)
    return isinstance(answer, Answer) and answer.vector != ()
