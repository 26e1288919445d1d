"""Processes of this host, as /proc and the control groups tell of them.

Whatever cannot be read is as if it were not there: a process may end between two reads.
"""

from pathlib import Path

from sentinel.core.gpu.owner import Owner, containers_of

_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # fixed in the kernel


class Proc:
    def __init__(
        self, proc: Path = Path("/proc"), devices: Path = Path("/sys/fs/cgroup/devices")
    ) -> None:
        self._proc, self._devices = proc, devices

    @property
    def sees_host(self) -> bool:
        try:
            namespace = str((self._proc / "self/ns/pid").readlink())
        except OSError:
            return False
        is_shown = self._read(1, "stat") is not None  # with `hidepid` others' are not
        return namespace == _FIRST_PID_NAMESPACE and is_shown

    def owner(self, pid: int) -> Owner:
        stat = self._read(pid, "stat")
        if stat is None:
            return Owner()
        name, _, rest = stat.partition("(")[2].rpartition(")")
        words = rest.split()
        parent = words[1] if len(words) > 1 and words[1].isdecimal() else None
        return Owner(
            state=words[0] if words else "",
            name=name,
            parent=None if parent is None else int(parent),
            containers=containers_of(self._read(pid, "cgroup") or ""),
        )

    def device_rules(self, pid: int) -> str | None:
        for line in (self._read(pid, "cgroup") or "").splitlines():
            _, controllers, path = [*line.split(":", 2), "", ""][:3]
            if "devices" in controllers.split(","):
                try:
                    return (self._devices / path.lstrip("/") / "devices.list").read_text()
                except (OSError, ValueError):
                    return None
        return None

    def _read(self, pid: int, name: str) -> str | None:
        try:
            return (self._proc / str(pid) / name).read_text(errors="replace")
        except OSError:
            return None
