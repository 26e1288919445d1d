"""Why a GPU's clocks are not at their highest, and for how long.

Slowed down is not always throttled: a GPU that idles or has reached its power limit under
load does what it should. The driver's own counters are used where it has them; a moment
between two looks is only guessed at where it has not. Bits nobody knows yet are `other`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sentinel.core.gpu.reading import GpuReading

_BITS = {
    "idle": 0x1,
    "app_clocks": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,  # the hardware's umbrella over hw_thermal and hw_power_brake
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display": 0x100,
}
_KNOWN = sum(_BITS.values())
REASONS = (*_BITS, "other")
THROTTLING = frozenset({"hw_slowdown", "hw_thermal", "hw_power_brake", "sw_thermal"})
THERMAL = "thermal"  # the counter of older drivers, for both kinds of heat
_LONGEST = 30.0  # seconds that one sample may stand for


def reasons_of(bits: int) -> frozenset[str]:
    found = {name for name, bit in _BITS.items() if bits & bit}
    return frozenset(found | {"other"} if bits & ~_KNOWN else found)


def is_throttled(reading: GpuReading) -> bool:
    return bool(reasons_of(reading.reasons or 0) & THROTTLING)


@dataclass(frozen=True, slots=True)
class Throttled:
    """Seconds by reason so far."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    thermal_ns: int | None = None


def advance(before: Throttled, reading: GpuReading, elapsed: float) -> Throttled:
    """What `reading`, taken `elapsed` seconds after the one before, adds."""
    counters = reading.throttle_ns
    if reading.reasons is None and not counters:
        return before
    now = reasons_of(reading.reasons or 0)
    sample = min(max(elapsed, 0.0), _LONGEST)
    seconds = {
        reason: counters[reason] / 1e9
        if reason in counters
        else before.seconds.get(reason, 0.0) + (sample if reason in now else 0.0)
        for reason in REASONS
    }
    thermal = counters.get(THERMAL)
    if thermal is not None and not {"sw_thermal", "hw_thermal"} & counters.keys():
        heat = "hw_thermal" if "hw_thermal" in now else "sw_thermal"
        last = thermal if before.thermal_ns is None else before.thermal_ns
        for reason in ("sw_thermal", "hw_thermal"):
            seconds[reason] = before.seconds.get(reason, 0.0)
        seconds[heat] += max(thermal - last, 0) / 1e9
    return Throttled(seconds, thermal)
