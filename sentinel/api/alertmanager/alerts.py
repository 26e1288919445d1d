"""Alerts and their groups: which are asked for, and how they are shown.

Filters look at what routes and silences look at, so that `incident="i-000007"` works; the
labels shown are those that are told.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from starlette.datastructures import QueryParams

from sentinel.api.alertmanager.errors import ApiError
from sentinel.api.snapshot import rfc3339
from sentinel.config.matchers import parse_matcher
from sentinel.core.dispatch.board import Board, Standing
from sentinel.core.model.labels import Matcher
from sentinel.core.model.pattern import compile_pattern

Json = dict[str, Any]

ENDS_IN = timedelta(minutes=4)
"""An alert without an end is shown with the end that a Prometheus would keep pushing ahead."""

_YES = frozenset({"1", "true", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled"})


def read_matchers(asked: QueryParams) -> tuple[Matcher, ...]:
    """`filter`, as often as it is given. Raises `ApiError`."""
    try:
        return tuple(parse_matcher(text) for text in asked.getlist("filter"))
    except ValueError as error:
        raise ApiError(400, f"bad matcher format: {error}") from None


@dataclass(frozen=True, slots=True)
class Wanted:
    matchers: Sequence[Matcher]
    is_receiver: Callable[[str], bool]
    active: bool
    silenced: bool
    inhibited: bool
    muted: bool

    def alert(self, standing: Standing) -> bool:
        if not (self.active or standing.is_suppressed):
            return False
        if not (self.silenced or not standing.silenced_by):
            return False
        if not (self.inhibited or not standing.inhibited_by):
            return False
        labels = standing.alert.matched
        return all(matcher.matches(labels.get(matcher.name, "")) for matcher in self.matchers)


def read_wanted(asked: QueryParams) -> Wanted:
    """Raises `ApiError`."""
    return Wanted(
        matchers=read_matchers(asked),
        is_receiver=_receiver(asked.get("receiver")),
        active=_flag(asked, "active"),
        silenced=_flag(asked, "silenced"),
        inhibited=_flag(asked, "inhibited"),
        muted=_flag(asked, "muted"),
    )


def _receiver(given: str | None) -> Callable[[str], bool]:
    if given is None:
        return lambda _: True
    try:
        pattern = compile_pattern(given)
    except ValueError as error:
        raise ApiError(400, f"failed to parse receiver param: {error}") from None
    return lambda name: pattern.fullmatch(name) is not None


def _flag(asked: QueryParams, name: str) -> bool:
    given = asked.get(name)
    return not given or given.lower() in _YES


def alerts(board: Board, wanted: Wanted) -> list[Json]:
    found = [
        standing
        for standing in board.alerts
        if wanted.alert(standing) and any(map(wanted.is_receiver, standing.receivers))
    ]
    found.sort(key=lambda standing: standing.alert.fingerprint)
    return [_shown(standing, board) for standing in found]


def groups(board: Board, wanted: Wanted) -> list[Json]:
    return sorted(
        _groups(board, wanted),
        key=lambda group: (sorted(group["labels"].items()), group["receiver"]["name"]),
    )


def _groups(board: Board, wanted: Wanted) -> Iterator[Json]:
    for group in board.groups:
        if not wanted.is_receiver(group.receiver) or (group.muted_by and not wanted.muted):
            continue
        if found := [standing for standing in group.alerts if wanted.alert(standing)]:
            yield {
                "alerts": [_shown(standing, board, group.muted_by) for standing in found],
                "labels": dict(group.labels),
                "receiver": {"name": group.receiver},
            }


def _shown(standing: Standing, board: Board, muted_by: Sequence[str] = ()) -> Json:
    alert = standing.alert
    is_quiet = standing.is_suppressed or bool(muted_by)
    return {
        "annotations": dict(alert.annotations),
        "endsAt": rfc3339(alert.ends_at or board.at + ENDS_IN),
        "fingerprint": alert.fingerprint,
        "receivers": [{"name": name} for name in standing.receivers],
        "startsAt": rfc3339(alert.starts_at),
        "status": {
            "inhibitedBy": list(standing.inhibited_by),
            "mutedBy": list(muted_by),
            "silencedBy": list(standing.silenced_by),
            "state": "suppressed" if is_quiet else "active",
        },
        "updatedAt": rfc3339(alert.updated_at),
        **({"generatorURL": alert.generator_url} if alert.generator_url else {}),
        "labels": dict(alert.labels),
        "sentinel": {"incident": alert.incident},
    }
