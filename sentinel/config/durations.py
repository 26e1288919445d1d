"""Durations as a type of settings: `500ms`, `30s`, `1h30m`, `0`.

A number without a unit is refused: whether `5` means seconds or minutes is nobody's guess.
"""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from sentinel.config.fault import quoted
from sentinel.config.section import wrong
from sentinel.core.alerting.duration import parse_duration, show_duration

_ALLOWED = "a duration such as 500ms, 30s, 5m, 1h30m, 7d"


def _read(value: object) -> object:
    if isinstance(value, timedelta):
        return value
    try:
        return parse_duration(str(value))
    except ValueError:
        raise wrong(f"{quoted(value)} is not a duration", allowed=f"{_ALLOWED}, or 0") from None


def _more_than_zero(span: timedelta) -> timedelta:
    if span <= timedelta():
        raise wrong("must be more than 0", allowed=_ALLOWED)
    return span


Duration = Annotated[
    timedelta, BeforeValidator(_read), PlainSerializer(show_duration, return_type=str)
]
Interval = Annotated[Duration, AfterValidator(_more_than_zero)]
"""A duration that is not 0."""
