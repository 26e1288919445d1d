"""From the first log line to the last before ready, and the starts that fail on the way.

The text of each failure is a recording. Where it falls in the start-up, and the exit code, are
part of it: arguments fail before the banner, a taken port before loading, memory in the engine.
"""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from .arguments import Arguments
from .journal import Journal, recorded
from .settings import Settings

MODEL_LENGTH = 4096  # what the recorded model's config.json allows
IN_ENGINE = ("kv_too_small", "oom", "sampler_oom", "gpu_memory_taken", "no_kv_memory")
BEFORE_ENGINE = ("model_not_found", "hub")
FAILURES = (*IN_ENGINE, *BEFORE_ENGINE, "port", "bad_arg")


class StartFailed(Exception):  # noqa: N818 - it is an ending, and the text is already printed
    """The start failed; its text is in the log."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


def planned_failure(settings: Settings, arguments: Arguments) -> str:
    """The failure that this start is to have, or nothing."""
    name, _, limit = settings.fail_start.partition(":")
    if not name:
        return ""
    if name not in FAILURES:
        raise SystemExit(f"SIM_FAIL_START={name!r}: there are {', '.join(FAILURES)}")
    if limit and (arguments.max_num_seqs or 256) <= int(limit):
        return ""
    if settings.fail_times and _count_start() > settings.fail_times:
        return ""
    return name


def _count_start() -> int:
    """How many starts this container has seen; its own file system remembers."""
    file = Path(os.environ.get("TMPDIR", "/tmp")) / "simulated-vllm-starts"
    count = int(file.read_text()) + 1 if file.exists() else 1
    file.parent.mkdir(exist_ok=True)
    file.write_text(str(count))
    return count


def check_values(arguments: Arguments, journal: Journal) -> None:
    """What vLLM refuses once it has read the model's configuration: exit code 1."""
    seqs, batched = arguments.max_num_seqs, arguments.max_num_batched_tokens
    if arguments.max_model_len and arguments.max_model_len > MODEL_LENGTH:
        journal.play("start_too_long")
    elif seqs is not None and seqs < 1:
        journal.play("start_no_sequences")
    elif seqs and batched and batched < seqs:
        journal.play("start_too_few_tokens")
    else:
        return
    raise StartFailed(1)


def bind(arguments: Arguments, journal: Journal, *, taken: bool) -> socket.socket:
    """Bound before loading, listening only when ready: until then clients are refused."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with contextlib.suppress(OSError):
        if not taken:
            listener.bind((arguments.host or "0.0.0.0", arguments.port))
            return listener
    journal.play("start_port")
    raise StartFailed(1)
    return listener


def load(journal: Journal, settings: Settings, failure: str, fork: Callable[[], int]) -> None:
    """Write the start-up log over `start_seconds`; `fork` makes the engine where vLLM does."""
    lines = recorded("start")
    first = next(at for at, line in enumerate(lines) if line.who == "EngineCore")
    fails_at = next(at for at, line in enumerate(lines) if "KV cache on node" in line.text)
    scale = settings.start_seconds / lines[-1].after
    begun = time.monotonic()
    for at, line in enumerate(lines):
        _wait_until(begun + line.after * scale)
        if at == first - 1 and failure in BEFORE_ENGINE:
            journal.play(f"start_{failure}")
            raise StartFailed(1)
        if at == first:
            signal.signal(signal.SIGTERM, _Reluctant())
            journal.name_process("EngineCore", fork())
        if at == fails_at and failure in IN_ENGINE:
            journal.play(f"start_{failure}")
            raise StartFailed(1)
        journal.write(line)


def _wait_until(when: float) -> None:
    while (left := when - time.monotonic()) > 0:
        time.sleep(left)


class _Reluctant:
    """While the engine loads the first SIGTERM has no effect; the second ends it with 130."""

    def __init__(self) -> None:
        self._ignored = False

    def __call__(self, _number: int, _frame: FrameType | None) -> None:
        if self._ignored:
            os._exit(130)
        self._ignored = True
