"""Floating point as Go does it: no exceptions, and the summation Prometheus uses.

Results are meant to agree with Prometheus to the last bit, so the order of operations is
upstream's and must not be "simplified".
"""

import math
from collections.abc import Callable, Iterable

INF = math.inf
NAN = math.nan
_MIN_NORMAL = 2.2250738585072014e-308
_MAX = 1.7976931348623157e308


def kahan(value: float, total: float, carry: float) -> tuple[float, float]:
    """Add `value` to a compensated sum (Neumaier's variant)."""
    added = total + value
    if math.isinf(added):
        return added, 0.0
    if abs(total) >= abs(value):
        return added, carry + ((total - added) + value)
    return added, carry + ((value - added) + total)


def total_of(values: Iterable[float]) -> float:
    total = carry = 0.0
    for value in values:
        added = total + value
        if abs(total) >= abs(value):
            carry += (total - added) + value
        else:
            carry += (value - added) + total
        total = added
        if added in (INF, -INF):
            carry = 0.0
    return total if math.isinf(total) else total + carry


def mean_of(values: Iterable[float]) -> float:
    """The mean; a running one once the sum overflows."""
    total = carry = 0.0
    count = 0
    values = iter(values)
    for value in values:
        count += 1
        added, new_carry = kahan(value, total, carry)
        if count > 1 and math.isinf(added):
            mean, carry = total / (count - 1), carry / (count - 1)
            return _running_mean(value, values, mean, carry, count)
        total, carry = added, new_carry
    return total / count + carry / count


def _running_mean(
    value: float, rest: Iterable[float], mean: float, carry: float, count: int
) -> float:
    share = (count - 1) / count
    mean, carry = kahan(value / count, share * mean, share * carry)
    for later in rest:
        count += 1
        share = (count - 1) / count
        mean, carry = kahan(later / count, share * mean, share * carry)
    return mean + carry


def quantile_of(q: float, values: Iterable[float]) -> float:
    values = list(values)
    ordered = [value for value in values if math.isnan(value)]  # first, as upstream sorts
    ordered += sorted(value for value in values if not math.isnan(value))
    if not ordered or math.isnan(q):
        return NAN
    if q < 0:
        return -INF
    if q > 1:
        return INF
    rank = q * (len(ordered) - 1)
    floor = math.floor(rank)
    lower = max(0, floor)
    upper = min(len(ordered) - 1, lower + 1)
    weight = rank - floor
    return ordered[lower] * (1 - weight) + ordered[upper] * weight


def almost_equal(a: float, b: float, epsilon: float) -> bool:
    if a == b:
        return True
    size = abs(a) + abs(b)
    difference = abs(a - b)
    if a == 0 or b == 0 or size < _MIN_NORMAL:
        return difference < epsilon * _MIN_NORMAL
    return difference / min(size, _MAX) < epsilon


def divide(a: float, b: float) -> float:
    if b == 0:
        if a == 0 or math.isnan(a):
            return NAN
        return math.copysign(INF, a) * math.copysign(1.0, b)
    return a / b


def modulo(a: float, b: float) -> float:
    try:
        return math.fmod(a, b)
    except ValueError:
        return NAN


def power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b % 2 == 1
        return -INF if a < 0 and odd else INF
    except ValueError:
        # 0 to a negative power is infinite; a negative to a fraction is no real number.
        if a == 0:
            return math.copysign(INF, a) if b % 2 == 1 else INF
        return NAN


def total_function(function: Callable[[float], float]) -> Callable[[float], float]:
    """`function` for every float: NaN outside its domain, infinite past the largest."""

    def guarded(value: float) -> float:
        try:
            return function(value)
        except ValueError:
            return NAN
        except OverflowError:
            return -INF if value < 0 and function is math.sinh else INF

    return guarded


def logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def guarded(value: float) -> float:
        if value == 0:
            return -INF
        return NAN if value < 0 else function(value)

    return guarded
