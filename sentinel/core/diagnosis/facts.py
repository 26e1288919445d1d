"""What a vLLM log says in passing: its version, its limits, what loading cost, when it served.

One table, an event a line; named groups are numbers. Texts of a command line are looked
through for known numbers only, never kept: keys and tokens stand beside them.
"""

import re
from dataclasses import dataclass

Facts = dict[str, float | str]


@dataclass(frozen=True, slots=True)
class Fact:
    event: str
    sign: str  # a plain text that every such line holds
    match: re.Pattern[str]


def _fact(event: str, sign: str, match: str = "") -> Fact:
    return Fact(event, sign, re.compile(match or re.escape(sign)))


FACTS: tuple[Fact, ...] = (
    _fact("launch", "server version", r"vLLM (?:API )?server version v?(?P<version>[\w.+]+)"),
    _fact("launch", "█", r"█.*\bversion (?P<version>\d[\w.+]*)"),
    _fact("launch", "usage: ", r"^usage: (?:vllm|\S+\.py)\b"),
    _fact("arguments", "non-default args"),
    _fact("arguments", "args: Namespace("),
    _fact(
        "engine",
        "LLM engine (v",
        r"Initializing an? (?:V1 )?LLM engine \(v(?P<version>[^)]+)\)"
        r"(?:.*?max_seq_len=(?P<max_model_len>\d+))?",
    ),
    _fact("loading", "Starting to load model"),
    _fact("max_model_len", "Using max model len", r"Using max model len (?P<max_model_len>\d+)"),
    _fact(
        "loaded",
        "odel ",
        r"(?:Model loading|Loading model weights) took (?P<weights_gib>[\d.]+) Gi?B"
        r"(?: memory)?(?: and (?P<load_seconds>[\d.]+) seconds)?",
    ),
    _fact("kv_memory", "KV cache memory:", r"KV cache memory: (?P<kv_gib>-?[\d.]+) GiB"),
    _fact(
        "kv_blocks",
        "KV cache size",
        r"KV cache size: (?P<kv_tokens>[\d,]+) tokens"
        r"(?:, Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request: "
        r"(?P<concurrency>[\d.]+)x)?",
    ),
    _fact("kv_blocks", " blocks: ", r"# (?:GPU|cuda|rocm|CUDA) blocks: (?P<kv_blocks>\d+)"),
    _fact(
        "concurrency",
        "Maximum concurrency",
        r"Maximum concurrency for (?P<max_model_len>[\d,]+) tokens per request: "
        r"(?P<concurrency>[\d.]+)x",
    ),
    _fact("warmed_up", "init engine (", r"init engine \(.*took (?P<init_seconds>[\d.]+)"),
    _fact("ready", "Application startup complete"),
    _fact(
        "load",
        "Avg prompt throughput",
        r"Avg prompt throughput: (?P<prompt_rate>[\d.]+) tokens/s, "
        r"Avg generation throughput: (?P<generation_rate>[\d.]+) tokens/s, "
        r"Running: (?P<running>\d+) reqs, (?:Swapped: \d+ reqs, )?"
        r"(?:Waiting|Pending): (?P<waiting>\d+) reqs"
        r"(?:.*?(?:[GC]PU )?KV cache usage: (?P<kv_percent>[\d.]+)%)?"
        r"(?:.*?Preemptions: (?P<preempted>\d+))?",
    ),
    _fact("served", "ngineCore encountered a fatal error"),  # one that never ran "failed to start"
    _fact("served", "utput_handler failed"),
    _fact("served", "ngine background task failed"),
    _fact("preempted", "is preempted by", r"preempted.*?(?:_preemption=(?P<preemptions>\d+)|$)"),
    _fact("slow", "No available shared memory broadcast block"),
    _fact("start_failed", "failed to start"),
    _fact("start_failed", "pplication startup failed"),
    _fact("start_failed", "ngine core initialization failed"),
    _fact("dead_error", "EngineDeadError"),
)

_ARGUMENTS = re.compile(
    r"\b(?P<name>max_num_seqs|max_model_len|max_num_batched_tokens|tensor_parallel_size"
    r"|gpu_memory_utilization|shutdown_timeout|port)'?(?:: |=)(?P<value>\d[\d.]*)\b"
)


def fact_in(text: str) -> tuple[str, Facts] | None:
    """The event that a line tells of, and its numbers."""
    for fact in FACTS:
        if fact.sign in text and (found := fact.match.search(text)):
            facts = numbers_of(found)
            if fact.event == "arguments":
                facts = {a["name"]: _number(a["value"]) for a in _ARGUMENTS.finditer(text)}
            return fact.event, facts
    return None


def numbers_of(found: re.Match[str]) -> Facts:
    groups = found.groupdict()
    return {name: _number(text) for name, text in groups.items() if text is not None}


def _number(text: str) -> float | str:
    plain = text.replace(",", "")
    if not re.fullmatch(r"-?\d{1,18}(?:\.\d{1,18})?", plain):
        return text
    value = float(plain)
    return int(value) if value.is_integer() and "." not in plain else value
