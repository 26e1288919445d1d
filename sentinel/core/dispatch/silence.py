"""Silences: who is not to be told of what, until when, by whom and why.

A silence that has begun is history: what would change whom it silenced, or since when, makes
a new one and ends the old.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from sentinel.core.dispatch.valid import is_label_name, quoted
from sentinel.core.model.command import SetSilence
from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import Matcher

SilenceState = Literal["pending", "active", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    id: str  # a UUID
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    updated_at: datetime
    created_by: str
    comment: str

    def state(self, at: datetime) -> SilenceState:
        if at < self.starts_at:
            return "pending"
        return "active" if at < self.ends_at else "expired"

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(matcher.matches(labels.get(matcher.name, "")) for matcher in self.matchers)


def can_update(known: Silence, wanted: Silence, now: datetime) -> bool:
    """Whether the silence stays the same one when it is changed into `wanted`."""
    if known.matchers != wanted.matchers:
        return False
    match known.state(now):
        case "active":
            same_start = int(known.starts_at.timestamp()) == int(wanted.starts_at.timestamp())
            return same_start and wanted.ends_at >= now
        case "pending":
            return wanted.starts_at >= now
        case "expired":
            return False


def set_silence(
    known: Mapping[str, Silence], wanted: SetSilence, now: datetime, new_id: Callable[[], str]
) -> tuple[Silence, ...]:
    """What changes when `wanted` is asked for; the last one is what it became.

    Raises `Permanent` with the `status` of the answer.
    """
    _check_times(wanted, now)
    before = known.get(wanted.id) if wanted.id else None
    if wanted.id and before is None:
        raise _not_found(404)
    _check_matchers(wanted.matchers)
    made = _made(wanted, now)
    if before is not None and can_update(before, made, now):
        return (made,)
    made = replace(made, id=new_id(), starts_at=max(made.starts_at, now))
    if before is None or before.state(now) == "expired":
        return (made,)
    return (_ended(before, now), made)


def expire(known: Mapping[str, Silence], silence_id: str, now: datetime) -> tuple[Silence, ...]:
    """What changes when a silence is ended; nothing if it has ended. Raises `Permanent`."""
    silence = known.get(silence_id)
    if silence is None:
        raise _not_found(500)  # as Alertmanager answers; 404 is for asking and changing
    return () if silence.state(now) == "expired" else (_ended(silence, now),)


def _made(wanted: SetSilence, now: datetime) -> Silence:
    return Silence(
        id=wanted.id or "",
        matchers=wanted.matchers,
        starts_at=wanted.starts_at,
        ends_at=wanted.ends_at,
        updated_at=now,
        created_by=wanted.created_by,
        comment=wanted.comment,
    )


def _ended(silence: Silence, now: datetime) -> Silence:
    return replace(silence, starts_at=min(silence.starts_at, now), ends_at=now, updated_at=now)


def _check_times(wanted: SetSilence, now: datetime) -> None:
    if wanted.starts_at >= wanted.ends_at:
        raise _wrong("Failed to create silence: start time must be before end time")
    if wanted.ends_at < now:
        raise _wrong("Failed to create silence: end time can't be in the past")


def _check_matchers(matchers: tuple[Matcher, ...]) -> None:
    if not matchers:
        raise _wrong("silence invalid: at least one matcher required")
    for number, matcher in enumerate(matchers):
        if not is_label_name(matcher.name):
            name = quoted(matcher.name)
            raise _wrong(
                f"silence invalid: invalid label matcher {number}: invalid label name {name}"
            )
    if all(one.op in ("=", "=~") and one.matches("") for one in matchers):
        raise _wrong("silence invalid: at least one matcher must not match the empty string")


def _wrong(message: str) -> Permanent:
    return Permanent(message, status=400)


def _not_found(status: int) -> Permanent:
    return Permanent("silence not found", status=status)
