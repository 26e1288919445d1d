"""How numbers and times are written and read, for every number and time."""

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.api.prometheus import figures
from sentinel.api.prometheus.form import MAX_MS, MIN_MS, to_ms, to_span

T = TypeVar("T")


@given(st.floats())
def test_a_value_loses_nothing(number: float) -> None:
    for written in (figures.value(number), figures.scalar(number), figures.scientific(number)):
        back = float(written)
        assert back == number or (math.isnan(back) and math.isnan(number))
        assert math.copysign(1, back) == math.copysign(1, number) or math.isnan(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_exponent_is_only_where_go_writes_one(number: float) -> None:
    written = figures.value(number)

    assert ("e" in written) == (number != 0 and not 1e-6 <= abs(number) < 1e21)
    assert "e" not in figures.scalar(number)
    assert not written.endswith((".0", "."))


@pytest.mark.parametrize(
    ("number", "written"),
    [(0.0, "0e+00"), (1.0, "1e+00"), (12.5, "1.25e+01"), (1e-7, "1e-07"), (-2e100, "-2e+100"),
     (math.inf, "+Inf"), (math.nan, "NaN")],
)  # fmt: skip
def test_the_values_of_alerts_have_an_exponent(number: float, written: str) -> None:
    assert figures.scientific(number) == written


@given(st.integers(-(10**13), 10**13))
def test_a_time_is_whole_milliseconds(at_ms: int) -> None:
    assert round(figures.seconds(at_ms) * 1000) == at_ms
    assert to_ms(repr(figures.seconds(at_ms))) == at_ms


@given(
    st.datetimes(timezones=st.just(UTC)),
    st.timedeltas(timedelta(hours=-23), timedelta(hours=23)),
)
def test_a_moment_is_read_in_every_zone(at: datetime, shift: timedelta) -> None:
    minutes = shift // timedelta(minutes=1)
    sign = "-" if minutes < 0 else "+"
    zone = f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    since = at.replace(microsecond=at.microsecond // 1000 * 1000) - datetime(1970, 1, 1, tzinfo=UTC)

    assert to_ms(f"{text}{zone}") == (since - timedelta(minutes=minutes)) // timedelta(
        milliseconds=1
    )


def read(call: Callable[[str], T], text: str) -> T | str:
    try:
        return call(text)
    except ValueError as error:
        return str(error)


@given(st.text(max_size=12))
def test_whatever_is_given_is_a_time_or_no_time(text: str) -> None:
    found = read(to_ms, text)

    assert "cannot parse" in found if isinstance(found, str) else MIN_MS <= found <= MAX_MS


@given(st.one_of(st.text(max_size=12), st.floats().map(repr)))
def test_whatever_is_given_is_a_span_or_no_span(text: str) -> None:
    found = read(to_span, text)

    assert isinstance(found, timedelta) or "cannot parse" in found


@pytest.mark.parametrize(
    ("text", "ms"),
    [("Inf", MAX_MS), ("+Inf", MAX_MS), ("-Inf", MIN_MS), ("1e300", MAX_MS), ("-1e300", MIN_MS),
     ("292277025-08-18T07:12:54.999999999Z", MAX_MS), ("-292273086-05-16T16:47:06Z", MIN_MS)],
)  # fmt: skip
def test_ever_has_an_end_and_a_beginning(text: str, ms: int) -> None:
    assert to_ms(text) == ms
