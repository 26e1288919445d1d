"""A vLLM that nothing marks is found by the series on its port, and only by default."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.policy.discover import DEFAULT, Sieve
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    plain = docker.add("plain", loads_for=3700)  # up for an hour already: ready in 100 s
    plain.seen = replace(plain.seen, image="python:3.12", argv=("python3", "/srv/llm.py"))
    other = docker.add("web")
    other.seen = replace(other.seen, image="nginx", argv=("nginx",))
    other.body = b"nginx_up 1\n"
    return docker


def test_it_is_found_once_it_has_loaded(tmp_path: Path, docker: FakeDocker) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(60)
    assert set(house.loop.parts.watch.targets) == {"t1-a"}

    house.run(200)

    assert set(house.loop.parts.watch.targets) == {"t1-a", "plain"}
    assert house.state("plain") == "idle"


def test_what_was_found_stays_found_when_it_dies(tmp_path: Path, docker: FakeDocker) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    docker.boxes["plain"].loads_for = 20.0
    house.run(60)

    docker.die("plain")
    house.run(60)

    assert house.state("plain") == "idle"
    assert docker.done == ["start plain"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"looks_default": False, "discover": DEFAULT}, id="discovery was configured"),
        pytest.param({"exclude": (Sieve(name="plain"),)}, id="excluded"),
    ],
)
def test_nobody_is_asked_who_was_not_meant(
    tmp_path: Path, docker: FakeDocker, changes: dict[str, Any]
) -> None:
    docker.boxes["plain"].loads_for = 0.0
    house = Daemon(
        folder=tmp_path, docker=docker, clock=docker.clock, plan=replace(plan(), **changes)
    )
    house.run(120)

    assert "plain" not in house.loop.parts.watch.targets


def test_a_stranger_is_left_alone_after_a_few_tries(tmp_path: Path, docker: FakeDocker) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    web = docker.boxes["web"].seen.ports[0].host_port
    house.run(4 * 3600, step=20)

    assert len([url for url in docker.asked if f":{web}" in url]) == 10
