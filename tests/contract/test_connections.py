"""Sockets read through /proc, of written processes and of this one."""

import os
import socket
from pathlib import Path

import pytest

from sentinel.adapters.connections import Connections

BOX = "5" * 64
LISTENS = "head\n 0: 00000000:1F40 00000000:0000 0A 0 0\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "7/net").mkdir(parents=True)
    (tmp_path / "7/cgroup").write_text(f"0::/system.slice/docker-{BOX}.scope\n")
    (tmp_path / "7/net/tcp").write_text(LISTENS)
    return tmp_path


def test_a_kernel_without_ipv6_is_read_all_the_same(proc: Path) -> None:
    seen = Connections(proc).look(7, BOX, 8000)

    assert seen is not None
    assert seen.listening


@pytest.mark.parametrize(
    ("pid", "box"),
    [pytest.param(8, BOX, id="no such process"), pytest.param(7, "6" * 64, id="somebody else's")],
)
def test_what_cannot_be_seen_is_none(proc: Path, pid: int, box: str) -> None:
    assert Connections(proc).look(pid, box, 8000) is None


@pytest.mark.parametrize(
    ("in_use", "listens"),
    [
        pytest.param("TCP6: inuse 1\nUDP6: inuse 0\n", True, id="in use"),
        pytest.param("TCP6: inuse 10\nUDP6: inuse 0\n", True, id="many in use"),
        pytest.param("TCP6: inuse 0\nUDP6: inuse 3\n", False, id="none in use"),
    ],
)
def test_the_table_of_ipv6_is_read_where_it_is_in_use(
    proc: Path, in_use: str, *, listens: bool
) -> None:
    (proc / "7/net/tcp").write_text("head\n")
    (proc / "7/net/tcp6").write_text(LISTENS.replace("00000000:", f"{'0' * 32}:"))
    (proc / "7/net/sockstat6").write_text(in_use)

    seen = Connections(proc).look(7, BOX, 8000)

    assert seen is not None
    assert seen.listening is listens


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["IPv4", "dual stack"])
def test_real_sockets_of_either_family(tmp_path: Path, family: socket.AddressFamily) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/net").symlink_to(f"/proc/{os.getpid()}/net")
    (tmp_path / "7/cgroup").write_text(f"0::/docker/{BOX}\n")
    is_dual = family is socket.AF_INET6
    with socket.create_server(("", 0), family=family, dualstack_ipv6=is_dual) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            seen = Connections(tmp_path).look(7, BOX, port)

    assert seen is not None
    assert (seen.listening, len(seen.ends)) == (True, 1)


def test_a_table_that_may_not_be_read_is_none(proc: Path) -> None:
    (proc / "7/net/tcp").unlink()

    assert Connections(proc).look(7, BOX, 8000) is None


def test_real_sockets(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/net").symlink_to(f"/proc/{os.getpid()}/net")
    (tmp_path / "7/cgroup").write_text(f"0::/docker/{BOX}\n")
    eyes = Connections(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        before = eyes.look(7, BOX, port)
        with socket.create_connection(("127.0.0.1", port)):
            seen = eyes.look(7, BOX, port)
    after = eyes.look(7, BOX, port)

    assert before is not None
    assert (before.listening, len(before.ends)) == (True, 0)
    assert seen is not None
    assert (seen.listening, len(seen.ends)) == (True, 1)
    assert after is not None
    assert not after.listening
