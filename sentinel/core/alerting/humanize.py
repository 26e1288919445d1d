"""Numbers as Prometheus's templates show them to people."""

import math
from datetime import UTC, datetime, timedelta

from sentinel.core.alerting.go_format import show_float

_LARGE = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_SMALL = ("m", "u", "n", "p", "f", "a", "z", "y")
_BINARY = ("ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi")


def humanize(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return _four(value)
    if abs(value) >= 1:
        return _scaled(value, _LARGE, 1000)
    return _shrunk(value)


def humanize_1024(value: float) -> str:
    if abs(value) <= 1 or not math.isfinite(value):
        return _four(value)
    return _scaled(value, _BINARY, 1024)


def humanize_percentage(value: float) -> str:
    return _four(value * 100) + "%"


def humanize_duration(value: float) -> str:
    if not math.isfinite(value):
        return _four(value)
    if value == 0:
        return "0s"
    if abs(value) < 1:
        return _shrunk(value) + "s"
    sign, value = ("-", -value) if value < 0 else ("", value)
    minutes, seconds = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{sign}{days}d {hours}h {minutes}m {seconds}s"
    if hours:
        return f"{sign}{hours}h {minutes}m {seconds}s"
    if minutes:
        return f"{sign}{minutes}m {seconds}s"
    return f"{sign}{_four(value)}s"


def humanize_timestamp(value: float) -> str:
    """Raises `OverflowError` for an instant no calendar holds."""
    return show_instant(value) if math.isfinite(value) else _four(value)


def show_instant(value: float) -> str:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=math.floor(value * 1000 + 1e-6))
    fraction = f".{at.microsecond // 1000:03d}".rstrip("0").rstrip(".")
    return f"{at:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"


def _scaled(value: float, prefixes: tuple[str, ...], step: int) -> str:
    prefix = ""
    for next_prefix in prefixes:
        if abs(value) < step:
            break
        prefix = next_prefix
        value /= step
    return _four(value) + prefix


def _shrunk(value: float) -> str:
    prefix = ""
    for next_prefix in _SMALL:
        if abs(value) >= 1:
            break
        prefix = next_prefix
        value *= 1000
    return _four(value) + prefix


def _four(value: float) -> str:
    """Go's %.4g."""
    return f"{value:.4g}" if math.isfinite(value) else show_float(value)


def show_span(seconds: float) -> str:
    """A time.Duration as Go prints it: 1h2m3.5s."""
    sign, seconds = ("-", -seconds) if seconds < 0 else ("", seconds)
    if seconds == 0:
        return "0s"
    if seconds < 1:
        for size, unit in ((1e-3, "ms"), (1e-6, "µs")):
            if seconds >= size:
                return f"{sign}{show_float(round(seconds / size, 6))}{unit}"
        return f"{sign}{round(seconds * 1e9)}ns"
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{show_float(round(left, 9))}s"
    text = f"{minutes}m{text}" if minutes or hours else text
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"
