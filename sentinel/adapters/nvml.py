"""The GPUs of this host, through NVIDIA's management library.

Everything it is asked may fail, in any way and at any time, and much is unknown to an older
driver: an answer that fails costs that one fact. What shows that a GPU or the whole session
is lost has the session opened anew, after a while. While a session is open, nobody can reset
a GPU or unload the driver.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sentinel.core.gpu import answer
from sentinel.core.gpu.reading import Driver, GpuReading, HostGpus, XidEvent
from sentinel.ports import Clock

_REOPEN_AFTER = 30.0  # seconds
_SLOW_FACTS_EVERY = 60.0
_COUNTERS_EVERY = 10.0  # they take longer than all else together, and miss nothing meanwhile
_MOST_GPUS = 256
_MOST_EVENTS = 256  # taken at one look

_GPU_IS_LOST, _RESET_REQUIRED = 15, 16
_STATES = {  # what an error means for the session; others mean nothing for it
    1: Driver.FAILED,  # uninitialised: it was, so the driver was loaded anew
    9: Driver.NOT_LOADED,
    12: Driver.NO_LIBRARY,
    18: Driver.MISMATCH,
    28: Driver.NO_GPUS,
}
_NEVER = (3, 13, 25)  # not supported, no such function, no such version of it

_SM, _MEMORY = 1, 2  # clocks
_SHUTDOWN, _SLOWDOWN = 0, 1  # temperature thresholds
_UNCORRECTED, _VOLATILE, _AGGREGATE = 1, 0, 1  # ECC errors
_GPU_SENSOR, _MEMORY_V2, _XIDS = 0, 0x02000028, 8


def _pynvml() -> Any:
    import pynvml  # noqa: PLC0415 - read only where there may be a GPU: it is large

    return pynvml


class Nvml:
    def __init__(self, clock: Clock, library: Callable[[], Any] = _pynvml) -> None:
        self._clock, self._library = clock, library
        self._nvml: Any = None
        self._is_open = False
        self._devices: list[_Device] = []  # of the open session
        self._uuids: dict[int, str] = {}  # by index, of this session and those before
        self._events: Any = None
        self._said = HostGpus(state=Driver.NO_LIBRARY)  # when the session was last opened
        self._reopen_at = -math.inf

    def read(self) -> HostGpus:
        now = self._clock.monotonic()
        if now >= self._reopen_at:
            self._reopen_at = math.inf
            self._close()
            self._said = self._open()
        if self._said.state is not Driver.OK:
            self._reopen_by(now + _REOPEN_AFTER)
            return self._said
        xids = self._xids()
        try:
            gpus = tuple(device.reading(now) for device in self._devices)
        except _SessionOver as over:
            self._close()
            self._reopen_by(now)
            return HostGpus(state=over.state, because=over.because, xids=xids)
        if self._said.gpus or any(gpu.trouble for gpu in gpus):
            self._reopen_by(now + _REOPEN_AFTER)
        shown = sorted(gpus + self._said.gpus, key=lambda gpu: gpu.index)
        return replace(self._said, gpus=tuple(shown), xids=xids)

    def _reopen_by(self, when: float) -> None:
        self._reopen_at = min(self._reopen_at, when)

    def _open(self) -> HostGpus:
        """Open a session, or say why there is none."""
        try:
            self._nvml = self._library()
            self._nvml.nvmlInit()
            self._is_open = True
            count = answer.whole(self._nvml.nvmlDeviceGetCount()) or 0
        except ImportError:
            return HostGpus(state=Driver.NO_LIBRARY, because="nvidia-ml-py is not installed")
        except Exception as error:  # noqa: BLE001 - whatever it is, there is no session
            state = _STATES.get(_code(error), Driver.FAILED)
            return HostGpus(state=state, because=_words(error))
        lost: dict[int, str] = {}
        for index in range(min(count, _MOST_GPUS)):
            try:
                self._devices.append(self._device(index))
            except Exception as error:  # noqa: BLE001 - this one cannot be had; others may
                lost[index] = _words(error)
        gpus = self._lost(lost)
        is_blind = not self._devices and not gpus
        self._listen()
        return HostGpus(
            state=Driver.OK if not is_blind else Driver.FAILED if lost else Driver.NO_GPUS,
            because=next(iter(lost.values()), "") if is_blind else "",
            driver=answer.text(self._try("nvmlSystemGetDriverVersion")),
            nvml=answer.text(self._try("nvmlSystemGetNVMLVersion")),
            cuda=answer.cuda_version(self._try("nvmlSystemGetCudaDriverVersion")),
            gpus=gpus,
        )

    def _device(self, index: int) -> "_Device":
        handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        uuid = answer.text(self._nvml.nvmlDeviceGetUUID(handle))
        return _Device(self._nvml, index, handle, uuid or f"unknown-{index}")

    def _lost(self, lost: Mapping[int, str]) -> tuple[GpuReading, ...]:
        """Those that are there and cannot be had. If none ever could, that is the driver's."""
        shown = {device.index: device.uuid for device in self._devices}
        self._uuids |= shown
        if not self._uuids:
            return ()
        names = {index: self._uuids.get(index, "") for index in lost}
        return tuple(
            GpuReading(
                index=index,
                uuid=f"unknown-{index}" if name in ("", *shown.values()) else name,
                trouble=lost[index],
            )
            for index, name in names.items()
        )

    def _close(self) -> None:
        if self._events is not None:
            self._try("nvmlEventSetFree", self._events)
        if self._is_open:
            self._try("nvmlShutdown")
        self._is_open, self._devices, self._events = False, [], None

    def _listen(self) -> None:
        """Have Xids reported from now on."""
        self._events = self._try("nvmlEventSetCreate") if self._devices else None
        if self._events is not None:
            for device in self._devices:
                self._try("nvmlDeviceRegisterEvents", device.handle, _XIDS, self._events)

    def _xids(self) -> tuple[XidEvent, ...]:
        found: list[XidEvent] = []
        while self._events is not None and len(found) < _MOST_EVENTS:
            event = self._try("nvmlEventSetWait_v2", self._events, 0)
            xid = answer.whole(getattr(event, "eventData", None))
            if xid is None:
                break
            where = getattr(event, "device", None)
            here = (d.uuid for d in self._devices if _same(d.handle, where))
            found.append(XidEvent(xid=xid, uuid=next(here, None)))
        return tuple(found)

    def _try(self, name: str, *arguments: Any) -> Any:
        try:
            return getattr(self._nvml, name)(*arguments)
        except Exception:  # noqa: BLE001 - no answer is an answer
            return None


class _Device:
    """A GPU of the open session."""

    def __init__(self, nvml: Any, index: int, handle: Any, uuid: str) -> None:
        self._nvml, self.index, self.handle, self.uuid = nvml, index, handle, uuid
        self._never: set[tuple[object, ...]] = set()  # questions it cannot answer
        self._slow: dict[str, Any] = {}
        self._slow_at = self._counted_at = -math.inf
        self._counters: Any = None
        self._says = ""  # the last error

    def reading(self, now: float) -> GpuReading:
        """Raises `_SessionOver`."""
        try:
            if now - self._slow_at >= _SLOW_FACTS_EVERY:
                self._slow, self._slow_at = self._slow_facts(), now
            if now - self._counted_at >= _COUNTERS_EVERY:
                self._counters = self._ask("nvmlDeviceGetFieldValues", answer.FIELDS)
                self._counted_at = now
            facts = {**self._slow, **self._load(), **self._clocks(), **self._health()}
        except _GpuOver as over:
            self._slow_at = self._counted_at = -math.inf
            return GpuReading(index=self.index, uuid=self.uuid, trouble=over.because)
        if all(facts[name] is None for name in ("memory_used", "temperature", "power")):
            because = self._says or "it answers nothing"
            return GpuReading(index=self.index, uuid=self.uuid, trouble=because)
        return GpuReading(index=self.index, uuid=self.uuid, **facts)

    def _load(self) -> dict[str, Any]:
        ask = self._ask
        memory = ask("nvmlDeviceGetMemoryInfo", _MEMORY_V2) or ask("nvmlDeviceGetMemoryInfo")
        computing = self._first_of(
            "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"
        )
        shared = self._first_of(
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v2",
        )
        drawing = self._first_of(
            "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"
        )
        return {
            "utilization": answer.ratio(getattr(ask("nvmlDeviceGetUtilizationRates"), "gpu", None)),
            "memory_used": answer.whole(getattr(memory, "used", None)),
            "memory_total": answer.whole(getattr(memory, "total", None)),
            "memory_reserved": answer.whole(getattr(memory, "reserved", None)),
            "processes": answer.processes(computing, shared, drawing),
        }

    def _clocks(self) -> dict[str, Any]:
        ask = self._ask
        reasons = self._first_of(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        fields = answer.fields(self._counters)
        return {
            "temperature": answer.number(ask("nvmlDeviceGetTemperature", _GPU_SENSOR)),
            "power": answer.scaled(ask("nvmlDeviceGetPowerUsage"), 1e-3),
            "power_limit": answer.scaled(ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "sm_clock": answer.scaled(ask("nvmlDeviceGetClockInfo", _SM), 1e6),
            "memory_clock": answer.scaled(ask("nvmlDeviceGetClockInfo", _MEMORY), 1e6),
            "reasons": answer.whole(reasons),
            "throttle_ns": answer.throttle_ns(fields),
            "recovery_action": answer.recovery_action(fields),
        }

    def _health(self) -> dict[str, Any]:
        ecc, rows = "nvmlDeviceGetTotalEccErrors", self._ask("nvmlDeviceGetRemappedRows")
        return {
            "ecc_volatile": answer.whole(self._ask(ecc, _UNCORRECTED, _VOLATILE)),
            "ecc_aggregate": answer.whole(self._ask(ecc, _UNCORRECTED, _AGGREGATE)),
            "remapped_correctable": answer.whole(answer.item(rows, 0)),
            "remapped_uncorrectable": answer.whole(answer.item(rows, 1)),
            "remap_pending": answer.flag(answer.item(rows, 2)),
            "remap_failed": answer.flag(answer.item(rows, 3)),
        }

    def _slow_facts(self) -> dict[str, Any]:
        """What hardly changes, or takes long to answer."""
        ask, limit = self._ask, "nvmlDeviceGetTemperatureThreshold"
        powers = ask("nvmlDeviceGetPowerManagementLimitConstraints")
        default = ask("nvmlDeviceGetPowerManagementDefaultLimit")
        mig = answer.flag(answer.item(ask("nvmlDeviceGetMigMode"), 0))
        pages = [ask("nvmlDeviceGetRetiredPages", cause) for cause in (0, 1)]
        retired = [len(some) for some in pages if isinstance(some, list)]
        return {
            "name": answer.text(ask("nvmlDeviceGetName")),
            "bus_id": answer.text(getattr(ask("nvmlDeviceGetPciInfo"), "busId", None)),
            "minor": answer.whole(ask("nvmlDeviceGetMinorNumber")),
            "mig": mig,
            "mig_uuids": self._mig_uuids() if mig else (),
            "slowdown_at": answer.number(ask(limit, _SLOWDOWN)),
            "shutdown_at": answer.number(ask(limit, _SHUTDOWN)),
            "margin": answer.signed(ask("nvmlDeviceGetMarginTemperature")),
            "power_limit_default": answer.scaled(default, 1e-3),
            "power_limit_max": answer.scaled(answer.item(powers, 1), 1e-3),
            "sm_clock_max": answer.scaled(ask("nvmlDeviceGetMaxClockInfo", _SM), 1e6),
            "memory_clock_max": answer.scaled(ask("nvmlDeviceGetMaxClockInfo", _MEMORY), 1e6),
            "retired_pages": sum(retired) if retired else None,
            "retirement_pending": answer.flag(ask("nvmlDeviceGetRetiredPagesPendingStatus")),
        }

    def _mig_uuids(self) -> tuple[str, ...]:
        most = min(answer.whole(self._ask("nvmlDeviceGetMaxMigDeviceCount")) or 0, _MOST_GPUS)
        found = []
        for place in range(most):
            part = self._ask("nvmlDeviceGetMigDeviceHandleByIndex", place)
            uuid = None if part is None else answer.text(self._call("nvmlDeviceGetUUID", part))
            found += [uuid] if uuid else []
        return tuple(found)

    def _first_of(self, *names: str) -> Any:
        """The answer to the newest of the questions that the driver knows."""
        for name in names:
            said = self._ask(name)
            if said is not None:
                return said
        return None

    def _ask(self, name: str, *arguments: Any) -> Any:
        return self._call(name, self.handle, *arguments)

    def _call(self, name: str, handle: Any, *arguments: Any) -> Any:
        question = (name, *arguments)
        if question in self._never:
            return None
        try:
            return getattr(self._nvml, name)(handle, *arguments)
        except Exception as error:
            code = _code(error)
            if code in _STATES:
                raise _SessionOver(_STATES[code], _words(error)) from error
            if code in (_GPU_IS_LOST, _RESET_REQUIRED):
                raise _GpuOver(_words(error)) from error
            if code in _NEVER or isinstance(error, AttributeError | TypeError):
                self._never.add(question)
            else:
                self._says = _words(error)
            return None


class _SessionOver(Exception):  # noqa: N818 - no error: it ends
    def __init__(self, state: Driver, because: str) -> None:
        super().__init__(because)
        self.state, self.because = state, because


class _GpuOver(Exception):  # noqa: N818
    def __init__(self, because: str) -> None:
        super().__init__(because)
        self.because = because


def _code(error: BaseException) -> int:
    value = getattr(error, "value", None)
    return value if isinstance(value, int) else -1


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _same(handle: Any, other: Any) -> bool:
    """Handles are pointers; two to the same place are different objects."""
    try:
        return memoryview(handle).tobytes() == memoryview(other).tobytes()
    except TypeError:
        return False
