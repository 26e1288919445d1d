"""Memory of containers, as their control groups tell it, of version 1 or 2.

Whatever cannot be read is as if it were not there: a container may end between two reads.
"""

from pathlib import Path

from sentinel.core.host.cgroup import CgroupReading, places, reading_of

_FILES = {
    1: (
        "memory.oom_control",
        "memory.failcnt",
        "memory.usage_in_bytes",
        "memory.limit_in_bytes",
        "cgroup.procs",
    ),
    2: ("memory.events", "memory.current", "memory.max", "memory.pressure", "cgroup.procs"),
}


class Cgroups:
    def __init__(self, proc: Path = Path("/proc"), root: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc, self._root = proc, root
        self._trees = {1: (root / "memory",), 2: (root, root / "unified")}

    def memory(self, container_id: str, pid: int | None) -> CgroupReading | None:
        """`pid`: its first process. None if its control group is not seen."""
        membership = _read(self._proc / str(pid) / "cgroup") if pid else None
        for version, path in places(container_id, membership or ""):
            if ".." in path:  # outside of what a daemon in a container sees
                continue
            for tree in self._trees[version]:
                folder = tree / path.lstrip("/")
                files = {name: _read(folder / name) for name in _FILES[version]}
                found = {name: text for name, text in files.items() if text is not None}
                if any(name.startswith("memory.") for name in found):
                    return reading_of(found)
        return None


def _read(file: Path) -> str | None:
    try:
        return file.read_text(errors="replace")
    except (OSError, ValueError):
        return None
