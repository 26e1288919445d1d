"""The adapter against a driver that answers as a real H200 did, and against worse ones."""

import inspect
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sentinel.adapters.nvml import Nvml
from sentinel.core.gpu.reading import Driver as Standing
from sentinel.core.gpu.reading import GpuProcess, HostGpus, XidEvent
from sentinel.core.gpu.throttle import is_throttled, reasons_of
from sentinel.runtime.lanes import Lane, LaneAnswer
from tests.fakes import FakeClock
from tests.gpu.driver import (
    FIXTURES,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NOT_SUPPORTED,
    UNKNOWN,
    Driver,
    counters,
    error,
    pynvml,
    recorded,
    uuid,
)

H200 = FIXTURES / "nvidia-h200"


class Eyes:
    """The adapter, its driver and its clock."""

    def __init__(self, driver: Driver | None = None) -> None:
        self.driver, self.clock = driver or Driver(), FakeClock()
        self.nvml = Nvml(self.clock, self.driver)

    def read(self, *, after: float = 0.0) -> HostGpus:
        self.clock.advance(seconds=after)
        return self.nvml.read()


# a real H200


def test_an_idle_h200() -> None:
    host = Eyes(Driver(path=H200 / "idle.json")).read()

    (gpu,) = host.gpus
    assert (host.state, host.driver, host.nvml, host.cuda) == (
        Standing.OK,
        "580.159.04",
        "13.580.159.04",
        "13.0",
    )
    assert (gpu.index, gpu.uuid, gpu.name, gpu.trouble) == (0, uuid(0), "NVIDIA H200", "")
    assert (gpu.bus_id, gpu.minor, gpu.mig) == ("00000000:00:06.0", 0, False)
    assert (gpu.memory_used, gpu.memory_total, gpu.memory_reserved) == (0, 150754820096, 644939776)
    assert (gpu.utilization, gpu.processes) == (0.0, ())
    assert (gpu.slowdown_at, gpu.shutdown_at) == (89.0, 95.0)
    assert (gpu.power_limit, gpu.power_limit_default, gpu.power_limit_max) == (700.0, 700.0, 700.0)
    assert gpu.power is not None
    assert 70 < gpu.power < 90
    assert (gpu.sm_clock, gpu.sm_clock_max) == (345e6, 1980e6)
    assert reasons_of(gpu.reasons or 0) == {"idle"}
    assert set(gpu.throttle_ns) == {
        "sw_power_cap", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake", "thermal",
    }  # fmt: skip
    assert (gpu.ecc_volatile, gpu.ecc_aggregate) == (0, 0)
    assert (gpu.remapped_correctable, gpu.remapped_uncorrectable) == (0, 0)
    assert (gpu.remap_pending, gpu.remap_failed) == (False, False)
    assert (gpu.retired_pages, gpu.retirement_pending) == (None, None)  # an H200 retires no pages
    assert gpu.recovery_action == "none"


def test_an_h200_at_its_power_limit_is_not_throttled() -> None:
    (gpu,) = Eyes(Driver(path=H200 / "under_load.json")).read().gpus

    assert gpu.power is not None
    assert gpu.power > 680
    assert gpu.sm_clock is not None
    assert gpu.sm_clock < 1600e6
    assert reasons_of(gpu.reasons or 0) == {"sw_power_cap"}
    assert not is_throttled(gpu)
    assert gpu.throttle_ns["sw_power_cap"] > 10e9
    assert gpu.throttle_ns["hw_thermal"] == gpu.throttle_ns["sw_thermal"] == 0
    assert gpu.processes == (GpuProcess(pid=448, used=1050673152),)


def test_an_h200_out_of_memory() -> None:
    (gpu,) = Eyes(Driver(path=H200 / "out_of_memory.json")).read().gpus

    assert gpu.processes == (GpuProcess(pid=537, used=146572050432),)
    assert gpu.memory_used == 146581291008


def test_what_never_changes_is_not_asked_for_again() -> None:
    eyes = Eyes()
    eyes.read()
    first = len(eyes.driver.asked)
    eyes.read(after=1.0)
    second = eyes.driver.asked[first:]

    assert "nvmlDeviceGetName" not in second
    assert "nvmlDeviceGetRetiredPages" not in second
    assert len(second) < 20


def test_counters_are_asked_for_more_rarely_and_stay_meanwhile() -> None:
    eyes = Eyes()
    for second in range(21):
        eyes.driver.says_of("nvmlDeviceGetFieldValues", counters(f270=second))
        (gpu,) = eyes.read(after=1.0).gpus

        assert gpu.throttle_ns == {"hw_thermal": second // 10 * 10}
    assert eyes.driver.asked.count("nvmlDeviceGetFieldValues") == 3


def test_what_is_not_supported_is_not_asked_for_again() -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlDeviceGetRemappedRows", error(NOT_SUPPORTED))
    for _ in range(3):
        eyes.read(after=1.0)

    assert eyes.driver.asked.count("nvmlDeviceGetRemappedRows") == 1


# drivers that are not there


def gone() -> Any:
    raise ImportError("No module named 'pynvml'")


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (12, Standing.NO_LIBRARY),
        (9, Standing.NOT_LOADED),
        (18, Standing.MISMATCH),
        (28, Standing.NO_GPUS),
        (4, Standing.FAILED),
        (UNKNOWN, Standing.FAILED),
    ],
)
def test_why_there_are_no_gpus_to_look_at(code: int, state: Standing) -> None:
    host = Eyes(Driver(init=error(code))).read()

    assert (host.state, host.gpus) == (state, ())
    assert host.because


def test_a_host_without_the_package_or_without_gpus() -> None:
    assert Nvml(FakeClock(), gone).read().state is Standing.NO_LIBRARY
    assert Eyes(Driver(gpus=0)).read().state is Standing.NO_GPUS


def test_the_real_package_on_a_host_without_a_driver() -> None:
    assert Nvml(FakeClock()).read().state in (Standing.NO_LIBRARY, Standing.OK, Standing.NOT_LOADED)


def test_a_driver_that_comes_later_is_found() -> None:
    eyes = Eyes(Driver(init=error(12)))
    eyes.read()
    eyes.driver.init = None

    assert eyes.read(after=5.0).state is Standing.NO_LIBRARY  # not asked at every look
    assert eyes.read(after=30.0).state is Standing.OK


def test_a_driver_that_was_loaded_anew_is_opened_anew() -> None:
    eyes = Eyes()
    eyes.read()
    eyes.driver.is_open = False

    assert eyes.read(after=1.0).state is Standing.FAILED
    assert eyes.read(after=1.0).state is Standing.OK
    assert eyes.driver.sessions == 2


def test_a_driver_updated_under_way_is_a_mismatch() -> None:
    eyes = Eyes()
    eyes.read()
    eyes.driver.says_of("*", error(18), 0)
    eyes.driver.init = error(18)

    assert eyes.read(after=1.0).state is Standing.MISMATCH
    assert eyes.read(after=1.0).state is Standing.MISMATCH


# GPUs that are not there


def test_a_gpu_off_the_bus_is_in_trouble_and_the_others_are_not() -> None:
    eyes = Eyes(Driver(gpus=2))
    eyes.read()
    eyes.driver.says_of("*", error(GPU_IS_LOST), 0)

    first, second = eyes.read(after=1.0).gpus

    assert (first.uuid, first.trouble) == (uuid(0), "GPU is lost")
    assert (second.uuid, second.trouble) == (uuid(1), "")


def test_a_gpu_that_was_lost_before_anybody_looked_has_no_name() -> None:
    eyes = Eyes(Driver(gpus=2))
    eyes.driver.says_of("*", error(GPU_IS_LOST), 0)

    first, second = eyes.read().gpus

    assert (first.index, first.uuid, first.trouble) == (0, "unknown-0", "GPU is lost")
    assert (second.uuid, second.trouble) == (uuid(1), "")


def test_a_gpu_that_cannot_be_had_any_more_keeps_its_name() -> None:
    eyes = Eyes(Driver(gpus=2))
    eyes.read()
    eyes.driver.says_of("*", error(GPU_IS_LOST), 1)
    eyes.driver.says_of(
        "nvmlDeviceGetHandleByIndex", lambda index: lost() if index else bytes([index])
    )
    eyes.read(after=1.0)

    host = eyes.read(after=31.0)

    assert eyes.driver.sessions == 2
    assert {gpu.uuid: bool(gpu.trouble) for gpu in host.gpus} == {uuid(0): False, uuid(1): True}


def lost() -> bytes:
    raise error(GPU_IS_LOST)


def test_a_name_that_another_index_bears_now_is_not_given_twice() -> None:
    eyes = Eyes(Driver(gpus=2))
    eyes.read()
    eyes.driver.says_of("*", error(GPU_IS_LOST), 0)
    eyes.driver.says_of("nvmlDeviceGetHandleByIndex", lambda index: lost() if index else bytes([1]))
    eyes.read(after=1.0)

    host = eyes.read(after=31.0)

    assert [(gpu.index, gpu.uuid) for gpu in host.gpus] == [(0, uuid(1)), (1, "unknown-1")]


def test_the_only_gpu_of_a_host_that_cannot_be_had_any_more_is_lost_and_the_driver_is_not() -> None:
    eyes = Eyes()
    eyes.read()
    eyes.driver.says_of("*", error(GPU_IS_LOST), 0)
    eyes.driver.says_of("nvmlDeviceGetHandleByIndex", error(GPU_IS_LOST))
    eyes.read(after=1.0)

    host = eyes.read(after=31.0)

    assert host.state is Standing.OK
    assert [(gpu.uuid, gpu.trouble) for gpu in host.gpus] == [(uuid(0), "GPU is lost")]


def test_gpus_of_which_none_could_ever_be_had_are_the_drivers_fault() -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlDeviceGetHandleByIndex", error(4))

    host = eyes.read()

    assert (host.state, host.because) == (Standing.FAILED, "Insufficient Permissions")


def test_a_gpu_that_was_reset_is_well_again() -> None:
    eyes = Eyes()
    eyes.read()
    eyes.driver.says_of("*", error(16), 0)
    assert eyes.read(after=1.0).gpus[0].trouble
    eyes.driver.forget("*", 0)

    assert not eyes.read(after=1.0).gpus[0].trouble
    eyes.read(after=31.0)
    assert eyes.driver.sessions == 2  # its handle may be an old one


def test_a_gpu_that_answers_nothing_is_in_trouble() -> None:
    eyes = Eyes()
    eyes.driver.says_of("*", error(UNKNOWN), 0)
    eyes.driver.says_of("nvmlDeviceGetUUID", uuid(0), 0)

    assert eyes.read().gpus[0].trouble == "Unknown Error"


def test_one_question_that_fails_costs_one_fact() -> None:
    eyes = Eyes()
    whole = eyes.read().gpus[0]
    eyes.driver.says_of("nvmlDeviceGetPowerUsage", error(UNKNOWN))

    gpu = eyes.read(after=1.0).gpus[0]

    assert (gpu.power, gpu.temperature, gpu.trouble) == (None, whole.temperature, "")


# older drivers, other GPUs


def test_an_older_driver_is_asked_in_its_own_words() -> None:
    eyes = Eyes(Driver(path=H200 / "under_load.json"))
    for name in (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetMarginTemperature",
        "nvmlDeviceGetRemappedRows",
    ):
        eyes.driver.says_of(name, error(FUNCTION_NOT_FOUND))
    eyes.driver.says_of(
        "nvmlDeviceGetComputeRunningProcesses_v2", [SimpleNamespace(pid=7, usedGpuMemory=None)]
    )
    eyes.driver.says_of("nvmlDeviceGetCurrentClocksThrottleReasons", 0x40)
    eyes.driver.says_of(
        "nvmlDeviceGetMemoryInfo",
        lambda _handle, *version: old_memory(*version),
    )
    eyes.driver.says_of("nvmlDeviceGetFieldValues", counters(f75=5))

    (gpu,) = eyes.read().gpus

    assert gpu.processes == (GpuProcess(pid=7, used=None),)
    assert (gpu.reasons, gpu.margin, gpu.remap_pending) == (0x40, None, None)
    assert (gpu.memory_used, gpu.memory_reserved) == (3, None)
    assert gpu.throttle_ns == {"thermal": 5}
    assert gpu.recovery_action is None


def old_memory(version: int | None = None) -> Any:
    if version is not None:
        raise error(FUNCTION_NOT_FOUND)
    return SimpleNamespace(used=3, free=4, total=7)


def test_a_package_older_than_a_question() -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlDeviceGetMarginTemperature", AttributeError("no such function"))
    eyes.driver.says_of("nvmlEventSetWait_v2", AttributeError("no such function"))

    host = eyes.read()

    assert (host.gpus[0].margin, host.xids) == (None, ())


def test_a_gpu_in_parts() -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlDeviceGetMigMode", [1, 1])
    eyes.driver.says_of("nvmlDeviceGetUtilizationRates", error(NOT_SUPPORTED))
    eyes.driver.says_of("nvmlDeviceGetMaxMigDeviceCount", 7)
    eyes.driver.says_of(
        "nvmlDeviceGetMigDeviceHandleByIndex",
        lambda _handle, place: bytes([100 + place]) if place in (0, 3) else no_part(),
    )

    (gpu,) = eyes.read().gpus

    assert gpu.mig is True
    assert gpu.mig_uuids == (uuid(100), uuid(103))
    assert (gpu.utilization, gpu.trouble) == (None, "")


def no_part() -> bytes:
    raise error(6)


@pytest.mark.parametrize(
    ("number", "action"), [(0, "none"), (1, "gpu_reset"), (2, "node_reboot"), (99, "other")]
)
def test_the_recovery_that_the_driver_asks_for(number: int, action: str) -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlDeviceGetFieldValues", counters(f230=number))

    assert eyes.read().gpus[0].recovery_action == action


def test_processes_of_all_kinds_are_counted_once() -> None:
    eyes = Eyes()
    one, two = SimpleNamespace(pid=1, usedGpuMemory=10), SimpleNamespace(pid=2, usedGpuMemory=20)
    eyes.driver.says_of("nvmlDeviceGetComputeRunningProcesses_v3", [one])
    eyes.driver.says_of("nvmlDeviceGetMPSComputeRunningProcesses_v3", [two])
    eyes.driver.says_of("nvmlDeviceGetGraphicsRunningProcesses_v3", [one])

    assert eyes.read().gpus[0].processes == (
        GpuProcess(pid=1, used=10),
        GpuProcess(pid=2, used=20),
    )


# Xids


def test_xids_come_with_the_gpu_they_happened_on_and_once() -> None:
    eyes = Eyes(Driver(gpus=2))
    eyes.read()
    eyes.driver.xids = [(31, 1), (79, 0), (31, 1)]

    assert eyes.read(after=1.0).xids == (
        XidEvent(xid=31, uuid=uuid(1)),
        XidEvent(xid=79, uuid=uuid(0)),
        XidEvent(xid=31, uuid=uuid(1)),
    )
    assert eyes.read(after=1.0).xids == ()


def test_an_endless_stream_of_xids_does_not_hold_up_a_look() -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlEventSetWait_v2", SimpleNamespace(device=bytes([9]), eventData=13))

    xids = eyes.read().xids

    assert 0 < len(xids) < 1000
    assert xids[0] == XidEvent(xid=13)  # of a GPU that nobody knows


def test_a_driver_that_tells_no_xids_tells_the_rest() -> None:
    eyes = Eyes()
    eyes.driver.says_of("nvmlEventSetCreate", error(NOT_SUPPORTED))

    host = eyes.read()

    assert (host.state, host.xids) == (Standing.OK, ())


# a driver that does not return


def test_a_driver_that_does_not_return_holds_up_its_lane_alone() -> None:
    gate, heard = threading.Event(), threading.Event()
    eyes, lane = Eyes(Driver(hangs=gate)), Lane("nvml")
    answers: list[LaneAnswer[HostGpus]] = []

    def deliver(answer: LaneAnswer[HostGpus]) -> None:
        answers.append(answer)
        heard.set()

    lane.submit(eyes.nvml.read, now=0.0, deadline=5.0, deliver=deliver)

    assert lane.overdue(6.0)
    assert not answers
    gate.set()
    assert heard.wait(5)
    assert answers[0].value is not None
    assert answers[0].late


# the stand-in itself


def test_the_stand_in_is_asked_as_the_real_package_can_be() -> None:
    driver = Driver()
    eyes = Eyes(driver)
    driver.says_of("nvmlDeviceGetMigMode", [1, 1])
    driver.says_of("nvmlDeviceGetMaxMigDeviceCount", 1)
    driver.says_of("nvmlDeviceGetMigDeviceHandleByIndex", bytes([100]))
    eyes.read()
    eyes.nvml._close()

    for name, arguments in driver.asked_with.items():
        inspect.signature(getattr(pynvml, name)).bind(*arguments)
    assert len(driver.asked_with) > 30


# anything at all

NAMES = sorted({key.split(" ")[0] for key in recorded()} | {"nvmlDeviceGetCount", "nvmlInit"})
ODD = st.one_of(
    st.sampled_from([1, 2, 3, 4, 6, 9, 10, 12, 13, 15, 16, 17, 18, 25, 28, 999]).map(error),
    st.sampled_from([OSError("ioctl"), TypeError("?"), AttributeError("?"), ValueError("?")]),
    st.none(),
    st.integers(-(2**63), 2**64),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=5),
    st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=4),
    st.builds(
        SimpleNamespace,
        pid=st.none() | st.integers(),
        usedGpuMemory=st.none() | st.integers(),
        used=st.none() | st.integers() | st.text(),
        gpu=st.integers(),
        eventData=st.integers(),
        device=st.none() | st.binary(max_size=1),
    ),
    st.lists(st.builds(SimpleNamespace, pid=st.integers(), usedGpuMemory=st.integers())),
    st.lists(
        st.builds(
            SimpleNamespace,
            fieldId=st.sampled_from([74, 269, 270, 230, None]),
            nvmlReturn=st.sampled_from([0, 3]),
            valueType=st.integers(-1, 9),
            value=st.builds(SimpleNamespace, dVal=st.floats(), ullVal=st.integers()),
        ),
        max_size=4,
    ),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.dictionaries(st.sampled_from(NAMES), ODD, max_size=8), min_size=1, max_size=4))
def test_whatever_the_driver_says_a_look_is_a_value(rounds: list[dict[str, Any]]) -> None:
    eyes = Eyes(Driver(gpus=2))
    for said in rounds:
        eyes.driver.says = {(name, None): answer for name, answer in said.items()}

        host = eyes.read(after=31.0)

        assert isinstance(host, HostGpus)
        for gpu in host.gpus:
            assert gpu.utilization is None or 0 <= gpu.utilization <= 1
            assert gpu.memory_used is None or gpu.memory_used >= 0
            assert all(isinstance(value, int) for value in gpu.throttle_ns.values())
    eyes.driver.says = {}
    assert eyes.read(after=31.0).state in (Standing.OK, Standing.FAILED)
    assert eyes.read(after=31.0).state is Standing.OK  # and it recovers from all of it


@pytest.mark.parametrize("name", [name for name in NAMES if name != "nvmlInit"])
@pytest.mark.parametrize("code", [NOT_SUPPORTED, FUNCTION_NOT_FOUND, UNKNOWN])
def test_no_question_is_needed(name: str, code: int) -> None:
    eyes = Eyes()
    eyes.driver.says_of(name, error(code))

    assert eyes.read().state in (Standing.OK, Standing.FAILED)
