"""What really ran in one launch of a target, look by look, as the store remembers it.

Asked only when a limit is about to be changed: it reads a stretch of the past.
"""

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from sentinel.core.gpu.reading import GpuReading
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import EvaluationError, compile_expression
from sentinel.core.promql.steps import range_query
from sentinel.core.recreate.defaults import Hardware, default_max_num_seqs
from sentinel.core.recreate.fit import Load, Look
from sentinel.runtime.target import Target

_REACH = timedelta(minutes=30)
_MOST_LOOKS = 720
_LOOKED_BACK = 1.5  # of the time between two looks: what was not seen is not invented
_EXPRESSIONS = {
    "running": "max(vllm:num_requests_running{%s})",  # the limit is each engine's own
    "waiting": "sum(vllm:num_requests_waiting{%s})",
    "preemptions": "sum(vllm:num_preemptions_total{%s})",
    "finished": "min(sum by (engine) (vllm:request_success_total{%s}))",
    "kv": "max(vllm:kv_cache_usage_perc{%s})",
}
_WARMED_UP = re.compile(r"warming up sampler with (\d+) dummy")
_MAMBA = re.compile(r"available Mamba cache (?:blocks|slots)\D*(\d+)")
_DOUBLES = re.compile(r"--performance[-_]mode[ =]throughput\b")


def load_of(
    store: Store,
    target: Target,
    every: timedelta,
    now: datetime,
    gpus: Sequence[GpuReading] = (),
) -> Load:
    """`gpus`: those that it uses, as far as that is known."""
    began = target.container.started_at or now
    since = max(began, now - _REACH)
    step = max(every, (now - since) / _MOST_LOOKS)
    its = f"target={json.dumps(target.name)}"
    rows = {
        what: _points(store, text % its, since, now, step) for what, text in _EXPRESSIONS.items()
    }
    looks = [
        Look(
            running=int(running),
            waiting=int(rows["waiting"].get(at, 0)),
            preemptions=rows["preemptions"].get(at, 0.0),
            finished=rows["finished"].get(at, 0.0),
            kv_cache_usage=rows["kv"].get(at, 0.0),
        )
        for at, running in sorted(rows["running"].items())
    ]
    line = _died_of(target)
    return Load(
        limit=_number(_WARMED_UP, line) or _said_or_default(target, gpus),
        looks=looks,
        mamba_blocks=_number(_MAMBA, line),
    )


def _died_of(target: Target) -> str:
    """The line of its log that named what it last died of; empty where nobody has read it."""
    ending = (target.launch.ending if target.launch else None) or target.previous_ending
    return ending.log_line if ending is not None else ""


def _number(pattern: re.Pattern[str], line: str) -> int | None:
    found = pattern.search(line)
    return int(found[1]) if found else None


def _points(
    store: Store, text: str, since: datetime, now: datetime, step: timedelta
) -> dict[int, float]:
    step_ms = max(round(step.total_seconds() * 1000), 1)
    try:
        found = range_query(
            compile_expression(text),
            store,
            millis(since),
            millis(now),
            step_ms,
            lookback_ms=round(step_ms * _LOOKED_BACK),
        )
    except EvaluationError:
        return {}
    return dict(found[0].points) if found else {}


def _said_or_default(target: Target, gpus: Sequence[GpuReading]) -> int | None:
    """What its log says that it was given, by whichever way; else what vLLM takes by itself."""
    container = target.container
    facts: dict[str, object] = {}
    for launch in (target.previous, target.launch):
        if launch is not None and launch.container_id == container.id:
            facts |= launch.facts
    said = facts.get("max_num_seqs")
    if isinstance(said, int):
        return said
    version = str(facts.get("version") or container.image.rpartition(":")[2])
    tokens = facts.get("max_num_batched_tokens")
    return default_max_num_seqs(
        version,
        _hardware(target, gpus),
        doubled=_DOUBLES.search(" ".join(container.argv)) is not None,
        batched_tokens=tokens if isinstance(tokens, int) else None,
    )


def _hardware(target: Target, gpus: Sequence[GpuReading]) -> Hardware | None:
    if not gpus:
        return None if target.container.devices else Hardware(gpu_memory=None)
    first = gpus[0]
    if first.memory_total is None or first.mig:
        return None  # an instance of it has less than the whole
    return Hardware(gpu_memory=first.memory_total, gpu_name=first.name or "")
