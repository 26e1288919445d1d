"""Functions of a range vector: one window of samples to one number, or to none.

Pure functions of `Window` (and, for some, scalar arguments). The order of operations is
Prometheus's, for equal last digits; `rate` keeps its rule that a counter is never
extrapolated below zero.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from sentinel.core.promql.arithmetic import NAN, kahan, mean_of, quantile_of, total_of
from sentinel.core.promql.errors import EvaluationError
from sentinel.core.promql.frame import Window

OverTime = Callable[..., float | None]

NEAR_EDGE = 1.1  # of the average spacing: close enough to reach the window's edge


def _gain(window: Window) -> float:
    """What a counter gained from the first sample to the last, over its resets."""
    vs = window.vs
    gained = vs[window.j - 1] - vs[window.i]
    for k in window.drops():
        gained += vs[k - 1]
    return gained


def extrapolated(*, counter: bool, per_second: bool, legacy: bool) -> OverTime:
    """rate, increase and delta. `legacy` is Prometheus 2's order of the two limits."""

    def evaluate(window: Window) -> float | None:
        i, last, ts = window.i, window.j - 1, window.ts
        if last <= i:
            return None
        first_at, last_at = ts[i + window.shift], ts[last + window.shift]
        value = _gain(window) if counter else window.vs[last] - window.vs[i]
        sampled = (last_at - first_at) / 1000
        average = sampled / (last - i)
        to_zero = math.inf
        if counter and value > 0 and window.vs[i] >= 0:
            to_zero = sampled * (window.vs[i] / value)
        to_start = _to_edge((first_at - window.lo) / 1000, average, to_zero, legacy=legacy)
        to_end = _to_edge((window.hi - last_at) / 1000, average, math.inf, legacy=legacy)
        factor = (sampled + to_start + to_end) / sampled
        if per_second:
            factor /= (window.hi - window.lo) / 1000
        return value * factor

    return evaluate


def _to_edge(gap: float, average: float, to_zero: float, *, legacy: bool) -> float:
    """How far to extrapolate over `gap`, the time between a sample and the window's edge."""
    if legacy and to_zero < gap:
        gap = to_zero
    if gap >= average * NEAR_EDGE:
        gap = average / 2
    return gap if legacy or gap <= to_zero else to_zero


def _instant_rate(window: Window) -> float | None:
    last = window.j - 1
    if last <= window.i:
        return None
    value, before = window.vs[last], window.vs[last - 1]
    span = window.ts[last + window.shift] - window.ts[last - 1 + window.shift]
    if span == 0:
        return None
    return (value if value < before else value - before) / (span / 1000)


def _instant_delta(window: Window) -> float | None:
    last = window.j - 1
    if last <= window.i:
        return None
    return window.vs[last] - window.vs[last - 1]


def _greatest(window: Window) -> float:
    values = window.values()
    greatest = values[0]
    for value in values:
        if value > greatest or math.isnan(greatest):
            greatest = value
    return greatest


def _least(window: Window) -> float:
    values = window.values()
    least = values[0]
    for value in values:
        if value < least or math.isnan(least):
            least = value
    return least


def _variance(window: Window) -> float:
    count = 0
    mean = mean_carry = squares = squares_carry = 0.0
    for value in window.values():
        count += 1
        delta = value - (mean + mean_carry)
        mean, mean_carry = kahan(delta / count, mean, mean_carry)
        squares, squares_carry = kahan(
            delta * (value - (mean + mean_carry)), squares, squares_carry
        )
    return (squares + squares_carry) / count


def _deviation(window: Window) -> float:
    variance = _variance(window)
    return math.sqrt(variance) if variance >= 0 else NAN


def _changes(window: Window) -> float:
    return float(
        sum(
            value != before and not (math.isnan(value) and math.isnan(before))
            for before, value in pairwise(window.values())
        )
    )


def _mad(window: Window) -> float:
    values = window.values()
    median = quantile_of(0.5, values)
    return quantile_of(0.5, [abs(value - median) for value in values])


def regression(
    times: Sequence[int], values: Sequence[float], intercept_ms: int
) -> tuple[float, float]:
    """Slope per second, and the value at `intercept_ms`, of the least-squares line."""
    if all(value == values[0] for value in values):
        return (NAN, NAN) if math.isinf(values[0]) else (0.0, values[0])
    n = len(values)
    xs = [(at - intercept_ms) / 1e3 for at in times]
    x = total_of(xs)
    y = total_of(values)
    xy = total_of([a * b for a, b in zip(xs, values, strict=True)])
    xx = total_of([a * a for a in xs])
    covariance = xy - x * y / n
    variance = xx - x * x / n
    slope = covariance / variance if variance else NAN
    return slope, y / n - slope * x / n


def _slope(window: Window) -> float | None:
    if window.j - window.i < 2:
        return None
    times = window.times()
    return regression(times, window.values(), times[0])[0]


def _predict(window: Window, ahead: float) -> float | None:
    if window.j - window.i < 2:
        return None
    slope, now = regression(window.times(), window.values(), window.at)
    return slope * ahead + now


def _smoothed(window: Window, smoothing: float, trend: float) -> float | None:
    for name, factor in (("smoothing", smoothing), ("trend", trend)):
        if not 0 < factor < 1:
            raise EvaluationError(f"invalid {name} factor: expected 0 < factor < 1, got {factor}")
    values = window.values()
    if len(values) < 2:
        return None
    before, smooth, slope = 0.0, values[0], values[1] - values[0]
    for i in range(1, len(values)):
        if i > 1:
            slope = trend * (smooth - before) + (1 - trend) * slope
        before, smooth = smooth, smoothing * values[i] + (1 - smoothing) * (smooth + slope)
    return smooth


def _at_of(pick: Callable[[Sequence[float]], int]) -> OverTime:
    """The time, in seconds, of the sample that `pick` chooses."""
    return lambda window: window.times()[pick(window.values())] / 1000


def _best(better: Callable[[float, float], bool]) -> Callable[[Sequence[float]], int]:
    def pick(values: Sequence[float]) -> int:
        best = 0
        for place, value in enumerate(values):
            if better(value, values[best]) or math.isnan(values[best]):
                best = place
        return best

    return pick


KEEP_NAME = frozenset({"last_over_time", "first_over_time"})

OVER_TIME: dict[str, OverTime] = {
    "irate": _instant_rate,
    "idelta": _instant_delta,
    "avg_over_time": lambda window: mean_of(window.values()),
    "min_over_time": _least,
    "max_over_time": _greatest,
    "sum_over_time": lambda window: total_of(window.values()),
    "count_over_time": lambda window: float(window.j - window.i),
    "quantile_over_time": lambda window, q: quantile_of(q, window.values()),
    "stddev_over_time": _deviation,
    "stdvar_over_time": _variance,
    "last_over_time": lambda window: window.vs[window.j - 1],
    "first_over_time": lambda window: window.vs[window.i],
    "present_over_time": lambda _: 1.0,
    "mad_over_time": _mad,
    "changes": _changes,
    "resets": lambda window: float(len(window.drops())),
    "deriv": _slope,
    "predict_linear": _predict,
    "double_exponential_smoothing": _smoothed,
    "holt_winters": _smoothed,  # its name in Prometheus 2
    "ts_of_max_over_time": _at_of(_best(lambda a, b: a >= b)),
    "ts_of_min_over_time": _at_of(_best(lambda a, b: a <= b)),
    "ts_of_last_over_time": _at_of(lambda values: len(values) - 1),
    "ts_of_first_over_time": _at_of(lambda _: 0),
}


def over_time(name: str, *, legacy: bool) -> OverTime | None:
    """The function of this name, or None."""
    if name in ("rate", "increase", "delta"):
        return extrapolated(counter=name != "delta", per_second=name == "rate", legacy=legacy)
    return OVER_TIME.get(name)
