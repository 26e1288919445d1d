import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from sentinel.api.listen import open_unix
from sentinel.api.server import ApiServer
from sentinel.core.model.command import Pause
from sentinel.core.model.errors import Permanent
from tests.api.exchange import exchange, over_unix
from tests.api.fake_house import NOW, FakeHouse, served, wait_until

STATUS = "/api/sentinel/v1/status"
PAUSE = "/api/sentinel/v1/pause"


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o117])
def test_the_socket_is_0660_whatever_the_umask(path: Path, mask: int) -> None:
    with umask(mask):
        sock = open_unix(path)
    sock.close()

    assert mode_of(path) == 0o660


def test_the_socket_is_never_wider_than_0660(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "chmod", lambda *_: None)  # what the mode is before it
    with umask(0):
        open_unix(path).close()

    assert mode_of(path) == 0o660


def test_a_socket_left_by_a_dead_daemon_is_replaced(path: Path, house: FakeHouse) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()

    with served(house, path):
        assert exchange(over_unix(path), "GET", STATUS)[0] == 200


def test_a_living_daemon_keeps_its_socket(path: Path, house: FakeHouse) -> None:
    with served(house, path):
        with pytest.raises(Permanent, match="another Sentinel answers on this socket"):
            ApiServer(FakeHouse(), socket=path, now=lambda: NOW).start()

        assert exchange(over_unix(path), "GET", STATUS)[0] == 200


@pytest.mark.parametrize("kind", ["file", "folder", "link to a file", "dangling link"])
def test_what_is_not_a_socket_is_never_removed(path: Path, kind: str) -> None:
    other = path.with_name("precious")
    match kind:
        case "file":
            path.write_text("mine")
        case "folder":
            path.mkdir()
        case "link to a file":
            other.write_text("mine")
            path.symlink_to(other)
        case _:
            path.symlink_to(other)

    with pytest.raises(Permanent, match="is not a socket") as refusal:
        open_unix(path)

    assert refusal.value.hint
    assert path.is_symlink() or path.exists()


@pytest.mark.parametrize("bad", ["x" * 120, "no/such/folder/s.sock"])
def test_a_socket_that_cannot_be_is_refused_with_a_way_out(tmp_path: Path, bad: str) -> None:
    with pytest.raises(Permanent) as refusal:
        open_unix(tmp_path / bad)

    assert refusal.value.hint


def test_the_socket_file_goes_with_the_daemon(path: Path, house: FakeHouse) -> None:
    with served(house, path) as server:
        assert server.is_alive

    assert not path.exists()
    assert not server.is_alive


def test_it_leaves_at_once_when_told_between_two_of_its_looks(path: Path, house: FakeHouse) -> None:
    with served(house, path) as server:
        assert exchange(over_unix(path), "GET", STATUS)[0] == 200
        server.stop(0.8)  # seconds; it looks once a second

        assert not server.is_alive


def test_the_socket_of_a_successor_stays(path: Path, house: FakeHouse) -> None:
    with served(house, path):
        path.unlink()
        successor = open_unix(path)

    assert path.exists()
    successor.close()


def test_a_group_that_is_not_there_does_not_stop_the_daemon(path: Path, house: FakeHouse) -> None:
    with served(house, path, socket_group="no-such-group"):
        assert exchange(over_unix(path), "GET", STATUS)[0] == 200


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give a file to any group")
def test_the_socket_belongs_to_the_group(path: Path, house: FakeHouse) -> None:
    with served(house, path, socket_group="daemon"):
        assert path.group() == "daemon"
        assert mode_of(path) == 0o660


def test_clients_that_hang_do_not_delay_the_end(path: Path, house: FakeHouse) -> None:
    never = threading.Event()
    house.before_answer = never.wait
    idle, half, waiting = (socket.socket(socket.AF_UNIX) for _ in range(3))
    started = time.monotonic()
    with served(house, path):
        for sock in (idle, half, waiting):
            sock.connect(str(path))
        half.sendall(
            b"POST /api/sentinel/v1/pause HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"
        )
        waiting.sendall(
            b"POST /api/sentinel/v1/pause HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n"
        )
        wait_until(lambda: house.asked == [Pause(by=house.asked[0].by)] if house.asked else False)
    never.set()

    assert time.monotonic() - started < 4
    for sock in (idle, half, waiting):
        sock.close()


def test_a_process_whose_command_never_ends_can_exit(tmp_path: Path) -> None:
    program = f"""
import threading
from pathlib import Path
from tests.api.fake_house import FakeHouse, served, wait_until
import socket
house = FakeHouse(before_answer=threading.Event().wait)
with served(house, Path({str(tmp_path / "s.sock")!r})):
    s = socket.socket(socket.AF_UNIX); s.connect({str(tmp_path / "s.sock")!r})
    s.sendall(b"POST {PAUSE} HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: 0\\r\\n\\r\\n")
    wait_until(lambda: bool(house.asked))
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=20, check=False)

    assert done.returncode == 0


def test_one_slow_question_does_not_stop_the_others(path: Path, house: FakeHouse) -> None:
    gate = threading.Event()
    house.before_answer = gate.wait
    with served(house, path):
        slow = threading.Thread(target=exchange, args=(over_unix(path), "POST", PAUSE))
        slow.start()
        wait_until(lambda: bool(house.asked))
        assert exchange(over_unix(path), "GET", "/-/healthy")[0] == 200
        gate.set()
        slow.join(5)


def over_tcp(server: ApiServer) -> HTTPConnection:
    host, _, port = server.addresses[0].rpartition(":")
    return HTTPConnection(host, int(port), timeout=10)


BEARER = {"authorization": "Bearer sesame"}


@pytest.mark.parametrize(
    ("listen", "method", "url", "headers", "status"),
    [
        ("127.0.0.1:0", "GET", STATUS, {}, 200),
        ("127.0.0.1:0", "POST", PAUSE, {}, 401),
        ("127.0.0.1:0", "POST", PAUSE, {"authorization": "Bearer wrong"}, 401),
        ("127.0.0.1:0", "POST", PAUSE, {"authorization": "Bearer "}, 401),
        ("127.0.0.1:0", "POST", PAUSE, {"authorization": "Basic sesame"}, 401),
        ("127.0.0.1:0", "POST", PAUSE, {"authorization": "Bearer \xe9"}, 401),
        ("127.0.0.1:0", "POST", PAUSE, BEARER, 200),
        ("127.0.0.1:0", "POST", "/-/reload", {}, 401),
        ("127.0.0.1:0", "PUT", "/-/reload", {}, 401),
        ("127.0.0.1:0", "POST", "/api/v1/query", {}, 503),
        ("127.0.0.1:0", "POST", "/api/v2/alerts", {}, 401),
        ("127.0.0.1:0", "POST", "/nowhere", {}, 401),
        ("0.0.0.0:0", "GET", STATUS, {}, 401),
        ("0.0.0.0:0", "GET", STATUS, BEARER, 200),
        ("0.0.0.0:0", "POST", PAUSE, BEARER, 200),
        ("0.0.0.0:0", "POST", "/api/v1/query", {}, 401),
        ("0.0.0.0:0", "GET", "/-/healthy", {}, 200),
        ("0.0.0.0:0", "GET", "/-/ready", {}, 200),
        ("0.0.0.0:0", "GET", "/metrics", {}, 200),
    ],
)
def test_over_tcp_the_token_decides(
    path: Path,
    house: FakeHouse,
    listen: str,
    method: str,
    url: str,
    headers: dict[str, str],
    status: int,
) -> None:
    with served(house, path, listen=listen, token=lambda: "sesame\n") as server:
        got, answer = exchange(over_tcp(server), method, url, headers=headers)

    assert got == status
    assert "sesame" not in str(answer)
    assert [command.by for command in house.asked] == ["token"] * (
        status == 200 and method != "GET"
    )


def a_token_that_is_gone() -> str:
    raise FileNotFoundError


@pytest.mark.parametrize("token", [None, lambda: "", lambda: " \n", a_token_that_is_gone])
def test_without_a_token_nobody_changes_anything(path: Path, house: FakeHouse, token: Any) -> None:
    with served(house, path, listen="127.0.0.1:0", token=token) as server:
        for given in ("Bearer ", "Bearer None", "Bearer x"):
            headers = {"authorization": given}
            assert exchange(over_tcp(server), "POST", PAUSE, headers=headers)[0] == 401

    assert house.asked == []


def test_an_address_in_use_is_refused_and_leaves_no_socket(path: Path, house: FakeHouse) -> None:
    with served(house, path, listen="127.0.0.1:0") as server:
        other = path.with_name("other.sock")
        second = ApiServer(house, socket=other, listen=server.addresses[0], now=lambda: NOW)
        with pytest.raises(Permanent, match="cannot listen on"):
            second.start()

    assert not other.exists()
