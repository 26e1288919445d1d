"""What a look at the host becomes: rows of the series it is published as."""

from collections.abc import Iterator, Mapping

from sentinel.core.host.cgroup import CgroupReading
from sentinel.core.host.reading import Disks, Filesystem, HostReading

MEMORY_TOTAL = "sentinel_host_memory_total_bytes"
MEMORY_AVAILABLE = "sentinel_host_memory_available_bytes"
MEMORY_PRESSURE = "sentinel_host_memory_pressure_ratio"  # kind = some | full
KERNEL_LOG_UP = "sentinel_host_kernel_log_up"
FILESYSTEM_SIZE = "sentinel_filesystem_size_bytes"  # mountpoint
FILESYSTEM_FREE = "sentinel_filesystem_free_bytes"  # mountpoint
FILESYSTEM_FREE_RATIO = "sentinel_filesystem_free_ratio"  # mountpoint
TARGET_FILESYSTEM = "sentinel_target_filesystem_info"  # target, mountpoint
CONTAINER_MEMORY = "sentinel_container_memory_used_bytes"  # target
CONTAINER_MEMORY_LIMIT = "sentinel_container_memory_limit_bytes"  # target
CONTAINER_PRESSURE = "sentinel_container_memory_pressure_ratio"  # target
SHARED_MEMORY = "sentinel_target_shared_memory_bytes"  # target
TENSOR_PARALLEL = "sentinel_target_tensor_parallel_size"  # target

Row = tuple[str, Mapping[str, str], float | None]


def host_rows(reading: HostReading, own: Mapping[str, str]) -> Iterator[Row]:
    """`own` names the host. A value of None means that there is no such series."""
    yield MEMORY_TOTAL, own, reading.memory_total
    yield MEMORY_AVAILABLE, own, reading.memory_available
    for kind, share in reading.pressure.items():
        yield MEMORY_PRESSURE, {**own, "kind": kind}, share


def disk_rows(disks: Disks, own: Mapping[str, str]) -> Iterator[Row]:
    for each in disks.filesystems:
        yield from _filesystem_rows(each, {**own, "mountpoint": each.mountpoint})


def _filesystem_rows(filesystem: Filesystem, own: Mapping[str, str]) -> Iterator[Row]:
    yield FILESYSTEM_SIZE, own, filesystem.size
    yield FILESYSTEM_FREE, own, filesystem.free
    yield FILESYSTEM_FREE_RATIO, own, filesystem.free_ratio


def container_rows(reading: CgroupReading, own: Mapping[str, str]) -> Iterator[Row]:
    """`own` names the target."""
    yield CONTAINER_MEMORY, own, reading.used
    yield CONTAINER_MEMORY_LIMIT, own, reading.limit
    yield CONTAINER_PRESSURE, own, reading.pressure
