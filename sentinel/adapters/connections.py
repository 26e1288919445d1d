"""The TCP sockets in a container's network, as /proc tells of one of its processes.

A process id may have gone to somebody else since it was read: its control group must still
name the container. What cannot be read is None, and never "nothing is there". The kernel walks
the sockets of all networks for each table, which takes it milliseconds: most containers use no
IPv6, and say so at once.
"""

from contextlib import suppress
from pathlib import Path

from sentinel.core.gpu.owner import containers_of
from sentinel.core.sockets import Sockets, read_sockets


class Connections:
    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def look(self, pid: int, container_id: str, port: int) -> Sockets | None:
        """The sockets on `port`, in the network that process `pid` of the container is in."""
        process = self._proc / str(pid)
        try:
            if container_id not in containers_of((process / "cgroup").read_text()):
                return None
            tables = [(process / "net/tcp").read_text()]
        except OSError:
            return None
        with suppress(OSError):  # a kernel without IPv6
            if not _uses_none((process / "net/sockstat6").read_text()):
                tables.append((process / "net/tcp6").read_text())
        return read_sockets(tables, port)


def _uses_none(sockstat6: str) -> bool:
    return "TCP6: inuse 0" in sockstat6.splitlines()
