"""The reader of logs by itself: lines in a second of processor time, on three kinds of log.

`python -m tests.bench.logs` prints them. Typical is what a busy server writes: the access log
and a line about its load now and then; the worst is one traceback after the other.
"""

import statistics
import time
from pathlib import Path

from sentinel.core.diagnosis.reader import LogReader
from tests.bench.setup import REPOSITORY

_GPU = REPOSITORY / "tests/fixtures/vllm-0.22.1-h200"
_CPU = REPOSITORY / "tests/fixtures/vllm-0.32.0-cpu"
_PIECE, _LINES, _ROUNDS = 1 << 16, 30_000, 5


def measure() -> dict[str, dict[str, float]]:
    """By kind of log: lines a second, and how often as fast as only splitting it into lines."""
    return {name: _cost(data) for name, data in _logs().items()}


def _logs() -> dict[str, bytes]:
    healthy = (_GPU / "log_gpu_healthy.txt").read_bytes().splitlines(keepends=True)
    access = [line for line in healthy if b"HTTP/1.1" in line][:40]
    load = next(line for line in healthy if b"Avg prompt throughput" in line)
    return {
        "typical": b"".join([*access, load]),
        "start to load": b"".join(healthy),
        "tracebacks": _read(_CPU / "log_0.32_worker_hang_rpc_timeout_rc0.txt"),
    }


def _read(file: Path) -> bytes:
    return file.read_bytes().rstrip(b"\n") + b"\n"


def _cost(once: bytes) -> dict[str, float]:
    data = once * (_LINES // once.count(b"\n") + 1)
    lines, took, split = data.count(b"\n"), [], []
    for _ in range(_ROUNDS):
        began = time.process_time()
        reader = LogReader()
        for at in range(0, len(data), _PIECE):
            reader.feed(data[at : at + _PIECE])
        reader.close()
        took.append(time.process_time() - began)
        began = time.process_time()
        for line in data.split(b"\n"):
            line.decode("utf-8", "replace")
        split.append(time.process_time() - began)
    seconds = statistics.median(took)
    return {
        "lines_a_second": round(lines / seconds, -2),
        "of_splitting": round(seconds / statistics.median(split), 1),
    }


if __name__ == "__main__":
    for kind, cost in measure().items():
        print(f"{kind}: {cost['lines_a_second']:g} lines/s, {cost['of_splitting']} × splitting")
