"""Functions of single numbers, and of label sets: the tables of what an element becomes.

`ELEMENT` maps a value (and scalar arguments) to a value; `DATE` reads a Unix time. Both are
total: what Go answers with NaN or infinity is NaN or infinity here, never an exception.
"""

import math
import re
from collections.abc import Callable
from decimal import Decimal

from sentinel.core.model.labels import Labels, labels_of, value_of
from sentinel.core.model.pattern import Found, compile_pattern
from sentinel.core.promql.arithmetic import NAN, divide, logarithm, total_function

_INT64 = 1 << 63
_GO_ZERO = 9223372028715321600  # how long before 1970 the time of Go's `time` begins, in seconds
_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
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
    """Go's `math.Max`: infinity before NaN, and a zero without a sign before one with."""
    if math.inf in (value, least):
        return math.inf
    if math.isnan(value) or math.isnan(least):
        return NAN
    return value + least if value == least == 0 else max(value, least)


def _at_most(value: float, most: float) -> float:
    return -_at_least(-value, -most)


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


def _instant(value: float) -> int:
    """Unix seconds as Go's `int64` and `time.Time` hold them: what is too large wraps around."""
    seconds = int(value) if -_INT64 <= value < _INT64 else -_INT64
    return (seconds + _GO_ZERO) % (1 << 64) - _GO_ZERO


def _date(seconds: int) -> tuple[int, int, int]:
    """Year, month and day in the Gregorian calendar, before 1970 and after 9999 too."""
    days = seconds // 86400 + 719468  # since the first of March of year 0
    era, day = divmod(days, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153  # from March
    day -= (153 * month + 2) // 5 - 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day


def _day_of_year(seconds: int) -> int:
    year, month, day = _date(seconds)
    leap = month > 2 and _is_leap(year)
    return _BEFORE_MONTH[month - 1] + day + leap


def _days_in_month(seconds: int) -> int:
    year, month, _ = _date(seconds)
    if month == 2:
        return 28 + _is_leap(year)
    return 30 if month in (4, 6, 9, 11) else 31


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _dated(read: Callable[[int], int]) -> Callable[[float], float]:
    return lambda value: float(read(_instant(value)))


DATE: dict[str, Callable[[float], float]] = {
    "minute": _dated(lambda at: at // 60 % 60),
    "hour": _dated(lambda at: at // 3600 % 24),
    "day_of_week": _dated(lambda at: (at // 86400 + 4) % 7),
    "day_of_month": _dated(lambda at: _date(at)[2]),
    "day_of_year": _dated(_day_of_year),
    "days_in_month": _dated(_days_in_month),
    "month": _dated(lambda at: _date(at)[1]),
    "year": _dated(lambda at: _date(at)[0]),
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
