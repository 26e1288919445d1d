"""What a running process costs, as the kernel counts it: memory in MB, time in % of a core."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one or several processes together."""

    resident_mb: float
    peak_mb: float
    processor_percent: float

    def as_json(self) -> dict[str, float]:
        return {key: round(value, 2) for key, value in asdict(self).items()}


def cost_over(seconds: float, *groups: Sequence[int]) -> list[Cost]:
    """Watch groups of processes at the same time; one cost for each group."""
    before, began = [_cpu(group) for group in groups], time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    return [
        Cost(
            resident_mb=sum(_memory(pid, "VmRSS") for pid in group),
            peak_mb=sum(_memory(pid, "VmHWM") for pid in group),
            processor_percent=100 * (_cpu(group) - used) / took,
        )
        for group, used in zip(groups, before, strict=True)
    ]


def _cpu(pids: Sequence[int]) -> float:
    """Seconds of processor time used so far, of all threads, in user and kernel mode."""
    total = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def _memory(pid: int, what: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(f"{what}:"))
    return int(found.split()[1]) / 1024
