"""What a posted alert becomes: what was left out is filled in, what is known is merged.

Whoever posts repeats themselves. An alert that goes on is one alert, however often it comes:
its earliest start and its latest end count.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.valid import is_label_name, quoted
from sentinel.core.model.command import PostedAlert
from sentinel.core.model.errors import Permanent

_NEVER = datetime.max.replace(tzinfo=UTC)


def receive(
    posted: PostedAlert, known: Alert | None, now: datetime, resolve_timeout: timedelta
) -> Alert:
    """The alert that now stands. Raises `Permanent` with the `status` of the answer."""
    alert = Alert(
        labels={name: value for name, value in posted.labels.items() if value},
        annotations=dict(posted.annotations),
        starts_at=posted.starts_at or posted.ends_at or now,
        ends_at=posted.ends_at or now + resolve_timeout,
        is_timeout=posted.ends_at is None,
        updated_at=now,
        generator_url=posted.generator_url,
        origin="posted",
    )
    _check(alert)
    if known is None:
        return alert
    met = merge(known, alert, now) if _overlap(known, alert) else alert
    goes_on = met.is_resolved(now) or not known.is_resolved(now)
    return replace(met, incident=known.incident) if goes_on else met


def merge(one: Alert, other: Alert, now: datetime) -> Alert:
    """Two reports of one alert as one: the younger one's words, the time of both."""
    old, young = (one, other) if one.updated_at <= other.updated_at else (other, one)
    ends_at = young.ends_at
    if _end(old) > _end(young) and (
        old.is_resolved(now) if young.is_resolved(now) else not old.is_timeout
    ):
        ends_at = old.ends_at
    return replace(young, starts_at=min(old.starts_at, young.starts_at), ends_at=ends_at)


def _overlap(known: Alert, alert: Alert) -> bool:
    return (known.starts_at < _end(alert) < _end(known)) or (
        known.starts_at < alert.starts_at < _end(known)
    )


def _end(alert: Alert) -> datetime:
    return alert.ends_at or _NEVER


def _check(alert: Alert) -> None:
    if _end(alert) < alert.starts_at:
        raise _wrong("start time must be before end time")
    if name := _wrong_name(alert.labels):
        raise _wrong(f"invalid label set: invalid name {quoted(name)}")
    if not alert.labels:
        raise _wrong("at least one label pair required")
    if name := _wrong_name(alert.annotations):
        raise _wrong(f"invalid annotations: invalid name {quoted(name)}")


def _wrong_name(labels: Mapping[str, str]) -> str | None:
    return next((name for name in labels if not is_label_name(name)), None)


def _wrong(message: str) -> Permanent:
    return Permanent(message, status=400)
