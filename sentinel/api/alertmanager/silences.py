"""Silences: as clients post them, as they are filtered, and as they are shown."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sentinel.api.alertmanager.body import Fields, read_json
from sentinel.api.alertmanager.errors import MISSING, TOO_FEW, WRONG_KIND, ApiError, missing
from sentinel.api.snapshot import rfc3339
from sentinel.core.dispatch.silence import Silence
from sentinel.core.model.command import SetSilence
from sentinel.core.model.labels import Matcher, MatchOp

Json = dict[str, Any]

NEEDED = ("comment", "createdBy", "endsAt", "matchers", "startsAt")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}")
_OPS: dict[tuple[bool, bool], MatchOp] = {
    (True, False): "=",
    (False, False): "!=",
    (True, True): "=~",
    (False, True): "!~",
}  # (isEqual, isRegex)
_FLAGS = {op: flags for flags, op in _OPS.items()}


def read_id(given: str) -> str:
    """The id in a path. Raises `ApiError` if it is none."""
    if _UUID.fullmatch(given) is None:
        says = f'silenceID in path must be of type uuid: "{given}"'
        raise ApiError(422, says, code=WRONG_KIND)
    return given


def read_silence(body: bytes, now: datetime) -> "partial[SetSilence]":
    """The command but for who asks. Raises `ApiError`."""
    value = read_json("silence", body)
    given = Fields("silence", {} if value is None else value)
    for key in NEEDED:
        if not given.has(key):
            raise missing(key)
    matchers = _read_matchers(given.items("matchers"))
    starts, ends = given.time("startsAt") or now, given.time("endsAt")
    if ends is None or starts >= ends:
        raise ApiError(400, "Failed to create silence: start time must be before end time")
    if ends < now:
        raise ApiError(400, "Failed to create silence: end time can't be in the past")
    if all(matcher.matches("") for matcher in matchers):
        says = "silence invalid: at least one matcher must not match the empty string"
        raise ApiError(400, says)
    return partial(
        SetSilence,
        id=given.text("id") or None,
        matchers=matchers,
        starts_at=starts,
        ends_at=ends,
        created_by=given.text("createdBy"),
        comment=given.text("comment"),
    )


def _read_matchers(items: Sequence[object]) -> tuple[Matcher, ...]:
    if not items:
        says = "matchers in body should have at least 1 items"
        raise ApiError(422, says, code=TOO_FEW)
    return tuple(_read_matcher(index, item) for index, item in enumerate(items))


def _read_matcher(index: int, value: object) -> Matcher:
    given = Fields("silence", value)
    for key in ("isRegex", "name", "value"):
        if not given.has(key):
            raise ApiError(422, f"matchers.{index}.{key} in body is required", code=MISSING)
    says = f"silence invalid: invalid label matcher {index}"
    name = given.text("name")
    if not name:
        raise ApiError(400, f'{says}: invalid label name ""')
    is_equal = given.flag("isEqual", default=True)
    op = _OPS[is_equal, given.flag("isRegex", default=False)]
    try:
        return Matcher(name, op, given.text("value"))
    except ValueError as error:
        raise ApiError(400, f"{says}: {error}") from None


def chosen(silences: Iterable[Silence], wanted: Sequence[Matcher]) -> Iterator[Silence]:
    """Those that have each of the wanted matchers, to the letter."""
    return (silence for silence in silences if set(wanted) <= set(silence.matchers))


def in_order(silences: Iterable[Silence], now: datetime) -> list[Silence]:
    """What is in force first, and of it what ends first; what is over last, the latest first."""

    def rank(silence: Silence) -> tuple[int, float]:
        match silence.state(now):
            case "active":
                return 0, silence.ends_at.timestamp()
            case "pending":
                return 1, silence.starts_at.timestamp()
            case _:
                return 2, -silence.ends_at.timestamp()

    return sorted(silences, key=rank)


def shown(silence: Silence, now: datetime) -> Json:
    return {
        "id": silence.id,
        "status": {"state": silence.state(now)},
        "updatedAt": rfc3339(silence.updated_at),
        "comment": silence.comment,
        "createdBy": silence.created_by,
        "endsAt": rfc3339(silence.ends_at),
        "matchers": [_shown_matcher(matcher) for matcher in silence.matchers],
        "startsAt": rfc3339(silence.starts_at),
    }


def _shown_matcher(matcher: Matcher) -> Json:
    is_equal, is_regex = _FLAGS[matcher.op]
    return {
        "isEqual": is_equal,
        "isRegex": is_regex,
        "name": matcher.name,
        "value": matcher.value,
    }
