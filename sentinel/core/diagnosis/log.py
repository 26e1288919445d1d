"""What the end of a vLLM log says about why the server went away.

Order decides: what stands *first* is the cause, the rest is consequence. `EngineDeadError`
and its traceback also appear on a clean stop, so they prove nothing and are not in the table.
Lines that carry what users sent (requests, access log) are never looked at.
"""

import re
from dataclasses import dataclass

_USERS_TEXT = re.compile(
    r"Received request |\"(?:GET|POST|PUT|DELETE|HEAD|OPTIONS) [^\"]*HTTP/"
    r"|Dumping (?:input|scheduler)"
)

_STOPS = (
    "[shutdown] API server: shutdown triggered",
    "trigger received signal=SIG",
)
# Not "Shutting down FastAPI HTTP server": up to 0.22 that is said after a crash as well.

_DEATHS = (
    "exited unexpectedly",
    "died unexpectedly",
    "EngineCore encountered a fatal error",
    "EngineCore hit an exception",
    "is already dead, terminating",
    "has failed, terminating",
    "Got fatal signal from worker processes",
)

_NEVER_STARTED = ("failed to start", "Engine core initialization failed")

# (cause, pattern); of the lines that match anything here the first one names the cause.
_ROOTS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (cause, re.compile(pattern))
    for cause, pattern in (
        ("cuda_oom_sampler_warmup", r"out of memory occurred when warming up sampler"),
        ("gpu_memory_taken", r"Free memory on device .* on startup is less than desired"),
        (
            "kv_cache_too_small",
            r"To serve at least one request|maximum number of tokens that can be stored in KV",
        ),
        ("no_kv_cache_memory", r"No available memory for the cache blocks"),
        ("mamba_cache_too_small", r"exceeds available Mamba cache"),
        ("port_in_use", r"\[Errno 98\]"),
        ("hub_unreachable", r"LocalEntryNotFoundError|Cannot (?:connect to|reach) .*huggingface"),
        ("model_not_found", r"HFValidationError|is not a local folder and is not a valid model"),
        ("disk_full", r"No space left on device"),
        ("startup_timeout", r"Timed out waiting for engine core processes"),
        (
            "bad_arguments",
            r"unrecognized arguments|error: argument |validation errors? for \w*Config",
        ),
        ("worker_hung", r"RPC call to \S+ timed out|Engine iteration timed out"),
        ("nccl_timeout", r"Watchdog caught collective operation timeout"),
        ("cuda_illegal_access", r"CUDA error: an illegal memory access"),
        ("gpu_ecc", r"uncorrectable ECC"),
        ("cuda_launch_failure", r"unspecified launch failure"),
        ("cuda_oom", r"OutOfMemoryError|CUDA out of memory\. Tried to allocate"),
        ("worker_died", r"Worker proc .* died unexpectedly"),
        ("engine_died", r"engine core exited unexpectedly|Engine core proc\w* .*died unexpectedly"),
    )
)

_READY = "Application startup complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReading:
    """`line` counts from 1 within the text that was read; 0 where nothing was found."""

    cause: str = "unknown"
    line: int = 0
    text: str = ""
    was_ready: bool = False
    died: bool = False  # says that it died, before anything says that it was told to stop
    told_to_stop: bool = False  # says that it was told to stop, before anything says it died


def read_log(text: str) -> LogReading:
    """Read the log of *one* launch, oldest line first."""
    cause, at, quote = "unknown", 0, ""
    died_at = failed_at = stopped_at = 0
    was_ready = _READY in text  # anywhere: standard output is often later than standard error
    for number, line in enumerate(text.splitlines(), start=1):
        if _USERS_TEXT.search(line):
            continue
        if not stopped_at and any(mark in line for mark in _STOPS):
            stopped_at = number
        if not died_at and any(mark in line for mark in _DEATHS):
            died_at = number
        if not failed_at and any(mark in line for mark in _NEVER_STARTED):
            failed_at = number
        if not at and (found := _root_of(line, was_ready=was_ready)):
            cause, at, quote = found, number, line.strip()
    first = min(filter(None, (at, died_at, failed_at)), default=0)
    died = bool(first) and not 0 < stopped_at < first
    if died_at and cause == "unknown":
        cause = "engine_died"
    return LogReading(
        cause=cause if died else "unknown",
        line=at if died else 0,
        text=quote if died else "",
        was_ready=was_ready,
        died=died,
        told_to_stop=bool(stopped_at) and not died,
    )


def _root_of(line: str, *, was_ready: bool) -> str | None:
    for cause, pattern in _ROOTS:
        if pattern.search(line):
            if cause == "cuda_oom":
                return "cuda_oom_runtime" if was_ready else "cuda_oom_startup"
            return cause
    return None
