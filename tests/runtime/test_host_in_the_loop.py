"""The whole loop over a host whose memory runs out."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sentinel.core.host.kernel_log import KernelLine
from sentinel.core.host.reading import Disks, Filesystem, HostReading
from sentinel.runtime.hostwatch import Surroundings
from sentinel.runtime.lanes import Lane
from tests.core.host.test_kernel_log import BOX, HOST_5_4, LIMIT_6_18
from tests.fakes import CRASH_LOG, FakeDocker, InlineLane
from tests.runtime.house import Daemon


class Host:
    def __init__(self, docker: FakeDocker) -> None:
        self._docker = docker
        self.lines: list[KernelLine] = []
        self.free = 90
        self.hangs: threading.Event | None = None
        self.memory = HostReading(memory_total=100, memory_available=90)

    def says(self, text: str, name: str) -> None:
        own = text.replace(BOX, self._docker.boxes[name].seen.id)
        now = self._docker.clock.now()
        self.lines += [KernelLine(at=now, text=line) for line in own.splitlines()]

    def read(self, _mains: Mapping[str, int | None]) -> HostReading:
        return self.memory

    def disks(self, paths: Mapping[str, Sequence[str]]) -> Disks:
        if self.hangs is not None:
            self.hangs.wait()
        disk = Filesystem(mountpoint="/data", size=100, free=self.free)
        return Disks(filesystems=(disk,), of=dict.fromkeys(paths, ("/data",)))


class Kernel:
    def __init__(self, host: Host) -> None:
        self._host = host

    def read(self, _wait: float) -> list[KernelLine]:
        lines, self._host.lines = self._host.lines, []
        return lines


@pytest.fixture
def host(docker: FakeDocker) -> Host:
    return Host(docker)


@pytest.fixture
def house(tmp_path: Path, docker: FakeDocker, host: Host) -> Iterator[Daemon]:
    around = Surroundings(eyes=host, kernel=Kernel(host))
    made = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, world={"around": around})
    made.run(5)
    yield made
    made.memory.close()


def alerts(house: Daemon) -> dict[str, dict[str, str]]:
    assert house.shown is not None
    return {alert["alertname"]: alert["labels"] for alert in house.shown.status["alerts"]}


def values(house: Daemon, name: str) -> list[float]:
    return [value for metric, _, value in house.samples if metric == name]


def test_a_healthy_host_is_shown_and_gives_no_alert(house: Daemon) -> None:
    house.run(400, step=10)

    assert values(house, "sentinel_host_memory_available_bytes") == [90.0]
    assert values(house, "sentinel_filesystem_free_ratio") == [0.9]
    assert values(house, "sentinel_target_filesystem_info") == [1.0]
    assert alerts(house) == {}


def test_a_child_killed_for_its_limit_is_told_and_nothing_is_done(
    house: Daemon, host: Host, docker: FakeDocker
) -> None:
    host.says(LIMIT_6_18, "t1-a")
    house.run(2)

    assert alerts(house)["VllmOOM"]["kind"] == "cgroup"
    assert "alert" in house.told("t1-a")
    assert docker.done == []


def test_a_container_that_the_host_had_no_memory_for_says_so(
    house: Daemon, host: Host, docker: FakeDocker
) -> None:
    host.says(HOST_5_4, "t1-a")
    docker.die("t1-a", code=0, log=CRASH_LOG)
    house.run(3)

    assert alerts(house)["VllmOOM"]["kind"] == "host"


def test_a_disk_that_fills_up_is_told(house: Daemon, host: Host) -> None:
    host.free = 1
    house.run(500, step=10)

    assert alerts(house)["DiskAlmostFull"]["mountpoint"] == "/data"


def test_memory_that_runs_out_is_told(house: Daemon, host: Host) -> None:
    host.memory = replace(host.memory, memory_available=4, pressure={"some": 0.5, "full": 0.1})
    house.run(200, step=5)

    assert "HostMemoryLow" in alerts(house)


def test_a_filesystem_that_never_answers_holds_up_nothing_else(
    tmp_path: Path, docker: FakeDocker, host: Host
) -> None:
    host.hangs = threading.Event()
    lanes = {"filesystems": Lane}
    world = {
        "around": Surroundings(eyes=host, kernel=Kernel(host)),
        "lane": lambda name: lanes.get(name, InlineLane)(name),
    }
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, world=world)
    house.run(5)
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]
    assert house.state("t1-a") == "idle"
    assert house.shown is not None
    assert any("does not answer since" in each for each in house.shown.status["problems"])
    host.hangs.set()


def test_a_clock_that_was_set_is_counted(house: Daemon, docker: FakeDocker) -> None:
    def jumps() -> float | None:
        return house.metrics.registry.get_sample_value("sentinel_clock_jumps_total")

    docker.clock.jump(hours=1)
    house.run(3)
    docker.clock.jump(hours=-1)
    house.run(3)

    assert jumps() == 2.0
