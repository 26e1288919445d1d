"""The kernel's table of sockets, as a real container's namespace shows it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sentinel.core.model.container import Container, PublishedPort, Status
from sentinel.core.model.target import Endpoint
from sentinel.core.sockets import Connections, Sockets, follow, port_inside, read_sockets

HEAD = (
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
    " inode\n"
)
TCP = HEAD + (
    "   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1"
    " 1 0000000025f30bd6 100 0 0 10 0\n"
    "   1: 030011AC:1F40 010011AC:EE1E 01 00000000:00000000 00:00000000 00000000     0        0 2"
    " 1 0000000096f09eb5 20 4 31 80 -1\n"
    "   2: 030011AC:1F40 010011AC:EE2C 06 00000000:00000000 03:00000000 00000000     0        0 3"
    " 1 00000000f65fce7d 20 4 31 46 -1\n"
    "   3: 030011AC:A0F2 01010101:1F40 01 00000000:00000000 00:00000000 00000000     0        0 4"
    " 1 00000000f65fce7d 20 4 31 46 -1\n"
)
TCP6 = HEAD + (
    "   0: 00000000000000000000000000000000:1F41 00000000000000000000000000000000:0000 0A"
    " 00000000:00000000 00:00000000 00000000     0        0 5 1 0 100 0 0 10 0\n"
    "   1: 0000000000000000FFFF0000030011AC:1F40 0000000000000000FFFF0000010011AC:EE30 01"
    " 00000000:00000000 00:00000000 00000000     0        0 6 1 0 100 0 0 10 0\n"
)
NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def ends(*names: str) -> Sockets:
    return Sockets(listening=True, ends=frozenset(names))


def test_who_listens_and_who_is_connected() -> None:
    seen = read_sockets([TCP, TCP6], 8000)

    assert seen.listening
    assert seen.ends == {"010011AC:EE1E", "0000000000000000FFFF0000010011AC:EE30"}


@pytest.mark.parametrize(
    ("tables", "port", "listening"),
    [
        pytest.param([TCP], 8001, False, id="another port"),
        pytest.param([TCP, TCP6], 8001, True, id="on IPv6 only"),
        pytest.param([HEAD], 8000, False, id="nothing at all"),
        pytest.param(["", "rubbish 1F40\n:1F40"], 8000, False, id="no table"),
    ],
)
def test_a_port_that_listens_or_not(tables: list[str], port: int, listening: bool) -> None:
    assert read_sockets(tables, port).listening is listening


def looks(*several: Sockets, own: int = 0, is_counted: bool = False) -> Connections:
    found = None
    for place, seen in enumerate(several):
        at = NOW + timedelta(seconds=5 * place)
        found = follow(found, seen, 8000, at, own=own, is_counted=is_counted)
    assert found is not None
    return found


def test_clients_count_once_they_have_stayed() -> None:
    assert looks(ends("a", "b")).clients == frozenset()
    assert looks(ends("a", "b"), ends("b", "c")).clients == {"b"}


def test_those_that_come_and_go_are_none() -> None:
    assert looks(ends("a"), ends("b"), ends("c")).clients == frozenset()


def test_a_wait_has_a_beginning_and_an_end() -> None:
    waits = looks(ends("a"), ends("a"), ends("a"), ends("a"))
    assert waits.waiting_since == NOW + timedelta(seconds=5)
    assert looks(ends("a"), ends("a"), ends()).waiting_since is None


def test_whose_work_is_counted_does_not_wait_unseen() -> None:
    assert looks(ends("a"), ends("a"), is_counted=True).waiting_since is None


def test_requests_of_ours_are_no_clients() -> None:
    assert looks(ends("ours"), ends("ours"), own=1).waiting_since is None


def test_a_wait_goes_on_while_a_request_of_ours_comes_and_goes() -> None:
    waits = looks(ends("a"), ends("a"))
    for seen, own in ((ends("a", "ours"), 1), (ends("a", "ours"), 1), (ends("a"), 0)):
        waits = follow(waits, seen, 8000, NOW + timedelta(seconds=60), own=own)
        assert waits.clients == {"a"}

    assert waits.waiting_since == NOW + timedelta(seconds=5)


def box(**facts: Any) -> Container:
    ports = (PublishedPort(container_port=8000, host_ip="0.0.0.0", host_port=18000),)
    plain: dict[str, Any] = {"ports": ports, "addresses": ("172.17.0.3",)}
    return Container(
        id="c",
        name="t",
        image="vllm",
        image_id="s",
        argv=(),
        status=Status.RUNNING,
        **{**plain, **facts},
    )


@pytest.mark.parametrize(
    ("url", "found_by", "facts", "port"),
    [
        pytest.param("http://127.0.0.1:18000", "published port", {}, 8000, id="published"),
        pytest.param("http://127.0.0.1:18000", "override", {}, 8000, id="told, and published"),
        pytest.param("http://172.17.0.3:9000", "container address", {}, 9000, id="its address"),
        pytest.param("http://172.17.0.3:9000", "override", {}, 9000, id="told, its address"),
        pytest.param("http://127.0.0.1:9000", "host network", {}, 9000, id="host network"),
        pytest.param("https://127.0.0.1", "host network", {}, 443, id="no port is the usual one"),
        pytest.param("http://gateway:80", "override", {}, None, id="behind something else"),
    ],
)
def test_the_port_inside(url: str, found_by: str, facts: dict[str, Any], port: int | None) -> None:
    assert port_inside(box(**facts), Endpoint(url=url, found_by=found_by)) == port
