"""Whose process is it that holds memory of a GPU, and is there anybody left to free it?

The control groups of a process name its container, whatever runtime and driver made them.
A process that is a host's own and alive is nobody's orphan, however much it holds.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sentinel.core.gpu.reading import GpuReading

_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_ENGINE = "VLLM::"  # how vLLM names its engine and its workers
_INIT = 1  # inherits children without parents
_UNEXPLAINED = 1 << 30  # bytes in use without any process that are no rounding
_UNKNOWN_RESERVE = 1 << 30  # what a driver may keep that does not say what it keeps


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """What /proc says of one process."""

    state: str = ""  # R S D Z X …; empty if there is no such process
    name: str = ""
    parent: int | None = None
    containers: tuple[str, ...] = ()  # ids in its control groups, the outermost first

    @property
    def is_over(self) -> bool:
        return self.state in ("", "Z", "X", "x")


def containers_of(cgroup: str) -> tuple[str, ...]:
    """Container ids in the text of /proc/<pid>/cgroup, of version 1 or 2."""
    found = (one for line in cgroup.splitlines() for one in _CONTAINER.findall(line))
    return tuple(dict.fromkeys(found))


def orphaned_bytes(
    reading: GpuReading,
    owners: Mapping[int, Owner],
    ended: Collection[str] = (),
) -> int | None:
    """Bytes of the GPU that nobody is left to free; None if that cannot be said.

    `ended`: ids of containers that are known to be over.
    """
    processes = reading.processes
    if processes is None or reading.trouble:
        return None
    if processes:
        return sum(
            process.used or 0 for process in processes if _is_orphan(owners.get(process.pid), ended)
        )
    if reading.memory_used is None or reading.mig:
        return None
    reserve = _UNKNOWN_RESERVE if reading.memory_reserved is None else 0
    unexplained = reading.memory_used - reserve
    return unexplained if unexplained >= _UNEXPLAINED else 0


def _is_orphan(owner: Owner | None, ended: Collection[str]) -> bool:
    if owner is None:
        return False
    if owner.is_over:
        return True
    if owner.containers:
        return all(one in ended for one in owner.containers)
    return owner.parent == _INIT and owner.name.startswith(_ENGINE)
