"""Numbers and times as Prometheus writes them in JSON; clients compare them as text.

A value is in full, with an exponent only below a millionth and from 1e21 on, and never loses
a digit: both Go and Python write the fewest digits that tell a float apart.
"""

import math
from datetime import UTC, datetime
from decimal import Decimal

NEVER = "0001-01-01T00:00:00Z"


def value(number: float) -> str:
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else ("+Inf" if number > 0 else "-Inf")
    text = repr(number)
    if "e" not in text:
        return text.removesuffix(".0")
    if number and not 1e-6 <= abs(number) < 1e21:
        return text
    return format(Decimal(text), "f")


def scalar(number: float) -> str:
    """A result that is a lone number, which Prometheus writes without any exponent."""
    text = value(number)
    return format(Decimal(text), "f") if "e" in text else text


def scientific(number: float) -> str:
    """As the values of alerts are written: `1e+00`."""
    if not math.isfinite(number):
        return value(number)
    sign, digits, shift = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(shift, int)
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    exponent = 0 if number == 0 else len(digits) - 1 + shift
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{exponent:+03d}"


def seconds(at_ms: int) -> int | float:
    return at_ms / 1000 if at_ms % 1000 else at_ms // 1000


def instant(at: datetime | None) -> str:
    if at is None:
        return NEVER
    text = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return f"{text}Z"
