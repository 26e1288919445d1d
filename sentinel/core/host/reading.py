"""What one look at the host says. A field is None where the kernel does not tell it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sentinel.core.host.cgroup import CgroupReading, numbers_of

_KIB = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    mountpoint: str
    size: int  # bytes
    free: int  # bytes that anybody may use
    files: int | None = None  # that it can hold; None if it has no such limit
    files_free: int | None = None

    @property
    def free_ratio(self) -> float:
        """Of what can be written, the scarcer of bytes and files."""
        by_bytes = self.free / self.size if self.size else 0.0
        if not self.files or self.files_free is None:
            return by_bytes
        return min(by_bytes, self.files_free / self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    memory_total: int | None = None
    memory_available: int | None = None
    pressure: Mapping[str, float] = field(default_factory=dict)  # by `some` and `full`
    cgroups: Mapping[str, CgroupReading] = field(default_factory=dict)  # by container id


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """The filesystems that anybody here writes to, and who."""

    filesystems: tuple[Filesystem, ...] = ()
    of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # mount points, by whose


def memory_of(meminfo: str) -> tuple[int | None, int | None]:
    """Total and available, in bytes, from /proc/meminfo."""
    lines = (line.removesuffix(" kB").replace(":", " ") for line in meminfo.splitlines())
    kib = numbers_of("\n".join(lines))
    total, available = kib.get("MemTotal"), kib.get("MemAvailable")
    return (
        None if total is None else total * _KIB,
        None if available is None else available * _KIB,
    )
