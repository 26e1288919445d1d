"""The whole loop over NVIDIA's library, which is stood in for."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel.adapters.nvml import Nvml
from sentinel.core.model.intent import Mode
from sentinel.runtime.lanes import Lane
from tests.fakes import FakeClock, FakeDocker, InlineLane
from tests.gpu.driver import Driver, FakeProcesses, uuid
from tests.runtime.house import Daemon, plan


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    for number, name in enumerate(("t1-a", "t1-b")):
        box = docker.add(name)
        box.seen = replace(box.seen, devices=(f"gpu={number}",))
    return docker


@pytest.fixture
def driver() -> Driver:
    return Driver(gpus=2)


@pytest.fixture
def stuck(driver: Driver) -> Iterator[threading.Event]:
    """Let go at the end, so that no thread is left."""
    event = threading.Event()
    yield event
    event.set()


def daemon(folder: Path, docker: FakeDocker, driver: Driver, lane: Any = InlineLane) -> Daemon:
    eyes = Nvml(docker.clock, driver)
    world = {"gpu_eyes": eyes, "processes": FakeProcesses(), "lane": lane}
    house = Daemon(folder=folder, docker=docker, clock=docker.clock, world=world)
    house.run(5)
    return house


def values(house: Daemon, name: str) -> list[float]:
    return [value for metric, _, value in house.samples if metric == name]


def alerts(house: Daemon) -> set[str]:
    assert house.shown is not None
    return {alert["alertname"] for alert in house.shown.status["alerts"]}


def problems(house: Daemon) -> list[str]:
    assert house.shown is not None
    return [str(problem) for problem in house.shown.status["problems"]]


def test_gpus_are_shown_with_their_targets_and_published(
    tmp_path: Path, docker: FakeDocker, driver: Driver
) -> None:
    house = daemon(tmp_path, docker, driver)

    assert house.target("t1-a")["gpus"] == [uuid(0)]
    assert house.target("t1-b")["gpus"] == [uuid(1)]
    assert values(house, "sentinel_gpu_up") == [1.0, 1.0]
    assert values(house, "sentinel_gpu_driver_hung") == [0.0]
    assert problems(house) == []
    assert alerts(house) == set()


def test_after_a_reload_the_series_carry_the_host_of_the_new_plan(
    tmp_path: Path, docker: FakeDocker, driver: Driver
) -> None:
    house = daemon(tmp_path, docker, driver)

    house.loop.use(replace(plan(Mode.ACT), host="gpu2"), house.book)
    house.run(3)

    hosts = {labels["host"] for name, labels, _ in house.samples if name == "sentinel_gpu_up"}
    assert hosts == {"gpu2"}


def test_a_driver_that_never_returns_holds_up_nothing_else(
    tmp_path: Path, docker: FakeDocker, driver: Driver, stuck: threading.Event
) -> None:
    lanes = {"nvml": Lane}
    driver.hangs = stuck
    house = daemon(tmp_path, docker, driver, lambda name: lanes.get(name, InlineLane)(name))
    house.run(70)
    docker.die("t1-a")
    house.run(60)

    assert "GPUDriverHung" in alerts(house)
    assert values(house, "sentinel_gpu_driver_hung") == [1.0]
    assert values(house, "sentinel_gpu_up") == []
    assert any("NVIDIA driver does not answer since" in problem for problem in problems(house))
    assert docker.done == ["start t1-a"]
    assert house.state("t1-a") == house.state("t1-b") == "idle"
    assert driver.asked == ["nvmlInit"]  # nothing queues behind it


def test_a_driver_that_never_returns_does_not_keep_it_from_ending(
    tmp_path: Path, docker: FakeDocker, driver: Driver, stuck: threading.Event
) -> None:
    driver.hangs = stuck
    house = daemon(tmp_path, docker, driver, Lane)
    house.loop.parts.inbox.put(house.loop.stop)

    house.loop.run()

    assert house.loop.parts.gpus._lane.busy_since is not None
    lanes = [each for each in threading.enumerate() if each.name.startswith("lane-nvml")]
    assert all(each.daemon for each in lanes)
