from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from sentinel.core.host.cgroup import CgroupReading
from sentinel.core.host.kernel_log import KernelLine, KernelXid
from sentinel.core.host.reading import Disks, Filesystem, HostReading
from sentinel.core.model.container import Status
from sentinel.core.model.errors import Permanent
from sentinel.core.model.launch import By
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import Sample, compile_expression
from sentinel.runtime.counts import Counts
from sentinel.runtime.hostwatch import HostWatch, Surroundings
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from tests.core.gpu.gpus import BOX, container
from tests.core.host.test_kernel_log import BOX as KILLED
from tests.core.host.test_kernel_log import HOST_5_4, LIMIT_6_18
from tests.fakes import FakeClock
from tests.runtime.house import remembering


class FakeLane:
    """Its calls come back at once, or when the test says so."""

    def __init__(self, name: str) -> None:
        self.name, self.stuck = name, False
        self.busy_since: float | None = None

    def submit(self, call: Any, *, now: float, deadline: float, deliver: Any) -> int:
        assert self.busy_since is None
        self.busy_since, self.deadline = now, deadline
        self.come_back: Callable[[], None] = lambda: self._answer(call, deliver)
        if not self.stuck:
            self.come_back()
        return 1

    def _answer(self, call: Any, deliver: Any) -> None:
        self.busy_since = None
        deliver(LaneAnswer(lane=self.name, token=1, value=call()))

    def overdue(self, now: float) -> bool:
        return self.busy_since is not None and now - self.busy_since >= self.deadline


class FakeHost:
    """Eyes and the kernel's log."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.memory: HostReading = HostReading(
            memory_total=100, memory_available=40, pressure={"some": 0.1, "full": 0.0}
        )
        self.filesystems = Disks()
        self.asked: list[Mapping[str, Sequence[str]]] = []
        self.lines: list[KernelLine] = []
        self.no_log = ""

    def read(self, mains: Any) -> Any:
        return self._log() if isinstance(mains, float) else self.memory

    def _log(self) -> list[KernelLine]:
        if self.no_log:
            raise Permanent(self.no_log)
        lines, self.lines = self.lines, []
        return lines

    def disks(self, paths: Mapping[str, Sequence[str]]) -> Disks:
        self.asked.append(paths)
        return self.filesystems

    def says(self, text: str, at: datetime | None = None) -> None:
        at = at or self.clock.now()
        self.lines += [KernelLine(at=at, text=line) for line in text.splitlines()]

    def counts(self, kills: int, *, limit: int | None = 48 << 20, box: str = KILLED) -> None:
        group = CgroupReading(used=11, limit=limit, kills=kills, pressure=0.5, pids=(2092, 4242))
        self.memory = replace(self.memory, cgroups={box: group})


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.host = FakeHost(self.clock)
        self.store, self.targets = Store(), dict[str, Target]()
        self.xids: list[KernelXid] = []
        self.start()

    def start(self, watched_until: datetime | None = None) -> None:
        self.memory, self.inbox = remembering(self.folder / "state.db"), Inbox()
        self.lanes: dict[str, FakeLane] = {}
        self.watch = HostWatch(
            Surroundings(eyes=self.host, kernel=self.host, written_paths=("/var/lib/s",)),
            cast(Any, lambda name: self.lanes.setdefault(name, FakeLane(name))),
            self.clock,
            self.store,
            self.memory,
            Counts(self.memory, lambda: "gpu1"),
            self.inbox,
            Plan(host="gpu1"),
            self.xids.extend,
            watched_until,
        )

    def run(self, name: str = "t1-a", box: str = KILLED, **facts: Any) -> Target:
        now = self.clock.now()
        facts = {"pid": 77, "started_at": now - timedelta(hours=1), **facts}
        seen = container(name=name, id=box, **facts)
        self.targets[name] = Target(name=name, container=seen, seen_at=now, since=now)
        self.memory.launches.write(seen, name, By.OTHER, now)
        Counts(self.memory, lambda: "gpu1").begin(name)
        return self.targets[name]

    def slot(self, *, after: float = 5.0) -> None:
        self.clock.advance(seconds=after)
        self.watch.ask_if_due(self.targets, self.clock.now())
        for call, _ in self.inbox.wait(0.0):
            call()

    def ooms(self, name: str = "t1-a") -> dict[str, float]:
        """Counted so far, by kind, without those that stand at 0."""
        counters = self.memory.counters
        rows = zip(counters.frame(name), counters.values(name), strict=True)
        return {
            labels["kind"]: value
            for (metric, labels), value in rows
            if metric == "sentinel_oom_events_total" and value
        }

    def because(self, name: str = "t1-a") -> list[str]:
        long_ago = self.clock.now() - timedelta(days=1)
        return [oom.because for oom in self.memory.logbook.ooms(name, long_ago)]

    def ask(self, expression: str) -> dict[str, float]:
        found = compile_expression(expression).at(self.store, millis(self.clock.now()))
        assert isinstance(found, list)
        values = {}
        for sample in found:
            assert isinstance(sample, Sample)
            labels = dict(sample.labels)
            key = [labels[k] for k in ("target", "mountpoint", "kind") if k in labels]
            values[" ".join(key)] = sample.value
        return values


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.memory.close()


# who was killed


def test_a_child_killed_at_the_limit_counts_while_its_parent_lives(world: World) -> None:
    world.run()
    world.host.counts(0)
    world.slot()
    world.host.counts(1)
    world.host.says(LIMIT_6_18)
    world.slot()

    assert world.ooms() == {"cgroup": 1.0}
    assert world.because() == [
        "the kernel killed python3 (process 31210) at the memory limit of its container"
    ]


def test_what_the_host_lacked_is_not_the_containers_limit(world: World) -> None:
    world.run()
    world.host.counts(0)
    world.slot()
    world.host.counts(1)  # version 2 counts it too, whoever killed
    world.host.says(HOST_5_4)
    world.slot()

    assert world.ooms() == {"host": 1.0}
    assert world.because() == [
        "the kernel killed VLLM::EngineCor (process 2092) because the host ran out of memory"
    ]


def test_the_kernel_has_the_last_word_on_whose_memory_it_was(world: World) -> None:
    world.run()
    world.host.counts(0)
    world.slot()
    container = replace(world.targets["t1-a"].container, memory_limit=8 << 30)
    with world.memory.together():
        counts = Counts(world.memory, lambda: "gpu1")
        counts.reported_oom("t1-a", container, world.clock.now())
    world.host.says(HOST_5_4)
    world.slot()

    (oom,) = world.memory.logbook.ooms("t1-a", world.clock.now() - timedelta(days=1))
    assert oom.kind == "host"
    assert "because the host ran out of memory" in oom.because
    assert sum(world.ooms().values()) == 1


def test_a_limit_above_the_containers_own_is_named(world: World) -> None:
    world.run()
    world.slot()
    world.host.says(LIMIT_6_18.replace(f"oom_memcg=/docker/{KILLED}", "oom_memcg=/models.slice"))
    world.slot()

    assert world.ooms() == {"cgroup": 1.0}
    assert "the memory limit of /models.slice, which its container is part of" in world.because()[0]


@pytest.mark.parametrize(("limit", "kind"), [(48 << 20, "cgroup"), (None, "host")])
def test_without_a_log_the_control_group_tells(world: World, limit: int | None, kind: str) -> None:
    world.host.no_log = "/dev/kmsg: Permission denied"
    world.run()
    world.host.counts(3, limit=limit)
    world.slot()
    before = world.ooms()
    world.host.counts(4, limit=limit)
    world.slot()
    world.slot()

    assert before == {}  # it had happened before anybody looked
    assert world.ooms() == {kind: 1.0}
    assert world.watch.problems() == []
    assert world.ask("sentinel_host_kernel_log_up") == {"": 0.0}


def test_another_launch_counts_from_nothing(world: World) -> None:
    world.run()
    world.host.counts(3)
    world.slot()
    world.run(started_at=world.clock.now())
    world.host.counts(1)
    world.slot()

    assert world.ooms() == {"cgroup": 1.0}


def test_a_kernel_that_names_only_the_process_is_understood(world: World) -> None:
    world.run()
    world.host.counts(0)
    world.slot()
    world.host.says(
        "Out of memory: Kill process 2092 (vllm) score 900 or sacrifice child\n"
        "Killed process 2092 (vllm), UID 0, total-vm:1kB, anon-rss:1kB"
    )
    world.slot()

    assert world.ooms() == {"host": 1.0}


def test_what_the_kernel_kills_elsewhere_is_nobodys(world: World) -> None:
    world.run(box=BOX)
    world.slot()
    world.host.says(HOST_5_4 + LIMIT_6_18)
    world.slot()

    assert world.ooms() == {}


def test_many_lives_lost_at_one_limit_are_one_event(world: World) -> None:
    world.run()
    world.slot()
    last = LIMIT_6_18.splitlines()[-1]
    world.host.says(
        f"{LIMIT_6_18}Tasks in /docker/{KILLED} are going to be killed due to memory.oom.group set\n"
        f"{last}\n{last}\n"
    )
    world.slot()

    assert world.ooms() == {"cgroup": 1.0}


def test_what_happened_while_nobody_watched_counts_at_the_next_start(world: World) -> None:
    world.run()
    world.slot()
    beat = world.clock.now()
    world.host.says(LIMIT_6_18, at=beat - timedelta(seconds=30))  # told by the daemon before
    world.host.says(HOST_5_4, at=beat + timedelta(minutes=5))
    world.clock.advance(minutes=20)
    world.memory.close()
    world.start(watched_until=beat)
    world.slot()

    assert world.ooms() == {"host": 1.0}


def test_what_befell_a_launch_before_the_first_that_is_known_is_not_counted(world: World) -> None:
    now = world.clock.now()
    world.run(started_at=now - timedelta(minutes=2))
    world.host.says(LIMIT_6_18, at=now - timedelta(minutes=5))
    world.slot()

    assert world.ooms() == {}


def test_the_log_is_left_alone_until_there_is_a_target(world: World) -> None:
    world.host.says(LIMIT_6_18)
    world.slot()
    world.slot()
    world.run()
    world.slot()

    assert world.ooms() == {"cgroup": 1.0}


def test_a_kill_in_a_container_found_a_moment_later_counts(world: World) -> None:
    world.run("t1-b", box=BOX)
    world.slot()
    world.host.says(LIMIT_6_18)
    world.slot()
    world.run()
    world.slot()

    assert world.ooms() == {"cgroup": 1.0}


def test_xids_are_passed_on(world: World) -> None:
    world.run()
    world.slot()
    world.host.says("NVRM: Xid (PCI:0000:c6:00): 79, pid=1, name=x, GPU has fallen off the bus.")
    world.slot()

    assert [(xid.bus, xid.xid) for xid in world.xids] == [("0:c6:0", 79)]


# memory and filesystems


def test_memory_of_host_and_containers_is_published(world: World) -> None:
    world.run(shm_size=64 << 20, argv=("vllm", "serve", "m", "-tp", "2"))
    world.host.counts(0)
    world.slot()

    assert world.ask("sentinel_host_memory_available_bytes") == {"": 40.0}
    assert world.ask("sentinel_host_memory_pressure_ratio") == {"some": 0.1, "full": 0.0}
    assert world.ask("sentinel_container_memory_used_bytes") == {"t1-a": 11.0}
    assert world.ask("sentinel_container_memory_limit_bytes") == {"t1-a": 48 << 20}
    assert world.ask("sentinel_container_memory_pressure_ratio") == {"t1-a": 0.5}
    assert world.ask("sentinel_target_shared_memory_bytes") == {"t1-a": 64 << 20}
    assert world.ask("sentinel_target_tensor_parallel_size") == {"t1-a": 2.0}
    assert ("sentinel_host_memory_total_bytes", {"host": "gpu1"}, 100.0) in world.watch.published


def test_a_container_without_a_limit_has_no_such_series(world: World) -> None:
    world.run(shm_size=64 << 20, shares_ipc=True)
    world.host.counts(0, limit=None)
    world.slot()

    assert world.ask("sentinel_container_memory_limit_bytes") == {}
    assert world.ask("sentinel_target_shared_memory_bytes") == {}


def test_one_that_does_not_run_is_not_looked_at(world: World) -> None:
    world.run(status=Status.EXITED)
    world.slot()

    assert world.ask("sentinel_container_memory_used_bytes") == {}


def test_filesystems_are_published_with_those_who_write_to_them(world: World) -> None:
    world.run(written_paths=("/models", "/var/lib/docker/overlay2/1/diff"))
    world.host.filesystems = Disks(
        filesystems=(Filesystem(mountpoint="/", size=200, free=50),),
        of={"sentinel": ("/",), "t1-a": ("/",)},
    )
    world.slot()
    world.slot()

    assert world.ask("sentinel_filesystem_free_ratio") == {"/": 0.25}
    assert world.ask("sentinel_filesystem_free_bytes") == {"/": 50.0}
    assert world.ask("sentinel_target_filesystem_info") == {"t1-a /": 1.0}
    assert world.host.asked == [
        {"t1-a": ("/models", "/var/lib/docker/overlay2/1/diff"), "sentinel": ("/var/lib/s",)}
    ]


def test_filesystems_are_asked_again_after_a_while(world: World) -> None:
    world.run()
    for _ in range(25):
        world.slot()

    assert len(world.host.asked) == 3


def test_a_filesystem_that_never_answers_holds_up_nothing_else(world: World) -> None:
    world.run()
    world.host.filesystems = Disks(filesystems=(Filesystem(mountpoint="/", size=2, free=1),))
    world.slot()
    world.lanes["filesystems"].stuck = True
    for _ in range(20):
        world.slot()
    hanging = world.watch.problems(), world.ask("sentinel_filesystem_free_ratio")
    memory = world.ask("sentinel_host_memory_available_bytes")
    world.lanes["filesystems"].come_back()
    world.slot()
    world.slot()

    assert hanging == (
        ["a filesystem that a target writes to does not answer since 12:01:05 UTC"],
        {},
    )
    assert memory == {"": 40.0}
    assert world.watch.problems() == []
    assert world.ask("sentinel_filesystem_free_ratio") == {"/": 0.5}


def test_a_look_that_never_returns_ends_the_series_and_nothing_else(world: World) -> None:
    world.run()
    world.slot()
    world.lanes["host"].stuck = True
    for _ in range(5):
        world.slot()

    assert world.ask("sentinel_host_memory_available_bytes") == {}


def test_a_clock_set_back_does_not_stop_the_filesystems_from_being_asked(world: World) -> None:
    world.run()
    world.slot()
    world.clock.jump(hours=-2)
    world.slot()

    assert len(world.host.asked) == 2
