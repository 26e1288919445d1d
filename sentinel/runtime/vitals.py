"""What the series say of each target: the work in hand, and whether anything moves.

Progress is a change in any sign of work of any engine; a lone long prefill moves nothing but
the KV cache gauge, so that counts too.
"""

from collections.abc import Mapping
from datetime import datetime

from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.policy.state import Load
from sentinel.core.promql import EvaluationError, Expression, Sample, compile_expression
from sentinel.runtime.target import Progress, Target

_GAUGES = {
    "running": compile_expression("sum by (target) (vllm:num_requests_running)"),
    "waiting": compile_expression("sum by (target) (vllm:num_requests_waiting)"),
    "kv": compile_expression("max by (target) (vllm:kv_cache_usage_perc)"),
    "awake": compile_expression('max by (target) (vllm:engine_sleep_state{sleep_state="awake"})'),
    "ttft": compile_expression(
        "histogram_quantile(0.99, sum by (target, le)"
        " (rate(vllm:time_to_first_token_seconds_bucket[5m])))"
    ),
}
_MODEL = compile_expression("group by (target, model_name) (vllm:num_requests_running)")
_SIGNS = tuple(
    compile_expression(f"sum by (target, engine) ({name})")
    for name in (
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "vllm:iteration_tokens_total_count",
        "vllm:request_success_total",
        "vllm:num_preemptions_total",
        "vllm:kv_cache_usage_perc",
    )
)


METRICS = frozenset[str]().union(
    _MODEL.metric_names, *(e.metric_names for e in (*_GAUGES.values(), *_SIGNS))
)
"""The metrics that states are judged by, kept whatever rules read."""


class Vitals:
    def __init__(self, store: Store) -> None:
        self._store = store

    def read(self, targets: Mapping[str, Target], now: datetime) -> None:
        """Bring what each answering target's series say up to date."""
        at = millis(now)
        gauges = {name: self._by_target(expression, at) for name, expression in _GAUGES.items()}
        models = {label(s, "target"): label(s, "model_name") for s in self._vector(_MODEL, at)}
        signs = self._signs(at)
        for name, target in targets.items():
            if target.scrape is None or not target.scrape.ok:
                continue  # the last good word stays, with its age
            awake = gauges["awake"].get(name)
            target.load = Load(
                running=gauges["running"].get(name),
                waiting=gauges["waiting"].get(name),
                kv_usage=gauges["kv"].get(name),
                asleep=awake is not None and awake == 0,
            )
            ttft = gauges["ttft"].get(name)
            target.ttft_p99 = ttft if ttft is not None and ttft == ttft else None  # noqa: PLR0124
            target.model = models.get(name) or target.model
            moved = signs.get(name, {})
            if moved != target.progress or target.progress_at is None:
                target.progress, target.progress_at = moved, now
            if not target.load.has_demand:
                target.progress_at = now  # nothing to do is no lack of progress

    def _signs(self, at: int) -> dict[str, Progress]:
        found: dict[str, Progress] = {}
        for position, expression in enumerate(_SIGNS):
            for sample in self._vector(expression, at):
                engines = found.setdefault(label(sample, "target"), {})
                row = engines.get(label(sample, "engine"), (None,) * len(_SIGNS))
                engines[label(sample, "engine")] = (
                    *row[:position],
                    sample.value,
                    *row[position + 1 :],
                )
        return found

    def _by_target(self, expression: Expression, at: int) -> dict[str, float]:
        return {label(s, "target"): s.value for s in self._vector(expression, at)}

    def _vector(self, expression: Expression, at: int) -> list[Sample]:
        try:
            value = expression.at(self._store, at)
        except EvaluationError:
            return []
        if not isinstance(value, list):
            return []
        return [sample for sample in value if isinstance(sample, Sample)]


def label(sample: Sample, name: str) -> str:
    return next((value for key, value in sample.labels if key == name), "")
