"""Functions of single numbers, and of label sets: the tables of what an element becomes.

`ELEMENT` maps a value (and scalar arguments) to a value; `DATE` reads a Unix time. Both are
total: what Go answers with NaN or infinity is NaN or infinity here, never an exception.
"""

import calendar
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from sentinel.core.model.labels import Labels, labels_of, value_of
from sentinel.core.model.pattern import Found, compile_pattern
from sentinel.core.promql.arithmetic import NAN, divide, logarithm, total_function

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LEGACY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$(?:(\$)|(\w+)|\{(\w+)\})")


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    def guarded(value: float) -> float:
        if math.isnan(value) or math.isinf(value) or value == 0:
            return value
        return math.copysign(float(function(value)), value)

    return guarded


_floor = _whole(math.floor)


def _rounded(value: float, to: float = 1.0) -> float:
    inverse = divide(1.0, to)
    return divide(_floor(value * inverse + 0.5), inverse)


def _at_least(value: float, least: float) -> float:
    return NAN if math.isnan(value) or math.isnan(least) else max(value, least)


def _at_most(value: float, most: float) -> float:
    return NAN if math.isnan(value) or math.isnan(most) else min(value, most)


def _clamped(value: float, least: float, most: float) -> float | None:
    return None if most < least else _at_least(_at_most(value, most), least)


def _sign(value: float) -> float:
    if value > 0:
        return 1.0
    return -1.0 if value < 0 else value


def _atanh(value: float) -> float:
    if abs(value) == 1:
        return math.copysign(math.inf, value)
    return total_function(math.atanh)(value)


ELEMENT: dict[str, Callable[..., float | None]] = {
    "abs": abs,
    "ceil": _whole(math.ceil),
    "floor": _floor,
    "round": _rounded,
    "exp": total_function(math.exp),
    "sqrt": total_function(math.sqrt),
    "ln": logarithm(math.log),
    "log2": logarithm(math.log2),
    "log10": logarithm(math.log10),
    "sgn": _sign,
    "clamp": _clamped,
    "clamp_min": _at_least,
    "clamp_max": _at_most,
    "sin": total_function(math.sin),
    "cos": total_function(math.cos),
    "tan": total_function(math.tan),
    "asin": total_function(math.asin),
    "acos": total_function(math.acos),
    "atan": math.atan,
    "sinh": total_function(math.sinh),
    "cosh": total_function(math.cosh),
    "tanh": math.tanh,
    "asinh": math.asinh,
    "acosh": total_function(math.acosh),
    "atanh": _atanh,
    "deg": lambda value: value * 180 / math.pi,
    "rad": lambda value: value * math.pi / 180,
}


def _dated(read: Callable[[datetime], int]) -> Callable[[float], float]:
    def guarded(value: float) -> float:
        try:
            return float(read(_EPOCH + timedelta(seconds=math.trunc(value))))
        except (ValueError, OverflowError):
            return NAN

    return guarded


DATE: dict[str, Callable[[float], float]] = {
    "minute": _dated(lambda at: at.minute),
    "hour": _dated(lambda at: at.hour),
    "day_of_week": _dated(lambda at: at.isoweekday() % 7),
    "day_of_month": _dated(lambda at: at.day),
    "day_of_year": _dated(lambda at: at.timetuple().tm_yday),
    "days_in_month": _dated(lambda at: calendar.monthrange(at.year, at.month)[1]),
    "month": _dated(lambda at: at.month),
    "year": _dated(lambda at: at.year),
}


def is_label_name(name: str, *, legacy: bool) -> bool:
    return bool(_LEGACY_NAME.fullmatch(name)) if legacy else bool(name)


def replacer(target: str, template: str, source: str, pattern: str) -> Callable[[Labels], Labels]:
    """What `label_replace` does to a label set. Raises `ValueError` for a bad pattern."""
    compiled = compile_pattern(pattern)

    def replaced(labels: Labels) -> Labels:
        found = compiled.fullmatch(value_of(labels, source))
        if found is None:
            return labels
        return labels_of({**dict(labels), target: _expand(template, found)})

    return replaced


def _expand(template: str, found: Found) -> str:
    """Go's `Expand`: `$1`, `${1}`, `$name`; what does not exist is empty."""

    def value(reference: re.Match[str]) -> str:
        dollar, bare, braced = reference.groups()
        if dollar:
            return "$"
        name = bare or braced
        try:
            return found.group(int(name) if name.isdecimal() else name) or ""
        except (IndexError, OverflowError):
            return ""

    return _REFERENCE.sub(value, template)


def joiner(target: str, separator: str, sources: tuple[str, ...]) -> Callable[[Labels], Labels]:
    """What `label_join` does to a label set."""

    def joined(labels: Labels) -> Labels:
        value = separator.join(value_of(labels, source) for source in sources)
        return labels_of({**dict(labels), target: value})

    return joined


def decimal_text(value: float) -> str:
    """A number as Go's `FormatFloat(value, 'f', -1, 64)` writes it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return f"{Decimal(repr(value)):f}".removesuffix(".0")


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts numbers inside text by their size: `a2` before `a10`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
