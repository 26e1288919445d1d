"""Named times: when a route is kept quiet, or may speak at all.

Ends of times of day are exclusive, ends of everything else inclusive, as in Alertmanager.
"""

import calendar
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple


class Span(NamedTuple):
    """From `first` to `last`, both included."""

    first: int
    last: int

    def holds(self, number: int) -> bool:
        return self.first <= number <= self.last


class Minutes(NamedTuple):
    """Minutes of the day from `start` until before `end`."""

    start: int
    end: int

    def holds(self, minute: int) -> bool:
        return self.start <= minute < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """All of these must hold; of each, one. What is empty holds always."""

    minutes: tuple[Minutes, ...] = ()
    weekdays: tuple[Span, ...] = ()  # Sunday is 0
    days_of_month: tuple[Span, ...] = ()  # negative ones count from the end
    months: tuple[Span, ...] = ()
    years: tuple[Span, ...] = ()
    zone: tzinfo | None = UTC  # None: the host's

    def contains(self, at: datetime) -> bool:
        here = at.astimezone(self.zone)
        return (
            _one_holds(self.minutes, here.hour * 60 + here.minute)
            and (not self.days_of_month or any(_has_day(s, here) for s in self.days_of_month))
            and _one_holds(self.months, here.month)
            and _one_holds(self.weekdays, here.isoweekday() % 7)
            and _one_holds(self.years, here.year)
        )


@dataclass(frozen=True, slots=True)
class Interval:
    """Holds whenever one of its times does."""

    times: tuple[Times, ...] = ()


def contains(interval: Interval, at: datetime) -> bool:
    return any(times.contains(at) for times in interval.times)


def _one_holds(spans: tuple[Span, ...] | tuple[Minutes, ...], number: int) -> bool:
    return not spans or any(span.holds(number) for span in spans)


def _has_day(span: Span, at: datetime) -> bool:
    length = calendar.monthrange(at.year, at.month)[1]
    first, last = (day if day > 0 else length + 1 + day for day in span)
    return first <= at.day <= last
