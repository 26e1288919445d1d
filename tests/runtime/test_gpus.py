from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from sentinel.core.gpu import samples as series
from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import Driver, GpuReading, HostGpus, XidEvent
from sentinel.core.host.kernel_log import KernelXid
from sentinel.core.model.container import Status
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import Sample, compile_expression
from sentinel.runtime.gpus import Gpus, Look, look
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from tests.core.gpu.gpus import BOX, GIB, A, B, container, gpu, held, host, owner
from tests.fakes import FakeClock
from tests.runtime.house import remembering


class FakeLane:
    """Its calls come back when the test says so."""

    def __init__(self) -> None:
        self.out: Any = None
        self.busy_since: float | None = None
        self.stuck = False

    def submit(self, call: Any, *, now: float, deadline: float, deliver: Any) -> int:
        assert self.busy_since is None
        self.busy_since, self.out, self.deadline = now, (call, deliver), deadline
        if not self.stuck:
            self.come_back()
        return 1

    def come_back(self) -> None:
        call, deliver = self.out
        self.busy_since = None
        deliver(LaneAnswer(lane="nvml", token=1, value=call()))

    def overdue(self, now: float) -> bool:
        return self.busy_since is not None and now - self.busy_since >= self.deadline


class FakeEyes:
    """A host: its GPUs, its processes, its control groups."""

    sees_host = True

    def __init__(self) -> None:
        self.host = host(gpu(0, power=80.0), gpu(1, power=90.0))
        self.owners: dict[int, Owner] = {}
        self.rules: str | None = None
        self.looks = 0

    def read(self) -> HostGpus:
        self.looks += 1
        return self.host

    def owner(self, pid: int) -> Owner:
        return self.owners.get(pid, Owner())

    def device_rules(self, pid: int) -> str | None:
        return self.rules


class World:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock, self.eyes = FakeClock(), FakeEyes()
        self.store = Store()
        self.targets: dict[str, Target] = {}
        self.start()

    def start(self) -> None:
        self.memory = remembering(self.folder / "state.db")
        self.lane, self.inbox = FakeLane(), Inbox()
        self.gpus = Gpus(
            self.eyes,
            self.eyes,
            cast(Any, self.lane),
            self.clock,
            self.store,
            self.memory,
            self.inbox,
            Plan(host="gpu1"),
        )

    def run(self, *devices: str, name: str = "t1-a", **facts: Any) -> Target:
        box = container(*devices, **{"pid": 77, "name": name, **facts})
        now = self.clock.now()
        self.targets[name] = Target(name=name, container=box, seen_at=now, since=now)
        return self.targets[name]

    def slot(self, *, after: float = 5.0) -> None:
        self.clock.advance(seconds=after)
        self.gpus.ask_if_due(self.targets, self.clock.now())
        for call, _ in self.inbox.wait(0.0):
            call()

    def ask(self, expression: str) -> dict[str, float]:
        """Values now by what tells the samples apart, from the store."""
        found = compile_expression(expression).at(self.store, millis(self.clock.now()))
        assert isinstance(found, list)
        keys = ("target", "uuid", "xid", "host")
        values = {}
        for sample in found:
            assert isinstance(sample, Sample)
            labels = dict(sample.labels)
            values[next(labels[key] for key in keys if key in labels)] = sample.value
        return values


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.memory.close()


def test_what_was_seen_is_in_the_store_and_published(world: World) -> None:
    world.slot()

    assert world.ask("sentinel_gpu_power_watts") == {A: 80.0, B: 90.0}
    assert world.ask('sentinel_gpu_up{gpu="1",host="gpu1"}') == {B: 1.0}
    assert world.ask("sentinel_gpu_driver_up") == {"gpu1": 1.0}
    assert (series.POWER, {"gpu": "0", "uuid": A, "host": "gpu1"}, 80.0) in world.gpus.published
    assert world.gpus.problems() == []


def test_every_name_it_publishes_is_a_series_of_its_own(world: World) -> None:
    world.run("gpu:all")
    world.slot()

    keys = [(name, tuple(sorted(labels.items()))) for name, labels, _ in world.gpus.published]
    assert len(keys) == len(set(keys)) > 90


@pytest.mark.parametrize("state", [Driver.NO_LIBRARY, Driver.NO_GPUS, Driver.NOT_LOADED])
def test_a_host_without_gpus_has_no_series_and_no_problem(world: World, state: Driver) -> None:
    world.eyes.host = host(state=state)
    world.run()

    world.slot()

    assert world.gpus.published == []
    assert world.gpus.problems() == []
    assert not list(world.store.names())


def test_a_host_without_gpus_is_not_asked_at_every_slot(world: World) -> None:
    world.eyes.host = host(state=Driver.NO_LIBRARY)

    for _ in range(10):
        world.slot()

    assert world.eyes.looks == 2


def test_containers_that_want_gpus_where_there_are_none_are_a_problem(world: World) -> None:
    world.eyes.host = host(state=Driver.NO_LIBRARY, because="NVML Shared Library Not Found")
    world.run("gpu:all")

    world.slot()

    assert world.gpus.problems() == ["GPUs are not watched: NVML Shared Library Not Found"]
    assert world.ask("sentinel_gpu_driver_up") == {"gpu1": 0.0}


# a driver that does not answer


def hang(world: World) -> None:
    world.slot()
    world.lane.stuck = True
    for _ in range(5):
        world.slot()


def test_a_driver_that_does_not_answer_is_hung_and_its_figures_end(world: World) -> None:
    hang(world)

    assert world.ask("sentinel_gpu_power_watts") == {}
    assert world.ask("sentinel_gpu_up") == {}  # not 0: nobody knows
    assert world.ask("sentinel_gpu_driver_up") == {"gpu1": 0.0}
    assert world.ask("sentinel_gpu_driver_hung") == {"gpu1": 1.0}
    assert world.gpus.problems() == [
        "the NVIDIA driver does not answer since 12:00:10 UTC: GPUs are not watched"
    ]
    assert world.eyes.looks == 1  # nothing queues behind the call that is out


def test_since_when_it_hangs_stays(world: World) -> None:
    hang(world)
    before = world.gpus.problems()
    world.slot(after=60.0)

    assert world.gpus.problems() == before


def test_a_driver_that_answers_after_all_is_well(world: World) -> None:
    hang(world)

    world.lane.stuck = False
    world.lane.come_back()
    world.slot()

    assert world.ask("sentinel_gpu_power_watts") == {A: 80.0, B: 90.0}
    assert world.ask("sentinel_gpu_driver_hung") == {"gpu1": 0.0}
    assert world.gpus.problems() == []


def test_the_first_look_may_take_longer(world: World) -> None:
    world.lane.stuck = True

    world.slot()
    first = world.lane.deadline
    world.lane.come_back()
    world.slot()
    world.slot()

    assert first > world.lane.deadline


def test_an_adapter_that_breaks_is_a_driver_that_fails(world: World) -> None:
    world.slot()
    world.gpus.looked(LaneAnswer(lane="nvml", token=1, error=ValueError("odd")))

    assert world.gpus.problems() == ["GPUs are not watched: ValueError('odd')"]
    assert world.ask("sentinel_gpu_driver_up") == {"gpu1": 0.0}


def test_a_driver_updated_under_way_says_what_to_do(world: World) -> None:
    world.eyes.host = host(state=Driver.MISMATCH, because="version mismatch")
    world.slot()

    assert "restart Sentinel" in world.gpus.problems()[0]


# GPUs lost


def test_a_lost_gpu_is_down_until_it_shows_again(world: World) -> None:
    world.slot()
    world.eyes.host = host(gpu(1))
    world.slot()
    lost = world.ask("sentinel_gpu_up"), world.gpus.problems()
    world.eyes.host = host(gpu(0), gpu(1))
    world.slot()

    assert lost == (
        {A: 0.0, B: 1.0},
        [f"GPU 0 ({A}) cannot be used: the driver does not show it any more"],
    )
    assert world.ask("sentinel_gpu_up") == {A: 1.0, B: 1.0}
    assert world.gpus.problems() == []


def test_a_lost_gpu_stays_with_its_target(world: World) -> None:
    world.run("gpu=0")
    world.slot()
    world.eyes.host = host(gpu(1))
    world.slot()

    joined = "sentinel_gpu_up == 0 and on (uuid) sentinel_target_gpu_info"
    assert world.ask(joined) == {A: 0.0}
    assert world.gpus.of_target("t1-a") == [A]


# whose GPU


def test_a_target_uses_what_it_was_given(world: World) -> None:
    world.run("gpu=1")
    world.slot()

    assert world.gpus.of_target("t1-a") == [B]
    assert world.ask('sentinel_target_gpu_info{gpu="1",host="gpu1"}') == {"t1-a": 1.0}


def test_its_processes_say_it_better_also_after_they_are_gone(world: World) -> None:
    target = world.run("gpu:all")
    world.eyes.host = host(gpu(0), gpu(1, processes=held(p9=GIB)))
    world.eyes.owners[9] = owner(BOX)
    world.slot()
    running = world.gpus.of_target("t1-a")

    world.eyes.host = host(gpu(0), gpu(1))
    target.container = replace(target.container, status=Status.EXITED)
    world.slot()

    assert running == world.gpus.of_target("t1-a") == [B]


def test_another_container_under_the_same_name_is_another_matter(world: World) -> None:
    world.run("gpu:all")
    world.eyes.host = host(gpu(0), gpu(1, processes=held(p9=GIB)))
    world.eyes.owners[9] = owner(BOX)
    world.slot()

    world.run("gpu=0", id="7" * 64)
    world.eyes.host = host(gpu(0), gpu(1))
    world.slot()

    assert world.gpus.of_target("t1-a") == [A]


def test_a_target_that_is_gone_has_no_gpus(world: World) -> None:
    world.run("gpu=0")
    world.slot()
    world.targets.clear()
    world.slot()

    assert world.gpus.of_target("t1-a") == []
    assert world.ask("sentinel_target_gpu_info") == {}


def test_where_process_ids_mean_nothing_processes_say_nothing(world: World) -> None:
    world.eyes.sees_host = False
    world.eyes.host = host(gpu(0, processes=held(p9=GIB)))
    world.run("gpu=0")
    for _ in range(20):
        world.slot()

    assert world.ask("sentinel_gpu_memory_orphaned_bytes") == {}
    assert world.gpus.of_target("t1-a") == [A]


def test_memory_of_a_container_that_is_over_is_orphaned(world: World) -> None:
    target = world.run("gpu=0")
    world.eyes.host = host(gpu(0, processes=held(p9=GIB)))
    world.eyes.owners[9] = owner(BOX)
    world.slot()
    for _ in range(20):
        world.slot()
    while_up = world.ask("sentinel_gpu_memory_orphaned_bytes")

    target.container = replace(target.container, status=Status.EXITED)
    for _ in range(20):
        world.slot()

    assert while_up == {A: 0.0}
    assert world.ask("sentinel_gpu_memory_orphaned_bytes") == {A: GIB}


def test_a_gpu_is_held_until_a_later_look_sees_it_let_go(world: World) -> None:
    target = world.run("gpu=0")
    world.eyes.host = host(gpu(0, processes=held(p9=GIB)))
    world.eyes.owners[9] = owner(BOX)
    world.slot()
    target.container = replace(target.container, status=Status.EXITED)
    stopped = world.clock.monotonic()
    world.clock.advance(seconds=1)
    not_looked_yet = world.gpus.are_held_by([BOX], stopped)
    world.slot()
    still_there = world.gpus.are_held_by([BOX], stopped)
    world.eyes.host, world.eyes.owners = host(gpu(0)), {}
    world.slot()

    assert (not_looked_yet, still_there) == (True, True)
    assert not world.gpus.are_held_by([BOX], stopped)
    assert not world.gpus.are_held_by(["7" * 64], stopped), "one never seen on a GPU"


# GPUs lost inside a container only


def test_a_container_that_may_use_no_gpu_any_more(world: World) -> None:
    world.run("gpu=0")
    world.eyes.rules = "c 195:0 rw\n"
    world.slot()
    before = world.ask("sentinel_container_gpu_up")
    world.eyes.rules = "c 1:3 rwm\n"
    world.slot()

    assert before == {"t1-a": 1.0}
    assert world.ask("sentinel_container_gpu_up") == {"t1-a": 0.0}


def test_a_log_that_says_so_counts_until_the_container_starts_again(world: World) -> None:
    target = world.run("gpu=0", started_at=world.clock.now())
    world.gpus.read_log(target, "Failed to initialize NVML: Unknown Error\n")
    world.slot()
    before = world.ask("sentinel_container_gpu_up")
    target.container = replace(target.container, started_at=world.clock.now())
    world.slot()

    assert before == {"t1-a": 0.0}
    assert world.ask("sentinel_container_gpu_up") == {"t1-a": 1.0}


@pytest.mark.parametrize("status", [Status.EXITED, Status.CREATED])
def test_of_a_container_that_does_not_run_nothing_is_said(world: World, status: Status) -> None:
    world.run("gpu=0", status=status)
    world.slot()

    assert world.ask("sentinel_container_gpu_up") == {}


def test_a_gpu_that_the_host_lost_too_is_not_the_containers_matter(world: World) -> None:
    world.run("gpu=0")
    world.slot()
    world.eyes.host = host(GpuReading(index=0, uuid=A, trouble="GPU is lost"))
    world.slot()

    assert world.ask("sentinel_container_gpu_up") == {}


# Xids


def test_the_first_xid_is_seen_as_an_increase(world: World) -> None:
    world.slot()
    world.slot()
    world.eyes.host = host(gpu(0), gpu(1), xids=(XidEvent(xid=79, uuid=A),))
    world.slot()
    world.eyes.host = host(gpu(0), gpu(1))
    world.slot()

    assert world.ask('increase(sentinel_gpu_xid_errors_total{xid="79"}[1m]) > 0').keys() == {A}


def test_xids_go_on_after_a_restart_of_the_daemon(world: World) -> None:
    world.eyes.host = host(gpu(0), xids=(XidEvent(xid=79, uuid=A), XidEvent(xid=4711, uuid=A)))
    world.slot()
    world.memory.close()
    world.eyes.host = host(gpu(0))

    world.start()
    world.slot()

    told = {
        labels["xid"]: value for name, labels, value in world.gpus.published
        if name == series.XID_ERRORS and value
    }  # fmt: skip
    assert told == {"79": 1.0, "other": 1.0}


# throttling


def test_throttled_seconds_come_from_the_driver_or_from_the_samples(world: World) -> None:
    for second in range(4):
        ns = {"hw_thermal": second * 1_000_000_000}
        world.eyes.host = host(gpu(0, reasons=0x48, throttle_ns=ns))
        world.slot(after=5.0)

    def seconds(reason: str) -> float:
        (value,) = world.ask(f'sentinel_gpu_throttle_seconds_total{{reason="{reason}"}}').values()
        return value

    assert seconds("hw_thermal") == 3.0
    assert seconds("hw_slowdown") == 15.0
    assert seconds("idle") == 0.0


def test_a_look_asks_for_each_process_once() -> None:
    eyes = FakeEyes()
    eyes.host = host(gpu(0, processes=held(p9=1)), gpu(1, processes=held(p9=1)))
    eyes.owners[9] = owner(BOX)

    assert look(eyes, eyes, {}) == Look(host=eyes.host, owners={9: owner(BOX)})


# the kernel's log, which tells of Xids too


def hears(world: World, *xids: int, bus: str = "0:c6:0") -> None:
    world.gpus.hear_kernel([KernelXid(at=world.clock.now(), bus=bus, xid=xid) for xid in xids])


def counted(world: World, xid: int) -> dict[str, float]:
    return world.ask(f'sentinel_gpu_xid_errors_total{{xid="{xid}"}} > 0')


@pytest.fixture
def placed(world: World) -> World:
    """Its first GPU says where on the bus it is."""
    world.eyes.host = host(gpu(0, bus_id="00000000:C6:00.0"), gpu(1))
    world.slot()
    return world


def test_an_xid_that_only_the_kernel_tells_counts(placed: World) -> None:
    hears(placed, 79)
    placed.slot()

    assert counted(placed, 79) == {A: 1.0}


@pytest.mark.parametrize("kernel_first", [True, False])
def test_an_xid_that_both_tell_counts_once(placed: World, kernel_first: bool) -> None:
    said = replace(placed.eyes.host, xids=(XidEvent(xid=79, uuid=A),))
    if kernel_first:
        hears(placed, 79)
    placed.eyes.host, quiet = said, placed.eyes.host
    placed.slot()
    placed.eyes.host = quiet
    if not kernel_first:
        hears(placed, 79)
    placed.slot()
    before = counted(placed, 79)
    hears(placed, 79)  # another
    placed.slot()

    assert before == {A: 1.0}
    assert counted(placed, 79) == {A: 2.0}


def test_an_xid_of_a_gpu_that_is_not_known_is_nobodys(placed: World) -> None:
    hears(placed, 79, bus="0:1:0")
    placed.slot()

    assert counted(placed, 79) == {}


def test_what_the_kernel_told_goes_on_after_a_restart_of_the_daemon(placed: World) -> None:
    hears(placed, 79)
    placed.memory.close()
    placed.start()
    placed.slot()

    assert counted(placed, 79) == {A: 1.0}
