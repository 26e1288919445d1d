"""Cron expressions with named weekdays, and time zones.

Schedulers disagree about what day `1` is, Monday or Sunday, so a number there is refused
instead of being taken one way or the other.
"""

import calendar
import re
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BeforeValidator

from sentinel.config.fault import quoted
from sentinel.config.section import wrong

_ALLOWED = "minute hour day month weekday, such as 0 4 * * sun"
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTHS = tuple(name.lower() for name in calendar.month_abbr[1:])
_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12))
_LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_PART = re.compile(r"(?:(\*)|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")


def parse_cron(text: str) -> str:
    """Return the expression in lower case, months as numbers. Raises `ValueError`."""
    fields = text.lower().split()
    if len(fields) != len(_FIELDS) + 1:
        raise ValueError(f"{quoted(text)} has {len(fields)} fields, not 5")
    fields[3] = _numbered(fields[3])
    chosen = [
        _numbers(name, field, first, last)
        for (name, first, last), field in zip(_FIELDS, fields[:4], strict=True)
    ]
    _check_weekdays(fields[4])
    if fields[4] == "*" and not any(min(chosen[2]) <= _LONGEST_MONTH[m - 1] for m in chosen[3]):
        raise ValueError(f"{quoted(text)} names a day that never comes")
    return " ".join(fields)


def _numbered(months: str) -> str:
    return re.sub(
        r"[a-z]+",
        lambda m: str(_MONTHS.index(m[0]) + 1) if m[0] in _MONTHS else m[0],
        months,
    )


def _numbers(name: str, field: str, first: int, last: int) -> set[int]:
    chosen: set[int] = set()
    for part in field.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(f"{quoted(part)} is no {name}")
        start = first if found[1] else int(found[2])
        end = last if found[1] or (found[4] and not found[3]) else int(found[3] or found[2])
        step = int(found[4] or 1)
        if not (first <= start <= end <= last and step > 0):
            raise ValueError(f"{quoted(part)} is no {name} from {first} to {last}")
        chosen.update(range(start, end + 1, step))
    return chosen


def _check_weekdays(field: str) -> None:
    if field == "*":
        return
    if any(c.isdigit() for c in field):
        raise ValueError(
            f"weekday {quoted(field)} is a number, and schedulers disagree whether 1 is Monday; "
            "use names"
        )
    for part in field.split(","):
        days = part.split("-")
        if len(days) > 2 or any(day not in _WEEKDAYS for day in days):
            raise ValueError(f"{quoted(part)} is no weekday (mon … sun, or a range mon-fri)")
        if _WEEKDAYS.index(days[0]) > _WEEKDAYS.index(days[-1]):
            raise ValueError(f"{quoted(part)} runs backwards; the week begins with mon")


def _read_cron(value: object) -> object:
    try:
        return parse_cron(str(value))
    except ValueError as error:
        raise wrong(str(error), allowed=_ALLOWED) from None


def _read_zone(value: object) -> object:
    name = str(value)
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise wrong(
            f"{quoted(name)} is no time zone", allowed="an IANA name such as Asia/Shanghai or UTC"
        ) from None
    return name


def _read_location(value: object) -> object:
    return value if value == "Local" else _read_zone(value)


Cron = Annotated[str, BeforeValidator(_read_cron)]
TimeZone = Annotated[str, BeforeValidator(_read_zone)]
Location = Annotated[str, BeforeValidator(_read_location)]
"""A time zone, or `Local` for the host's."""
