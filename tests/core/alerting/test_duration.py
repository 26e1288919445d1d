from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.alerting.duration import parse_duration, show_duration


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
        ("90s", timedelta(seconds=90)),
        ("1h30m", timedelta(minutes=90)),
        ("1d12h", timedelta(hours=36)),
        ("1y1w1d1h1m1s1ms", timedelta(days=373, hours=1, minutes=1, seconds=1, milliseconds=1)),
    ],
)
def test_it_reads_what_prometheus_reads(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize(
    "text", ["", "5", "1.5h", "5min", "-1m", "1m1h", "1m1m", " 1m", "1 m", "1M", "99999999y"]
)
def test_it_refuses_what_prometheus_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration"):
        parse_duration(text)


@given(st.integers(0, 10**12))
def test_what_is_shown_reads_back(milliseconds: int) -> None:
    span = timedelta(milliseconds=milliseconds)

    assert parse_duration(show_duration(span)) == span
