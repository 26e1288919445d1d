"""Named times of the week and the year, in Alertmanager's syntax.

Values are ready numbers: minutes of the day, Sunday is 0, days of the month may count from
its end. Times are UTC unless `location` says otherwise, as in Alertmanager; ends of times
are exclusive, ends of all other ranges inclusive.
"""

import calendar
import re
from typing import Annotated, Any, NamedTuple, Self

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from sentinel.config.cron import Location
from sentinel.config.fault import quoted
from sentinel.config.quantities import Name
from sentinel.config.section import Section, wrong

_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = tuple(name.lower() for name in calendar.month_name[1:])
_TIME = re.compile(r"(?:([01][0-9]|2[0-3]):([0-5][0-9])|24:00)")


class Span(NamedTuple):
    """From `first` to `last`, both included."""

    first: int
    last: int


def _read_minutes(value: object) -> object:
    if isinstance(value, int):
        return value
    found = _TIME.fullmatch(str(value))
    if found is None:
        raise wrong(f"{quoted(value)} is no time of day", allowed="HH:MM from 00:00 to 24:00")
    return int(found[1]) * 60 + int(found[2]) if found[1] else 24 * 60


def _show_minutes(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _ends(value: object) -> tuple[str, str]:
    first, colon, last = str(value).strip().lower().partition(":")
    return first.strip(), last.strip() if colon else first.strip()


def _named(names: tuple[str, ...], first_number: int, *, digits: bool, allowed: str) -> Any:
    def number(text: str) -> int | None:
        if text in names:
            return names.index(text) + first_number
        numbers = range(first_number, first_number + len(names))
        return int(text) if digits and text.isdecimal() and int(text) in numbers else None

    def read(value: object) -> object:
        if isinstance(value, Span):
            return value
        first, last = (number(text) for text in _ends(value))
        if first is None or last is None or first > last:
            says = "runs backwards" if first is not None and last is not None else "is not known"
            raise wrong(f"{quoted(value)} {says}", allowed=allowed)
        return Span(first, last)

    return BeforeValidator(read)


def _read_days_of_month(value: object) -> object:
    if isinstance(value, Span):
        return value
    allowed = "a day 1 to 31, -31 to -1 from the month's end, or a range such as 1:5 or -3:-1"
    first, last = (_day(text) for text in _ends(value))
    if first is None or last is None:
        raise wrong(f"{quoted(value)} is no day of the month", allowed=allowed)
    if (first < 0 < last) or ((first < 0) == (last < 0) and first > last):
        raise wrong(f"{quoted(value)} runs backwards", allowed=allowed)
    if first > 0 > last and first > 32 + last:
        raise wrong(f"{quoted(value)} never comes", allowed=allowed)
    return Span(first, last)


def _day(text: str) -> int | None:
    if not re.fullmatch(r"-?[0-9]{1,2}", text):
        return None
    return int(text) if 1 <= abs(int(text)) <= 31 else None


def _read_years(value: object) -> object:
    if isinstance(value, Span):
        return value
    first, last = _ends(value)
    if not re.fullmatch("[0-9]{4}", first) or not re.fullmatch("[0-9]{4}", last) or first > last:
        raise wrong(f"{quoted(value)} is no year", allowed="a year or a range such as 2030:2031")
    return Span(int(first), int(last))


def _shown(names: tuple[str, ...] = (), first_number: int = 0) -> PlainSerializer:
    def show(span: Span) -> str:
        ends = [names[n - first_number] if names else str(n) for n in span]
        return ends[0] if span.first == span.last else ":".join(ends)

    return PlainSerializer(show, return_type=str)


MinuteOfDay = Annotated[
    int, BeforeValidator(_read_minutes), PlainSerializer(_show_minutes, return_type=str)
]
Weekdays = Annotated[
    Span, _named(_DAYS, 0, digits=False, allowed="sunday … saturday, or monday:friday"),
    _shown(_DAYS),
]  # fmt: skip
DaysOfMonth = Annotated[Span, BeforeValidator(_read_days_of_month), _shown()]
Months = Annotated[
    Span, _named(_MONTHS, 1, digits=True, allowed="1 to 12, january … december, or 1:3"),
    _shown(_MONTHS, 1),
]  # fmt: skip
Years = Annotated[Span, BeforeValidator(_read_years), _shown()]


class TimesOfDay(Section):
    start_time: MinuteOfDay = Field(examples=["01:00"])
    """First minute, `HH:MM`."""

    end_time: MinuteOfDay = Field(examples=["05:00"])
    """First minute that is no longer meant, `HH:MM`; `24:00` is the end of the day."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.start_time >= self.end_time:
            raise wrong(
                "start_time is not before end_time",
                allowed="two ranges for a night: one to 24:00 and one from 00:00",
                at=("start_time",),
            )
        return self


class IntervalSpec(Section):
    """Within each list one must hold; all lists that are given must hold."""

    times: tuple[TimesOfDay, ...] = ()
    """Times of the day. Default: all day."""

    weekdays: tuple[Weekdays, ...] = Field(default=(), examples=[["saturday:saturday"]])
    """Names of days, or ranges such as `monday:friday`; a week begins on Sunday."""

    days_of_month: tuple[DaysOfMonth, ...] = Field(default=(), examples=[["1:5", "-3:-1"]])
    """Days, or ranges such as `1:5`; negative ones count from the month's end."""

    months: tuple[Months, ...] = Field(default=(), examples=[["1:3", "december"]])
    """Months by number or name, or ranges such as `january:march`."""

    years: tuple[Years, ...] = Field(default=(), examples=[["2030:2031"]])
    """Years, or ranges such as `2030:2031`."""

    location: Location = "UTC"
    """Time zone the times are in: an IANA name, or `Local` for the host's."""


class TimeInterval(Section):
    name: Name = Field(examples=["nights"])
    """What routes and maintenance call it."""

    time_intervals: tuple[IntervalSpec, ...] = ()
    """The interval holds whenever one of these does."""
