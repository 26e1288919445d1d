from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from sentinel.core.dispatch.interval import Interval, Minutes, Span, Times, contains

NIGHT = Times(minutes=(Minutes(0, 300), Minutes(1320, 1440)))
SHANGHAI = ZoneInfo("Asia/Shanghai")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("times", "inside", "outside"),
    [
        pytest.param(Times(), ["2026-01-01T00:00"], [], id="nothing said: always"),
        pytest.param(
            NIGHT,
            ["2026-01-01T00:00", "2026-01-01T04:59:59", "2026-01-01T22:00", "2026-01-01T23:59:59"],
            ["2026-01-01T05:00", "2026-01-01T21:59"],
            id="times end before their end",
        ),
        pytest.param(
            Times(weekdays=(Span(0, 0), Span(6, 6))),
            ["2026-01-03T12:00", "2026-01-04T12:00"],
            ["2026-01-02T12:00", "2026-01-05T12:00"],
            id="a week begins on Sunday",
        ),
        pytest.param(
            Times(days_of_month=(Span(-3, -1),)),
            ["2026-02-26T00:00", "2026-02-28T00:00", "2024-02-29T00:00", "2026-03-31T00:00"],
            ["2026-02-25T00:00", "2026-03-28T00:00"],
            id="days from the end",
        ),
        pytest.param(
            Times(days_of_month=(Span(30, 31),)),
            ["2026-01-31T00:00", "2026-04-30T00:00"],
            ["2026-02-28T00:00"],
            id="days that a month has not",
        ),
        pytest.param(
            Times(days_of_month=(Span(-31, -30),)),
            ["2026-01-01T00:00", "2026-01-02T00:00", "2026-04-01T00:00"],
            ["2026-02-01T00:00", "2026-04-02T00:00"],
            id="days before a month begins",
        ),
        pytest.param(
            Times(days_of_month=(Span(28, -1),)),
            ["2026-02-28T00:00", "2026-01-31T00:00"],
            ["2026-02-27T00:00"],
            id="from the beginning to the end",
        ),
        pytest.param(
            Times(months=(Span(1, 2), Span(12, 12)), years=(Span(2026, 2027),)),
            ["2026-01-01T00:00", "2027-12-31T23:59"],
            ["2026-03-01T00:00", "2028-01-01T00:00"],
            id="months and years together",
        ),
        pytest.param(
            Times(minutes=(Minutes(0, 60),), weekdays=(Span(1, 1),), zone=SHANGHAI),
            ["2026-01-04T16:30"],
            ["2026-01-05T00:30", "2026-01-04T17:00"],
            id="elsewhere it is another day",
        ),
    ],
)
def test_times_hold_when_all_that_they_say_holds(
    times: Times, inside: list[str], outside: list[str]
) -> None:
    assert [text for text in inside if not times.contains(at(text))] == []
    assert [text for text in outside if times.contains(at(text))] == []


def test_times_without_a_zone_are_the_hosts() -> None:
    here = datetime.fromisoformat("2026-06-01T12:30").astimezone()
    assert Times(minutes=(Minutes(750, 751),), zone=None).contains(here.astimezone(UTC))


def test_an_interval_holds_when_one_of_its_times_does() -> None:
    both = Interval((Times(years=(Span(1999, 1999),)), NIGHT))
    assert contains(both, at("2026-01-01T00:00"))
    assert not contains(both, at("2026-01-01T12:00"))
    assert not contains(Interval(), at("2026-01-01T00:00"))
