"""What the rule engine costs: sixteen typical rules over 8, 64 and 512 targets, and memory.

Processor time of one process; each size is stated beside a fixed piece of Python run in the
same minute, so that the ratio holds where the machine's speed does not.
"""

import statistics
import time
import tracemalloc
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import Expression, compile_expression
from sentinel.runtime.ingest import Exposition
from tests.bench.inside import BODIES

_INTERVAL = timedelta(seconds=5)
_WINDOW, _ROUNDS = 60, 8  # scrapes: five minutes, and what is timed
SIXTEEN = tuple(
    text.replace("BY", "by (target, model_name)")
    for text in """
histogram_quantile(0.99, sum by (target, le) (rate(vllm:time_to_first_token_seconds_bucket[5m]))) > 2
histogram_quantile(0.95, sum by (target, le) (rate(vllm:inter_token_latency_seconds_bucket[5m]))) > 0.2
sum BY (increase(vllm:time_to_first_token_seconds_count[5m])) >= 20
max BY (vllm:kv_cache_usage_perc) > 0.95
sum BY (vllm:num_requests_waiting) > 10
sum BY (vllm:num_requests_running) == 0 and sum BY (vllm:num_requests_waiting) > 0
sum BY (rate(vllm:num_preemptions_total[5m])) > 0.5
sum BY (rate(vllm:request_success_total{finished_reason="error"}[5m])) / sum BY (rate(vllm:request_success_total[5m])) > 0.05
sum BY (rate(vllm:request_queue_time_seconds_sum[5m])) / sum BY (rate(vllm:request_queue_time_seconds_count[5m])) > 30
sum BY (rate(vllm:generation_tokens_total[1m])) == 0
sum BY (rate(vllm:prompt_tokens_total[5m]))
changes(vllm:num_requests_running[5m]) > 50
avg_over_time(vllm:kv_cache_usage_perc[5m]) > 0.9
max_over_time(vllm:num_requests_waiting[5m]) > 100
deriv(vllm:kv_cache_usage_perc[5m]) > 0.1
absent(vllm:num_requests_running)
""".strip().splitlines()
)


@dataclass(frozen=True, slots=True)
class Cost:
    first_ms: float  # the first evaluation, when nothing is remembered
    warm_ms: float
    yardstick_ms: float  # sorting 200 000 numbers, in the same minute


def measure(sizes: tuple[int, ...] = (8, 64, 512)) -> dict[str, object]:
    rules = [compile_expression(text) for text in SIXTEEN]
    costs = {size: _with(size, rules) for size in sizes}
    return {
        "sixteen_rules": {
            str(size): {
                "first_ms": round(cost.first_ms, 1),
                "warm_ms": round(cost.warm_ms, 2),
                "of_a_yardstick": round(cost.warm_ms / cost.yardstick_ms, 3),
            }
            for size, cost in costs.items()
        },
        "bytes_a_sample": round(_bytes_a_sample(rules), 1),
    }


def _with(size: int, rules: list[Expression]) -> Cost:
    store, targets = _stage(size, rules)
    now, times = datetime(2030, 1, 1, tzinfo=UTC), []
    for turn in range(_WINDOW + _ROUNDS):
        now += _INTERVAL
        at = millis(now)
        for target in targets:
            target.take(BODIES[turn % 2], at)
        if turn >= _WINDOW:
            began = time.process_time_ns()
            for rule in rules:
                rule.at(store, at)
            times.append((time.process_time_ns() - began) / 1e6)
    return Cost(times[0], statistics.median(times[1:]), _yardstick())


def _stage(size: int, rules: list[Expression]) -> tuple[Store, list[Exposition]]:
    names = frozenset[str]().union(*(rule.metric_names for rule in rules))
    store = Store(keep=names.__contains__)
    labels = [
        {"target": f"t{n}", "host": "h", "job": "vllm", "instance": f"t{n}:1"} for n in range(size)
    ]
    return store, [Exposition(store.source(each["target"], each)) for each in labels]


def _bytes_a_sample(rules: list[Expression], size: int = 8, scrapes: int = 720) -> float:
    """An hour of 5 s scrapes, labels and keys of lines included."""
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    store, targets = _stage(size, rules)
    now = datetime(2030, 1, 1, tzinfo=UTC)
    for turn in range(scrapes):
        now += _INTERVAL
        for target in targets:
            target.take(BODIES[turn % 2], millis(now))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / sum(len(series.values) for series in store.every())


def _yardstick() -> float:
    numbers = [(n * 7919) % 200_003 for n in range(200_000)]
    began = time.process_time_ns()
    sorted(numbers)
    return (time.process_time_ns() - began) / 1e6
