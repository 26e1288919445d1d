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
