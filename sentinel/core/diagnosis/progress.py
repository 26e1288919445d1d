"""What two looks at vLLM's metrics say about whether it works: of every version since 0.5.

Gauges freeze when an engine hangs, so only what moves between the two proves anything. Any
one sign of work is enough: a single long prefill moves nothing but the KV cache.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_LINE = re.compile(
    r'(?P<name>[A-Za-z_:][\w:]*)(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\})?'
    r"[ \t]+(?P<value>\S+)"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_GAUGES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:num_requests_swapped": "waiting",
}
_KV = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
_SIGNS_OF_WORK = frozenset(
    {
        "vllm:generation_tokens_total",
        "vllm:prompt_tokens_total",
        "vllm:tokens_total",
        "vllm:iteration_tokens_total_count",
        "vllm:time_to_first_token_seconds_count",
        "vllm:e2e_request_latency_seconds_count",
        "vllm:request_success_total",
        "vllm:num_preemptions_total",
    }
)
_FULL = 0.9  # of the KV cache; small pools count in steps of several per cent
_LONG, _MODERATE, _SHORT = 120.0, 30.0, 5.0  # seconds


@dataclass(slots=True)
class Engine:
    """One engine of a server, at one moment."""

    running: float = 0.0
    waiting: float = 0.0
    kv: float | None = None
    asleep: bool = False
    work: dict[str, float] = field(default_factory=dict)

    @property
    def demand(self) -> float:
        return self.running + self.waiting

    def count(self, name: str) -> float:
        return self.work.get(f"vllm:{name}_total", 0.0)


@dataclass(frozen=True, slots=True)
class Look:
    engines: Mapping[str, Engine]
    answered: float  # completions answered 2xx, by the server's own count


@dataclass(frozen=True, slots=True)
class Finding:
    cause: str
    sure: float
    text: str


def look_at(text: str) -> Look:
    engines: dict[str, Engine] = {}
    answered = 0.0
    for name, labels, value in _samples(text):
        if name == "http_requests_total":
            answers = labels.get("status", "").startswith("2")
            completes = labels.get("handler", "").rpartition("/")[2] in ("completions", "responses")
            answered += value if answers and completes else 0.0
            continue
        engine = engines.setdefault(labels.get("engine", ""), Engine())
        if gauge := _GAUGES.get(name):
            setattr(engine, gauge, getattr(engine, gauge) + value)
        elif name in _KV:
            engine.kv = max(value, engine.kv or 0.0)
        elif name == "vllm:engine_sleep_state":
            engine.asleep |= labels.get("sleep_state") == "awake" and value == 0
        elif name in _SIGNS_OF_WORK:
            engine.work[name] = engine.work.get(name, 0.0) + value
    return Look({k: e for k, e in engines.items() if e != Engine()} or engines, answered)


def _samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    for line in text.splitlines():
        if not line.startswith(("vllm:", "http_requests_total")):
            continue
        found = _LINE.match(line)
        name = found["name"] if found else ""
        if found is None or not _is_wanted(name):
            continue
        try:
            value = float(found["value"])
        except ValueError:
            continue
        if math.isfinite(value):
            yield name, dict(_LABEL.findall(found["labels"] or "")), value


def _is_wanted(name: str) -> bool:
    known = (*_KV, "vllm:engine_sleep_state", "http_requests_total")
    return name in _SIGNS_OF_WORK or name in _GAUGES or name in known


def compare(before: Look, after: Look, apart: float | None) -> list[Finding]:
    """What is found, the worst first. Nothing if the two cannot be compared."""
    findings = [
        found
        for name, engine in after.engines.items()
        if name in before.engines
        and (found := _of_engine(name, before.engines[name], engine, apart)) is not None
    ]
    if findings and all(f.cause == "healthy" for f in findings):
        findings = _answered_by_nobody(before, after, apart) or findings
    order = ("engine_hung", "preemption_storm", "saturated", "healthy")
    return sorted(findings, key=lambda found: (order.index(found.cause), -found.sure))


def was_restarted(before: Look, after: Look) -> bool:
    """A counter went back."""
    return any(
        engine.work.get(name, 0.0) < count
        for key, earlier in before.engines.items()
        if (engine := after.engines.get(key)) is not None
        for name, count in earlier.work.items()
    )


def _of_engine(name: str, before: Engine, after: Engine, apart: float | None) -> Finding | None:
    who = f"engine {name}: " if name else ""
    if after.asleep:
        return Finding("healthy", 0.8, f"{who}is put to sleep: no tokens flow by design")
    moved = before.work != after.work or before.kv != after.kv
    load = f"{after.running:g} running, {after.waiting:g} waiting{_kv(after)}"
    if not moved:
        if before.demand and after.demand:
            says = f"{who}{load}, and nothing moved{_within(apart)}"
            return Finding("engine_hung", _sure_of_hang(apart), says)
        says = f"{who}idle{_within(apart)}: no request, no token; a hang would look the same"
        return Finding("healthy", 0.6, says)
    preempted = after.count("num_preemptions") - before.count("num_preemptions")
    finished = after.count("request_success") - before.count("request_success")
    tokens = after.count("generation_tokens") - before.count("generation_tokens")
    did = f"{tokens:g} tokens, {finished:g} finished, {preempted:g} preempted{_within(apart)}"
    if _is_storm(before, after, preempted, finished):
        return Finding("preemption_storm", 0.85, f"{who}{load}; {did}")
    if after.waiting and before.waiting:
        sure = 0.9 if after.kv is not None and after.kv >= _FULL else 0.8
        return Finding("saturated", sure, f"{who}{load}; {did}")
    if after.kv is not None and after.kv >= _FULL and (before.kv or 0) >= _FULL:
        return Finding("saturated", 0.7, f"{who}{load}; {did}")
    return Finding("healthy", 0.9, f"{who}{load}; {did}")


def _is_storm(before: Engine, after: Engine, preempted: float, finished: float) -> bool:
    """Preemption far ahead of completion; a falling queue says that it gets through anyway."""
    if preempted < 5:
        return False
    trend = after.waiting - before.waiting
    enough = 3 if trend > 0 else 5 if trend == 0 else 10
    return preempted >= enough * max(finished, 1)


def _answered_by_nobody(before: Look, after: Look, apart: float | None) -> list[Finding]:
    """An engine that hung while idle: clients give up, which the server counts as answers."""
    answers = after.answered - before.answered
    both = before.engines.keys() & after.engines.keys()
    still = all(after.engines[name].work == before.engines[name].work for name in both)
    if answers <= 0 or not still or any(engine.asleep for engine in after.engines.values()):
        return []
    says = f"{answers:g} requests came to an end{_within(apart)} and the engine saw none of them"
    return [Finding("engine_hung", 0.7, says)]


def _sure_of_hang(apart: float | None) -> float:
    if apart is None:
        return 0.75
    if apart >= _LONG:
        return 0.95
    if apart >= _MODERATE:
        return 0.88
    return 0.8 if apart >= _SHORT else 0.5


def _kv(engine: Engine) -> str:
    return "" if engine.kv is None else f", KV cache {engine.kv:.1%} full"


def _within(apart: float | None) -> str:
    return "" if apart is None else f" in {apart:g} s"
