"""What the NVIDIA driver said of the GPUs of this host in one look.

A field is None where the driver, the GPU or our rights do not allow an answer: that is
normal, differs from one GPU generation to the next, and is never a fault by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Driver(StrEnum):
    """How the driver stands."""

    OK = "ok"
    NO_LIBRARY = "no_library"  # no NVIDIA driver is installed: no fault
    NOT_LOADED = "not_loaded"  # installed, but the kernel has not loaded it
    NO_GPUS = "no_gpus"  # it answers, and has no GPU
    MISMATCH = "mismatch"  # kernel and library are of different versions: updated, not rebooted
    FAILED = "failed"  # it answers that it cannot
    HUNG = "hung"  # it does not answer


RECOVERY_ACTIONS = (
    "none",
    "gpu_reset",
    "node_reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex",
    "bus_reset",
    "system_reboot",
)
"""What the driver asks for, by its number; a number beyond these is `other`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a GPU; `pid` is the host's."""

    pid: int
    used: int | None = None  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU, in base units: bytes, watts, hertz, degrees Celsius, nanoseconds."""

    index: int
    uuid: str
    trouble: str = ""  # why the driver cannot use it; empty while it can
    # what it is
    name: str | None = None
    bus_id: str | None = None
    minor: int | None = None  # N of /dev/nvidiaN; not always its index
    mig: bool | None = None
    mig_uuids: tuple[str, ...] = ()
    # what it does
    utilization: float | None = None  # 0 to 1
    memory_used: int | None = None  # without what the driver keeps for itself, if it says that
    memory_total: int | None = None
    memory_reserved: int | None = None
    processes: tuple[GpuProcess, ...] | None = None
    # heat, power, clocks
    temperature: float | None = None
    slowdown_at: float | None = None
    shutdown_at: float | None = None
    margin: float | None = None  # degrees until it slows down
    power: float | None = None
    power_limit: float | None = None  # in force
    power_limit_default: float | None = None
    power_limit_max: float | None = None
    sm_clock: float | None = None
    sm_clock_max: float | None = None
    memory_clock: float | None = None
    memory_clock_max: float | None = None
    reasons: int | None = None  # bits: why the clocks are not at their highest now
    throttle_ns: Mapping[str, int] = field(default_factory=dict)  # the driver's counters
    # health
    ecc_volatile: int | None = None  # uncorrected, since the driver was loaded
    ecc_aggregate: int | None = None  # uncorrected, ever
    remapped_correctable: int | None = None  # rows
    remapped_uncorrectable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    retired_pages: int | None = None
    retirement_pending: bool | None = None
    recovery_action: str | None = None

    @property
    def needs_reset(self) -> bool | None:
        """Whether memory waits for a reset to be remapped, or its pages to be retired."""
        known = [v for v in (self.remap_pending, self.retirement_pending) if v is not None]
        return any(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEvent:
    xid: int
    uuid: str | None = None  # None: the driver did not say which GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGpus:
    state: Driver
    because: str = ""  # in a few words, where `state` is a fault
    driver: str | None = None
    nvml: str | None = None
    cuda: str | None = None
    gpus: tuple[GpuReading, ...] = ()
    xids: tuple[XidEvent, ...] = ()  # since the last look
