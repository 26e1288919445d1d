"""Instants as text: RFC 3339, UTC, fixed width, so that text order is time order."""

from datetime import UTC, datetime


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def stamp_or_none(at: datetime | None) -> str | None:
    return None if at is None else stamp(at)


def moment(text: str) -> datetime:
    """Raises `ValueError` for what is no instant; a time without a zone is taken as UTC."""
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def moment_or_none(text: str | None) -> datetime | None:
    return None if text is None else moment(text)


def millis(at: datetime) -> int:
    """Milliseconds since 1970, the series store's unit of time."""
    return round(at.timestamp() * 1000)
