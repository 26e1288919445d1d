"""The parameters of a request, read as Prometheus reads them.

They come in the address, in a POST's form, or both; of one name the form's counts first. What
cannot be read is refused in Prometheus's words: clients show them to people.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl

from starlette.requests import Request

from sentinel.api.body import receive
from sentinel.api.prometheus.envelope import ApiError, bad
from sentinel.core.alerting.duration import parse_duration

FORM = "application/x-www-form-urlencoded"
LARGEST = 1024 * 1024  # bytes of a form
MOST_FIELDS = 1000

# The first and the last instant that clients name when they mean "ever".
MIN_MS = -9_223_309_901_257_974_000
MAX_MS = 9_223_309_901_257_974_999
_BOUNDS = {
    "-292273086-05-16T16:47:06Z": MIN_MS,
    "292277025-08-18T07:12:54.999999999Z": MAX_MS,
}
_INT64 = 2**63 - 1
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?[iI]nf(inity)?|nan|NaN")
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)


class Form:
    def __init__(self, pairs: Sequence[tuple[str, str]], address: Mapping[str, str]) -> None:
        self._pairs = pairs
        self.address = address  # the parameters of the address alone

    def get(self, name: str) -> str:
        """The first value of this name; empty if there is none."""
        return next((value for key, value in self._pairs if key == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._pairs if key == name]

    def limit(self) -> int:
        """How many results at most; 0 is no limit."""
        given = self.get("limit")
        if not given:
            return 0
        limit = integer("limit", given)
        if limit < 0:
            raise bad("limit", "limit must be non-negative")
        return limit

    def time(self, name: str, default_ms: int) -> int:
        given = self.get(name)
        if not given:
            return default_ms
        try:
            return to_ms(given)
        except ValueError as error:
            raise bad(name, f"Invalid time value for '{name}': {error}") from None

    def needed_time(self, name: str) -> int:
        try:
            return to_ms(self.get(name))
        except ValueError as error:
            raise bad(name, error) from None

    def span(self, name: str) -> timedelta | None:
        """A duration in seconds or as `5m`; None if there is none."""
        given = self.get(name)
        return self.needed_span(name) if given else None

    def needed_span(self, name: str) -> timedelta:
        try:
            return to_span(self.get(name))
        except ValueError as error:
            raise bad(name, error) from None


async def read_form(request: Request) -> Form:
    try:
        address = parse_qsl(request.url.query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
        body: list[tuple[str, str]] = []
        if request.method == "POST" and request.headers.get("content-type", "").startswith(FORM):
            sent = (await receive(request, LARGEST)).decode("utf-8", "replace")
            body = parse_qsl(sent, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise ApiError("bad_data", f"error parsing form values: {error}") from None
    return Form([*body, *address], dict(reversed(address)))


def integer(name: str, given: str) -> int:
    if _INTEGER.fullmatch(given) is None:
        raise bad(name, f"strconv.Atoi: parsing {_quoted(given)}: invalid syntax")
    return int(given)


def to_ms(given: str) -> int:
    """Milliseconds since 1970, of seconds or RFC 3339. Raises `ValueError`."""
    if _NUMBER.fullmatch(given):
        at = float(given)
        if math.isnan(at):
            raise ValueError(f"cannot parse {_quoted(given)} to a valid timestamp")
        return round(min(max(at * 1000, MIN_MS), MAX_MS)) if math.isinf(at) else _whole(at)
    if given in _BOUNDS:
        return _BOUNDS[given]
    found = _RFC3339.fullmatch(given)
    try:
        if found is not None:
            second = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
            whole = (second - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
            return whole * 1000 + int(f"{found[2] or '0':0<3}"[:3])
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"cannot parse {_quoted(given)} to a valid timestamp")


def _whole(at: float) -> int:
    """Seconds to milliseconds, rounded, within what a time can be."""
    return max(MIN_MS, min(round(at * 1000), MAX_MS))


def to_span(given: str) -> timedelta:
    """Raises `ValueError`."""
    if _NUMBER.fullmatch(given):
        span = float(given)
        if math.isnan(span):
            raise ValueError(f"cannot parse {_quoted(given)} to a valid duration")
        if abs(span) * 1e9 > _INT64:
            raise ValueError(
                f"cannot parse {_quoted(given)} to a valid duration. It overflows int64"
            )
        return timedelta(seconds=span)
    try:
        return parse_duration(given)
    except ValueError:
        raise ValueError(f"cannot parse {_quoted(given)} to a valid duration") from None


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
