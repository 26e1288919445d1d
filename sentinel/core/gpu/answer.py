"""What the driver's library answers, as numbers that can be used, or None.

It marks what it does not know with the largest number of a type, and now and then says what
cannot be. A field value is a union: which part of it counts is said beside it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from sentinel.core.gpu.reading import RECOVERY_ACTIONS, GpuProcess
from sentinel.core.gpu.throttle import THERMAL

_NOT_AVAILABLE = (0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
_COUNTERS = {  # field → reason; in nanoseconds
    74: "sw_power_cap",
    75: THERMAL,
    76: "sync_boost",
    269: "sw_thermal",
    270: "hw_thermal",
    271: "hw_power_brake",
}
_RECOVERY_ACTION = 230
FIELDS = (*_COUNTERS, _RECOVERY_ACTION)
_PARTS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by value type


def number(answer: object) -> float | None:
    """Not negative, finite, and not the mark of what is not known."""
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return None
    if not 0 <= answer < math.inf or answer in _NOT_AVAILABLE:
        return None
    return float(answer)


def signed(answer: object) -> float | None:
    if isinstance(answer, bool) or not isinstance(answer, int | float):
        return None
    return float(answer) if -1000 < answer < 1000 else None


def whole(answer: object) -> int | None:
    return answer if isinstance(answer, int) and number(answer) is not None else None


def scaled(answer: object, factor: float) -> float | None:
    value = number(answer)
    return None if value is None else value * factor


def ratio(percent: object) -> float | None:
    value = number(percent)
    return None if value is None or value > 100 else value / 100


def flag(answer: object) -> bool | None:
    value = whole(answer)
    return None if value is None else value != 0


def text(answer: object) -> str | None:
    if isinstance(answer, bytes):
        answer = answer.decode(errors="replace")
    return answer or None if isinstance(answer, str) else None


def item(answer: object, place: int) -> object:
    """One of several values that came together."""
    if isinstance(answer, list | tuple) and place < len(answer):
        return answer[place]
    return None


def fields(answer: object) -> Mapping[int, int]:
    """Field values by field, as far as each was answered."""
    found: dict[int, int] = {}
    for each in _each(answer):
        kind = whole(getattr(each, "valueType", None))
        if getattr(each, "nvmlReturn", None) != 0 or kind is None or kind >= len(_PARTS):
            continue
        name = whole(getattr(each, "fieldId", None))
        value = number(getattr(getattr(each, "value", None), _PARTS[kind], None))
        if name is not None and value is not None:
            found[name] = int(value)
    return found


def _each(answer: Any) -> Iterator[Any]:
    """Of an array of C's: it has a length and places, and says nothing else of itself."""
    if hasattr(answer, "__len__") and hasattr(answer, "__getitem__"):
        yield from (answer[place] for place in range(len(answer)))


def throttle_ns(values: Mapping[int, int]) -> Mapping[str, int]:
    return {reason: values[name] for name, reason in _COUNTERS.items() if name in values}


def recovery_action(values: Mapping[int, int]) -> str | None:
    action = values.get(_RECOVERY_ACTION)
    if action is None:
        return None
    return RECOVERY_ACTIONS[action] if action < len(RECOVERY_ACTIONS) else "other"


def processes(*answers: object) -> tuple[GpuProcess, ...] | None:
    """Those of every list, each once. None if the first list, of those that compute, is."""
    if not isinstance(answers[0], list):
        return None
    held: dict[int, int | None] = {}
    for each in (one for some in answers if isinstance(some, list) for one in some):
        pid = whole(getattr(each, "pid", None))
        used = whole(getattr(each, "usedGpuMemory", None))
        if pid:
            known = held.get(pid)
            held[pid] = used if known is None else max(known, used or 0)
    return tuple(GpuProcess(pid=pid, used=used) for pid, used in sorted(held.items()))


def cuda_version(answer: Any) -> str | None:
    """13000 is 13.0."""
    value = whole(answer)
    return None if value is None else f"{value // 1000}.{value % 1000 // 10}"
