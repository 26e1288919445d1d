"""A real Prometheus 2.42 and Sentinel's engine, fed the same scrapes at the same instants.

Prometheus scrapes two targets that replay vLLM 0.32. When it is over it tells at which
instants it took which scrape and evaluated its rules, and our store is fed the very bodies
the targets had said, at those instants. Only what Prometheus had not yet committed could
then differ: so rules read with `offset 3s`, and all else is asked when everything is in.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.evaluate import Evaluator, Setting
from sentinel.core.model.labels import value_of
from sentinel.core.model.series import Store
from sentinel.core.promql import RangeSample, Sample, compile_expression
from sentinel.runtime.ingest import Exposition
from tests.differential.live import (
    Points,
    Prometheus,
    Target,
    needs_prometheus,
    running_prometheus,
    wait_until,
)

FIXTURES = Path(__file__).parents[1] / "fixtures" / "vllm-0.32.0-cpu"
SCRAPES = 24
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

RULES = """\
groups:
  - name: live
    interval: 1s
    rules:
      - record: evaluated
        expr: vector(1)
      - record: ttft:p90
        expr: >-
          histogram_quantile(0.9, sum by (le, instance)
          (rate(vllm:time_to_first_token_seconds_bucket[8s] offset 3s)))
      - record: tokens:rate
        expr: sum by (instance) (rate(vllm:generation_tokens_total[6s] offset 3s))
      - alert: Busy
        expr: vllm:num_requests_running offset 3s > 2
        for: 2s
        labels: {severity: warning, engine: "{{ $labels.engine }}!"}
      - alert: Still
        expr: increase(vllm:generation_tokens_total[4s] offset 3s) < 1
        for: 1s
        keep_firing_for: 3s
      - alert: Slow
        expr: ttft:p90 > 0.01
      - alert: Gone
        expr: absent(vllm:num_requests_running{job="vllm", engine="0"} offset 3s)
      - alert: Restarted
        expr: resets(vllm:prompt_tokens_total[10s] offset 3s) > 0
        keep_firing_for: 2s
      - alert: Many
        expr: count(ALERTS{alertstate="firing"}) > 2
"""

EXPRESSIONS = (
    "vllm:num_requests_running",
    "sum by (instance) (rate(vllm:generation_tokens_total[10s]))",
    "histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[15s])))",
    "histogram_quantile(0.5, vllm:time_to_first_token_seconds_bucket)",
    "increase(vllm:request_success_total[12s])",
    "avg_over_time(vllm:kv_cache_usage_perc[7s])",
    "resets(vllm:prompt_tokens_total[20s])",
    "changes(vllm:num_requests_running[20s])",
    "max_over_time(sum(vllm:num_requests_running)[15s:1s])",
    "deriv(process_resident_memory_bytes[10s])",
    "absent(vllm:request_success_total)",
    "count by (__name__) ({__name__=~'vllm:.*_sum'})",
    "vllm:time_to_first_token_seconds_sum / vllm:time_to_first_token_seconds_count",
    "vllm:prompt_tokens_total / on (instance) group_left () vllm:generation_tokens_total",
    "sum(topk(3, sum by (finished_reason) (vllm:request_success_total + 0)))",
    "timestamp(vllm:num_requests_running) - time()",
    "predict_linear(vllm:kv_cache_usage_perc[10s], 60)",
    "quantile(0.5, {__name__=~'vllm:.*_bucket', le='+Inf'})",
)


NEVER = range(0)


def bodies(
    *, restarts_at: int, fails_at: set[int], hides_at: range = NEVER, stands_at: range = NEVER
) -> Iterator[bytes | None]:
    """What a vLLM says at each scrape: it works, stands still, restarts, hides a metric."""
    worked = (FIXTURES / "metrics_0.32_after_40_requests.txt").read_text()
    fresh = (FIXTURES / "metrics_0.32_idle_fresh.txt").read_text()
    for scrape in range(SCRAPES):
        text, since = (fresh, scrape - restarts_at) if scrape >= restarts_at else (worked, scrape)
        since = stands_at.start if scrape in stands_at else since
        lines = [_moved(line, since) for line in text.splitlines()]
        if scrape in hides_at:
            lines = [line for line in lines if not line.startswith("vllm:request_success_total")]
        yield None if scrape in fails_at else ("\n".join(lines) + "\n").encode()


def _moved(line: str, scrape: int) -> str:
    """A sample some scrapes later: counters have grown, gauges go up and down."""
    key, _, value = line.rpartition(" ")
    if line.startswith("#") or not key or "_created" in key or "_info" in key:
        return line
    if re.search(r"_(total|bucket|count|sum)(\{|$)", key):
        return f"{key} {float(value) * (1 + 0.15 * scrape) + (scrape if 'tokens' in key else 0)}"
    if key.startswith("vllm:num_requests_running"):
        return f"{key} {scrape % 9}"
    return f"{key} {float(value) + 0.01 * (scrape * 7 % 5)}"


def fed(targets: list[Target], prometheus: Prometheus) -> Store:
    """Our store after the scrapes that Prometheus took."""
    store = Store(retention_ms=1 << 50)
    ups = prometheus.points('up{job="vllm"}[1h]')
    for target in targets:
        labels = {"instance": target.address, "job": "vllm"}
        exposition = Exposition(store.source(target.address, labels))
        (taken,) = [ups[one] for one in ups if value_of(one, "instance") == target.address]
        assert len(taken) >= SCRAPES
        for (at_ms, up), body in zip(taken, target.said, strict=False):
            assert (body is not None) == (up == 1)
            if body is None:
                exposition.missed(at_ms)
            else:
                exposition.take(body, at_ms)
    return store


def evaluated(store: Store, prometheus: Prometheus, rules: Path) -> None:
    """Our rules, at the instants at which Prometheus evaluated its own."""
    evaluator = Evaluator(
        load_rule_files([rules], compat=2),
        store,
        setting=Setting(compat=2, interval=timedelta(seconds=1)),
    )
    (instants,) = prometheus.points("evaluated[1h]").values()
    assert len(instants) >= SCRAPES - 2
    for at_ms, _ in instants:
        assert not evaluator.evaluate(EPOCH + timedelta(milliseconds=at_ms)).failures


def points(store: Store, matrix: str, at_ms: int) -> Points:
    found = compile_expression(matrix, compat=2).at(store, at_ms)
    assert isinstance(found, list)
    return {one.labels: list(one.points) for one in found if isinstance(one, RangeSample)}


def within(found: Points, begin: int, end: int) -> Points:
    cut = {
        labels: [point for point in stored if begin <= point[0] <= end]
        for labels, stored in found.items()
    }
    return {labels: stored for labels, stored in cut.items() if stored}


def vector(store: Store, expr: str, at_ms: int) -> dict[object, float]:
    found = compile_expression(expr, compat=2).at(store, at_ms, default_step_ms=1000)
    assert isinstance(found, list)
    return {one.labels: one.value for one in found if isinstance(one, Sample)}


@pytest.mark.slow
@needs_prometheus
def test_a_real_prometheus_says_the_same(tmp_path: Path) -> None:
    targets = [
        Target(list(bodies(restarts_at=14, fails_at={9, 10}))),
        Target(
            list(
                bodies(restarts_at=99, fails_at={20}, hides_at=range(5, 8), stands_at=range(9, 19))
            )
        ),
    ]
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES)
    config = (
        "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
        "rule_files: [rules.yaml]\n"
        "scrape_configs:\n  - job_name: vllm\n    static_configs:\n"
        f"      - targets: [{', '.join(repr(target.address) for target in targets)}]\n"
    )
    try:
        with running_prometheus(tmp_path, config) as prometheus:
            wait_until(lambda: all(target.is_done for target in targets), SCRAPES + 20)
            _compare(prometheus, targets, rules)
    finally:
        for target in targets:
            target.close()


def _compare(prometheus: Prometheus, targets: list[Target], rules: Path) -> None:
    store = fed(targets, prometheus)
    evaluated(store, prometheus, rules)
    (instants,) = prometheus.points("evaluated[1h]").values()
    # Prometheus writes no alert in its first two rounds, before it has restored its state.
    begin, end = instants[2][0], instants[-1][0]

    for recorded in ("ALERTS", "ALERTS_FOR_STATE", "ttft:p90", "tokens:rate"):
        mine = within(points(store, f"{recorded}[1h]", end), begin, end)
        _check(recorded, mine, within(prometheus.points(f"{recorded}[1h]"), begin, end))
    fired = {value_of(one, "alertname") for one in points(store, "ALERTS[1h]", end)}
    assert fired == {"Busy", "Still", "Slow", "Gone", "Restarted", "Many"}
    for expr in EXPRESSIONS:
        answered = 0
        for at_ms in range(begin, end - 2_000, 1_300):
            theirs_now = prometheus.vector(expr, at_ms)
            answered += len(theirs_now)
            mine_now = vector(store, expr, at_ms)
            assert mine_now.keys() == theirs_now.keys(), f"{expr} at {at_ms}"
            assert mine_now == pytest.approx(theirs_now, rel=1e-9, abs=1e-9, nan_ok=True), expr
        assert answered, f"{expr} never had an answer"


def _check(what: str, mine: Points, theirs: Points) -> None:
    assert mine.keys() == theirs.keys(), what
    for labels, stored in theirs.items():
        assert [at for at, _ in mine[labels]] == [at for at, _ in stored], f"{what} {labels}"
        values = [value for _, value in stored]
        assert [value for _, value in mine[labels]] == pytest.approx(values, nan_ok=True), labels
