"""Every shipped alert fires on its true fault, and keeps silent in the same scene without it.

One table: what goes wrong, how, and all that is said of it and nothing else. Each row is played
through a whole daemon in virtual time; an engine falls ill after a minute of ordinary load.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.alerting.rule import AlertRule
from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import XidEvent
from sentinel.core.host.reading import HostReading
from sentinel.core.model.errors import Transient
from sentinel.core.model.intent import Mode
from sentinel.core.model.target import Traffic
from tests.core.gpu.gpus import GIB, A, held
from tests.core.host.test_kernel_log import HOST_5_4, LIMIT_6_18
from tests.fakes import FIXTURES, IDLE
from tests.rules.scene import GROUPS, NAMES, Scene
from tests.rules.virtual_vllm import Load
from tests.runtime.world import crash_loop, recreate, started_by_person

pytestmark = pytest.mark.slow

Play = Callable[[Scene], object]
LOGS = Path(__file__).parents[1] / "core" / "diagnosis" / "logs"
SHIPPED = {rule.name for group in GROUPS for rule in group.rules if isinstance(rule, AlertRule)}
OUT_OF_GPU_MEMORY = (FIXTURES / "vllm-0.22.1-h200" / "log_gpu_runtime_oom.txt").read_text()
OUT_OF_GPU_MEMORY_AT_START = (LOGS / "0.17.1_hip_oom_startup.txt").read_text()
CACHE_TOO_SMALL = (FIXTURES / "vllm-0.32.0-cpu" / "log_0.32_start_kvsmall.txt").read_text()
OVERLOAD = (
    "VllmTTFTP99High VllmTTFTP99Breached VllmQueueTimeHigh VllmQueueBacklog VllmReplicaOutlier"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`says`: all that fires. `anyway`: what fires in the scene without the fault as well."""

    name: str
    play: Play
    says: str
    without: Play
    anyway: str = ""
    scene: Mapping[str, Any] = field(default_factory=dict)


# how a row is played


@cache
def minutes(count: float) -> Play:
    return lambda scene: scene.pass_time(count * 60)


def together(*deeds: Play) -> Play:
    def play(scene: Scene) -> None:
        for deed in deeds:
            deed(scene)

    return play


@cache
def serve_well(load: Load) -> Play:
    return lambda scene: scene.serve(dict.fromkeys(NAMES, load))


def engine(name: str, says: str, *, server: Mapping[str, Any] | None = None, **ill: Any) -> Fault:
    """A fault of the engine of t1-a. `server`: what it and its siblings are like when well."""
    well = Load(**(server or {}))
    beside = dict.fromkeys(("t1-b", "t1-c"), well)
    return Fault(
        name=name,
        play=lambda scene: scene.serve({"t1-a": replace(well, **ill), **beside}),
        says=says,
        without=serve_well(well),
    )


def around(name: str, says: str, deed: Play, *, takes: float = 4, **more: Any) -> Fault:
    """What befalls a container or the host, and minutes after it; `without` it only they pass."""
    after = minutes(takes)
    instead = more.pop("without", None)
    without = together(instead, after) if instead else after
    return Fault(name=name, play=together(deed, after), says=says, without=without, **more)


# what befalls containers and the host


def dies(*names: str, code: int = 0, log: str | None = None) -> Play:
    said = {} if log is None else {"log": log}

    def deed(scene: Scene) -> None:
        for name in names:
            scene.docker.die(name, code=code, **said)

    return deed


def loads(seconds: float) -> Play:
    """A person makes t1-a anew, and it takes that long to load."""

    def deed(scene: Scene) -> None:
        recreate(scene.docker, "t1-a", loads_for=seconds)

    return deed


def restarts_fail_twice(scene: Scene) -> None:
    """Each time it dies, dies again while Sentinel's restart loads, and a person has to start it."""
    for _ in range(2):
        dies("t1-a", log="")(scene)
        scene.pass_time(10)
        dies("t1-a", log="")(scene)
        scene.pass_time(10)
        started_by_person(scene.docker, "t1-a")
        scene.pass_time(120)


def out_of_memory(kernel_says: str) -> Play:
    """The kernel ends a process of t1-a, and the server leaves as after any death."""

    def deed(scene: Scene) -> None:
        scene.host.says(kernel_says, "t1-a")
        scene.docker.die("t1-a")

    return deed


def be(name: str, **facts: Any) -> Play:
    """The server of a container behaves otherwise from now on."""

    def deed(scene: Scene) -> None:
        for fact, value in facts.items():
            setattr(scene.docker.boxes[name], fact, value)

    return deed


def runs(**facts: Any) -> Play:
    """A person makes t1-a anew, as another container."""

    def deed(scene: Scene) -> None:
        recreate(scene.docker, "t1-a", loads_for=0.0)
        box = scene.docker.boxes["t1-a"]
        box.seen = replace(box.seen, **facts)

    return deed


def gpu(**facts: Any) -> Play:
    return lambda scene: scene.cards.be(**facts)


def xid(number: int) -> Play:
    def deed(scene: Scene) -> None:
        scene.cards.host = replace(scene.cards.host, xids=(XidEvent(xid=number, uuid=A),))

    return deed


def left_behind(scene: Scene) -> None:
    scene.cards.be(processes=held(p7=8 * GIB), memory_used=8 * GIB)
    scene.cards.owners[7] = Owner(state="S", name="VLLM::Worker_TP0", parent=1)


def driver_hangs(scene: Scene) -> None:
    scene.nvml.hangs = True


def loses_its_gpus(rules: str) -> Play:
    return lambda scene: setattr(scene.cards, "rules", rules)


def docker_is_lost(scene: Scene) -> None:
    scene.docker.lost = True


def nobody_takes_messages(scene: Scene) -> None:
    scene.house.receiver.fails = Transient("the receiver does not answer")


def turns_take_long(scene: Scene) -> None:
    scene.pass_time(300, step=4 * scene.step)


def traffic(state: str) -> Play:
    """Series alone: whoever takes traffic away is not of this scene."""
    labels = {"target": "t1-a", "host": "gpu1"}
    samples = [
        *((name, labels, 1.0) for name in ("sentinel_target_up", "vllm:num_requests_running")),
        *(("sentinel_target_traffic", {**labels, "state": s}, float(s == state)) for s in Traffic),
    ]
    return lambda scene: scene.feed(samples, seconds=600)


def memory(available: int, *, pressure: float) -> Play:
    seen = HostReading(memory_total=100, memory_available=available, pressure={"some": pressure})
    return lambda scene: setattr(scene.host, "memory", seen)


def disk(free: int) -> Play:
    return lambda scene: setattr(scene.host, "free", free)


FAULTS = [
    # an engine and its load
    engine(
        "more work than the KV cache holds",
        f"{OVERLOAD} VllmKVCacheUsageHigh",
        server={"blocks": 121, "tokens": 60},
        then_rate=4,
    ),
    engine(
        "KV cache taken by something else",
        "VllmKVCacheUsageHigh",
        server={"rate": 0.2},
        engine=(("reserved", 0.97),),
    ),
    engine("more work than --max-num-seqs", OVERLOAD, server={"max_seqs": 3}, then_rate=3),
    engine("preemption storm", "VllmPreemptionStorm VllmITLHigh", engine=(("storm", 1),)),
    engine(
        "slow to the first token",
        "VllmTTFTP99High VllmTTFTP99Breached VllmReplicaOutlier",
        engine=(("first_token_delay", 3),),
    ),
    engine("slower than its siblings", "VllmReplicaOutlier", engine=(("first_token_delay", 0.6),)),
    engine("slow between tokens", "VllmITLHigh VllmReplicaOutlier", engine=(("slowdown", 4),)),
    engine("answers with 500", "VllmErrorRateHigh", fails_each=8),
    engine("hangs with requests in flight", "VllmEngineHung", hangs=True),
    engine("admits nobody", "VllmAdmissionStalled VllmQueueBacklog", admits=False),
    engine(
        "reads prompts and writes nothing",
        "VllmDecodeStalled",
        server={"rate": 0.1, "max_seqs": 128, "blocks": 1600},
        decodes=False,
    ),
    # containers
    around("exits", "VllmContainerExited", dies("t1-a")),
    around(
        "killed at its own memory limit",
        "VllmContainerExited VllmOOM:cgroup",
        out_of_memory(LIMIT_6_18),
        without=dies("t1-a"),
        anyway="VllmContainerExited",
    ),
    around(
        "killed because the host has no memory",
        "VllmContainerExited VllmOOM:host",
        out_of_memory(HOST_5_4),
        without=dies("t1-a"),
        anyway="VllmContainerExited",
    ),
    around(
        "CUDA out of memory while it serves",
        "VllmContainerExited VllmOOM:cuda_runtime",
        dies("t1-a", log=OUT_OF_GPU_MEMORY),
    ),
    around(
        "CUDA out of memory while it loads",
        "VllmContainerExited VllmOOM:cuda_startup VllmStartupFailed",
        together(loads(60), minutes(0.5), dies("t1-a", code=1, log=OUT_OF_GPU_MEMORY_AT_START)),
        without=loads(60),
    ),
    around(
        "fails to start",
        "VllmContainerExited VllmStartupFailed",
        together(loads(60), minutes(0.5), dies("t1-a", code=1, log=CACHE_TOO_SMALL)),
        without=loads(60),
    ),
    around(
        "started again and again by Docker",
        "VllmContainerExited VllmCrashLoop",
        lambda scene: crash_loop(scene.docker, "t1-a", times=4),
        without=lambda scene: crash_loop(scene.docker, "t1-a", times=1),
        anyway="VllmContainerExited",
    ),
    around("starts slowly", "VllmStartSlow", loads(1e9), without=loads(600), takes=17),
    around(
        "starts slower than it ever did",
        "VllmStartSlow",
        together(loads(1), minutes(1), loads(1e9)),
        without=together(loads(1), minutes(1), loads(50)),
    ),
    around("its port is closed", "VllmDown", be("t1-a", loads_for=1e9)),
    around("says nothing of itself", "VllmMetricMissing", be("t1-a", body=b"up 1\n"), takes=7),
    around(
        "says but a part of it",
        "VllmMetricIncomplete",
        be("t1-a", body=b"\n".join(x for x in IDLE.splitlines() if b"preemptions" not in x)),
        takes=7,
    ),
    around(
        "another model answers on its port",
        "VllmWrongModel",
        be("t1-a", body=IDLE.replace(b'model_name="tiny"', b'model_name="other"')),
    ),
    around("answers no request", "VllmProbeFailing", be("t1-a", answers=False)),
    around(
        "nobody of the pool is left",
        "VllmContainerExited PoolEmpty",
        dies("t1-a", "t1-b", "t1-c"),
        without=dies("t1-a", "t1-b"),
        anyway="VllmContainerExited",
    ),
    around(
        "serves, and gets no traffic",
        "TargetDrainedHealthy",
        traffic("drained"),
        without=traffic("active"),
    ),
    # GPUs
    around("throttled by heat", "GPUThrottling", gpu(reasons=0x40), without=gpu(reasons=0x4)),
    around("Xid 79", "GPUXid", xid(79), without=xid(43)),
    around("uncorrected memory error", "GPUECC", gpu(ecc_volatile=1)),
    around("a row waits to be replaced", "GPUECC", gpu(remap_pending=True)),
    around("off the bus", "GPULost", gpu(trouble="GPU is lost")),
    around(
        "lost in the container only",
        "GPULost",
        loses_its_gpus("c 1:3 rwm"),
        without=loses_its_gpus("c 195:0 rw"),
    ),
    around("the driver does not return", "GPUDriverHung", driver_hangs),
    around("memory that belongs to nobody", "GPUMemoryOrphaned", left_behind),
    # the host, and Sentinel itself
    around(
        "memory runs out", "HostMemoryLow", memory(4, pressure=0.4), without=memory(4, pressure=0)
    ),
    around("a disk runs full", "DiskAlmostFull", disk(2), without=disk(5), takes=7),
    around(
        "little shared memory for tensor parallelism",
        "VllmSharedMemorySmall",
        runs(shm_size=64 << 20, argv=("vllm", "serve", "tiny", "-tp", "2")),
        without=runs(shm_size=64 << 20),
    ),
    around("Docker does not answer", "DockerUnreachable", docker_is_lost),
    around(
        "a receiver takes nothing",
        "VllmContainerExited SentinelReceiverFailing",
        together(nobody_takes_messages, dies("t1-a")),
        without=dies("t1-a"),
        anyway="VllmContainerExited",
    ),
    around("Sentinel is late", "SentinelLate", turns_take_long),
    around(
        "restarts do not help",
        "VllmContainerExited VllmStartupFailed SentinelRemedyIneffective",
        restarts_fail_twice,
        without=dies("t1-a"),
        anyway="VllmContainerExited",
        scene={"mode": Mode.ACT},
    ),
]


ALONE = list({fault.without: fault for fault in FAULTS}.values())  # scenes without faults, once


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_told_and_nothing_else_is(tmp_path: Path, fault: Fault) -> None:
    scene = Scene(tmp_path, **fault.scene)
    fault.play(scene)

    assert scene.said == set(fault.says.split())


@pytest.mark.parametrize("fault", ALONE, ids=lambda fault: fault.name)
def test_without_it_there_is_silence(tmp_path: Path, fault: Fault) -> None:
    scene = Scene(tmp_path, **fault.scene)
    fault.without(scene)

    assert scene.said == set(fault.anyway.split())


def test_no_shipped_alert_is_without_its_fault() -> None:
    told = {word.partition(":")[0] for fault in FAULTS for word in fault.says.split()}

    assert told == SHIPPED
