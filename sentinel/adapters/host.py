"""Memory and filesystems of this host. Raises nothing: what cannot be read is None.

Filesystems are asked by `statfs` alone, and nothing is walked; yet a network filesystem whose
server is gone may never answer, so that each call belongs into a lane.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sentinel.core.host.cgroup import CgroupReading, pressure_of
from sentinel.core.host.mounts import Mount, mount_of, mounts_of, name_of
from sentinel.core.host.reading import Disks, Filesystem, HostReading, memory_of

MemoryOf = Callable[[str, int | None], CgroupReading | None]  # of a container and its first process


class Host:
    def __init__(self, memory_of: MemoryOf, proc: Path = Path("/proc")) -> None:
        self._memory_of, self._proc = memory_of, proc

    def read(self, mains: Mapping[str, int | None]) -> HostReading:
        """`mains`: the first process of each container, by container id."""
        total, available = memory_of(self._text("meminfo"))
        memory = {one: self._memory_of(one, pid) for one, pid in mains.items()}
        return HostReading(
            memory_total=total,
            memory_available=available,
            pressure=pressure_of(self._text("pressure/memory")),
            cgroups={one: found for one, found in memory.items() if found is not None},
        )

    def disks(self, paths: Mapping[str, Sequence[str]]) -> Disks:
        """`paths`: whose they are."""
        mounts = mounts_of(self._text("self/mountinfo"))
        found: dict[str, Filesystem] = {}  # by device
        of: dict[str, tuple[str, ...]] = {}
        for whose, theirs in paths.items():
            placed = (self._placed(path, mounts, found) for path in theirs)
            of[whose] = tuple(dict.fromkeys(point for point in placed if point is not None))
        return Disks(filesystems=tuple(found.values()), of=of)

    def _placed(
        self, path: str, mounts: Sequence[Mount], found: dict[str, Filesystem]
    ) -> str | None:
        """The mount point that stands for the filesystem of `path`, once it is in `found`."""
        real = os.path.realpath(path)
        mount = mount_of(real, mounts)
        if mount is None or not mount.is_disk:
            return None
        if mount.device not in found:
            filesystem = _ask(real, mount.point, name_of(mount, mounts))
            if filesystem is None:
                return None
            found[mount.device] = filesystem
        return found[mount.device].mountpoint

    def _text(self, name: str) -> str:
        try:
            return (self._proc / name).read_text(errors="replace")
        except OSError:
            return ""


def _ask(path: str, point: str, name: str) -> Filesystem | None:
    """A folder may be closed to us; where it is mounted tells the same. One that is not here at
    all belongs to a host that we do not see.
    """
    try:
        said = os.statvfs(path)
    except PermissionError:
        try:
            said = os.statvfs(point)
        except OSError:
            return None
    except OSError:
        return None
    return Filesystem(
        mountpoint=name,
        size=(said.f_blocks - said.f_bfree + said.f_bavail) * said.f_frsize,
        free=said.f_bavail * said.f_frsize,
        files=said.f_files or None,
        files_free=said.f_favail if said.f_files else None,
    )
