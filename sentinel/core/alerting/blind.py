"""Which rules see nothing of a target, because its metrics are not what they read.

vLLM calls some metrics otherwise in older releases; a rule that reads the present name of a
metric is not blind for a target that tells it under an old one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sentinel.core.alerting.rule import AlertRule, RecordingRule, RuleGroup

_OF_VLLM = "vllm:"
_PRESENT = {
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "vllm:time_per_output_token_seconds": "vllm:inter_token_latency_seconds",
    "vllm:time_in_queue_requests": "vllm:request_queue_time_seconds",
}
_PART = re.compile(r"_(bucket|sum|count)$")
_MODEL = 'model_name="'


@dataclass(frozen=True, slots=True)
class Told:
    """What a target tells of vLLM: metrics, by their present names, and of which models."""

    metrics: frozenset[str]
    models: frozenset[str]


def readers_of(groups: Iterable[RuleGroup]) -> dict[str, tuple[str, ...]]:
    """The alerts that read each metric of vLLM, also through what is recorded, by its name."""
    rules = [rule for group in groups for rule in group.rules]
    recorded: dict[str, list[RecordingRule]] = {}
    for rule in rules:
        if isinstance(rule, RecordingRule):
            recorded.setdefault(rule.name, []).append(rule)
    readers: dict[str, set[str]] = {}
    for rule in rules:
        if isinstance(rule, AlertRule):
            for name in _read(rule.expr.metric_names, recorded):
                readers.setdefault(_metric(name), set()).add(rule.name)
    return {metric: tuple(sorted(names)) for metric, names in sorted(readers.items())}


def told_in(exposition: str) -> Told:
    names, models = set[str](), set[str]()
    for line in exposition.splitlines():
        if line.startswith(_OF_VLLM):
            names.add(line.partition(" ")[0].partition("{")[0])
            models.add(line.partition(_MODEL)[2].partition('"')[0])
    return Told(frozenset(map(_metric, names)), frozenset(models - {""}))


def missing_from(told: Told, readers: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Metrics that are read and not told, and by whom. Who tells nothing at all is another case."""
    if not told.metrics:
        return {}
    return {metric: names for metric, names in readers.items() if metric not in told.metrics}


def is_another(expected: str, told: Told) -> bool:
    """Whether what answers is surely not the model `expected`: a path may be cut to its end."""
    found = {_end(model) for model in told.models}
    return bool(found) and _end(expected) not in found


def _read(names: Iterable[str], recorded: Mapping[str, list[RecordingRule]]) -> Iterator[str]:
    left, seen = [*names], set[str]()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name.startswith(_OF_VLLM):
            yield name
        for rule in recorded.get(name, ()):
            left += rule.expr.metric_names


def _metric(name: str) -> str:
    whole = _PART.sub("", name)
    return _PRESENT.get(whole, whole)


def _end(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2].lower()
