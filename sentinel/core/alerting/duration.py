"""Spans of time as Prometheus writes them in rule files: `1d12h`, `90s`, `0`.

Stricter than it looks: whole numbers, each unit once, large ones first; `1.5h` and `30s1m`
are refused, as promtool refuses them.
"""

import re
from datetime import timedelta

ALLOWED_DURATION = "a duration like 30s, 5m, 1h30m or 1d (units y w d h m s ms, large ones first)"

_SIZES = {"y": 31_536_000_000, "w": 604_800_000, "d": 86_400_000, "h": 3_600_000,
          "m": 60_000, "s": 1_000, "ms": 1}  # fmt: skip
_SHAPE = re.compile("".join(rf"(?:([0-9]{{1,12}}){unit})?" for unit in _SIZES))


def parse_duration(text: str) -> timedelta:
    """Raises `ValueError` in Prometheus's words."""
    if text == "0":
        return timedelta(0)
    if not text:
        raise ValueError("empty duration string")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise ValueError(f'not a valid duration string: "{text}"')
    total = sum(
        int(count) * size
        for count, size in zip(shape.groups(), _SIZES.values(), strict=True)
        if count
    )
    if total > (2**63 - 1) // 1_000_000:
        raise ValueError("duration out of range")
    return timedelta(milliseconds=total)


def show_duration(span: timedelta) -> str:
    left = round(span.total_seconds() * 1000)
    if left == 0:
        return "0s"
    parts: list[str] = []
    for unit, size in _SIZES.items():
        exact_only = unit in ("y", "w")
        if exact_only and left % size:
            continue
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)
