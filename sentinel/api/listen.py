"""Opens what the API listens on: the unix socket, and a TCP address if asked for.

The socket is 0660 from its first instant and is removed on the way in only if it *is* a
socket and nobody answers on it. The mode is set on the socket before it has a name:
a umask belongs to the whole process and would reach files of other threads.
"""

import errno
import grp
import ipaddress
import os
import socket
import stat
from pathlib import Path

from sentinel.core.model.errors import Permanent

Listener = socket.socket

MODE = 0o660
BACKLOG = 128
LONGEST = 107  # bytes in a unix socket's address


def open_unix(path: Path) -> socket.socket:
    """A listening socket at `path`. Raises `Permanent` if that cannot be."""
    if len(os.fsencode(path)) > LONGEST:
        raise Permanent(
            f"the path of the socket is too long: {path}",
            hint=f"A socket's path has at most {LONGEST} bytes; choose a shorter one.",
        )
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o755, exist_ok=True)
        os.fchmod(sock.fileno(), MODE)
        sock.bind(str(path))
        path.chmod(MODE)  # where a umask has taken the group's part away
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise Permanent(
            f"cannot open the socket {path}: {error.strerror or error}",
            hint="Its folder must exist and be writable for Sentinel; see --socket.",
        ) from error
    return sock


def give_to_group(path: Path, group: str) -> str:
    """Let `group` use the socket. Returns why not, if not: Sentinel runs without it."""
    try:
        os.chown(path, -1, grp.getgrnam(group).gr_gid)
    except KeyError:
        return f"api.socket_group: there is no group {group}"
    except OSError as error:
        return f"api.socket_group: cannot give {path} to {group}: {error.strerror or error}"
    return ""


def _clear(path: Path) -> None:
    """Remove what a daemon that died has left, and nothing else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise Permanent(
            f"cannot look at {path}: {error.strerror or error}", hint="See --socket."
        ) from error
    if not stat.S_ISSOCK(mode):
        raise Permanent(
            f"{path} exists and is not a socket",
            hint="Move it away, or choose another path with --socket.",
        )
    if _is_alive(path):
        raise Permanent(
            f"another Sentinel answers on this socket: {path}",
            hint="Stop it first (systemctl stop sentinel), or choose another path with --socket.",
        )
    path.unlink(missing_ok=True)


def _is_alive(path: Path) -> bool:
    """Whether somebody listens. Only a clear refusal says no; doubt says yes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError as error:
            return error.errno not in (errno.ECONNREFUSED, errno.ENOENT)
    return True


def open_tcp(address: str) -> list[socket.socket]:
    """Listening sockets for `host:port`, one for each address the host name has."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    opened: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(
            host or None, int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, where in dict.fromkeys((entry[0], entry[4]) for entry in found):
            opened.append(_listen(family, where))
    except (OSError, ValueError, OverflowError) as error:
        for sock in opened:
            sock.close()
        raise Permanent(
            f"cannot listen on {address}: {error}",
            hint="api.listen is host:port of this machine, and the port must be free.",
        ) from error
    return opened


def _listen(family: int, where: tuple[object, ...]) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def is_loopback(sockets: list[socket.socket]) -> bool:
    return all(ipaddress.ip_address(sock.getsockname()[0]).is_loopback for sock in sockets)
