"""What really ran in one launch of a target, look by look, as the store remembers it.

Asked only when a limit is about to be changed: it reads a stretch of the past.
"""

import re
from datetime import datetime, timedelta

from sentinel.core.model.container import Container
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
    "running": "max by (target) (vllm:num_requests_running)",  # the limit is each engine's own
    "waiting": "sum by (target) (vllm:num_requests_waiting)",
    "preemptions": "sum by (target) (vllm:num_preemptions_total)",
    "kv": "max by (target) (vllm:kv_cache_usage_perc)",
}
_WARMED_UP = re.compile(r"warming up sampler with (\d+) dummy")
_MAMBA = re.compile(r"available Mamba cache (?:blocks|slots)\D*(\d+)")
_COMPILED = {name: compile_expression(text) for name, text in _EXPRESSIONS.items()}


def load_of(
    store: Store,
    name: str,
    container: Container,
    every: timedelta,
    now: datetime,
    *,
    line: str = "",
) -> Load:
    """`line`: the one of its log that named what it died of, which may tell the numbers."""
    began = container.started_at or now
    since = max(began, now - _REACH)
    step = max(every, (now - since) / _MOST_LOOKS)
    rows = {what: _points(store, name, what, since, now, step) for what in _COMPILED}
    looks = [
        Look(
            running=int(running),
            waiting=int(rows["waiting"].get(at, 0)),
            preemptions=rows["preemptions"].get(at, 0.0),
            kv_cache_usage=rows["kv"].get(at, 0.0),
        )
        for at, running in sorted(rows["running"].items())
    ]
    return Load(
        limit=_number(_WARMED_UP, line) or _default_of(container),
        looks=looks,
        mamba_blocks=_number(_MAMBA, line),
    )


def died_of(target: Target) -> str:
    """The line of its log that named what it last died of; empty where nobody has read it."""
    ending = (target.launch.ending if target.launch else None) or target.previous_ending
    return ending.log_line if ending is not None else ""


def _number(pattern: re.Pattern[str], line: str) -> int | None:
    found = pattern.search(line)
    return int(found[1]) if found else None


def _points(
    store: Store, name: str, what: str, since: datetime, now: datetime, step: timedelta
) -> dict[int, float]:
    step_ms = max(round(step.total_seconds() * 1000), 1)
    try:
        found = range_query(
            _COMPILED[what],
            store,
            millis(since),
            millis(now),
            step_ms,
            lookback_ms=round(step_ms * _LOOKED_BACK),
        )
    except EvaluationError:
        return {}
    mine = (row for row in found if dict(row.labels).get("target") == name)
    return dict(next((row.points for row in mine), ()))


def _default_of(container: Container) -> int | None:
    """The limit that vLLM takes by itself, as far as its version and hardware are known."""
    version = container.image.rpartition(":")[2]
    hardware = None if container.devices else Hardware(gpu_memory=None)
    return default_max_num_seqs(version, hardware)
