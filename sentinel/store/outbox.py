"""Messages owed to channels. A row is done when the channel took it, or never will.

Order is kept per channel: only the oldest message owed to a channel is ever offered, so a
retry must postpone it in place and never queue it again. `owe` is meant to stand in the
same transaction as the change it tells of.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sentinel.core.model.message import AlertFacts, DecisionFacts, Notice
from sentinel.core.model.moment import moment, stamp

LONGEST_WAIT = timedelta(hours=1)
"""No retry is set further ahead, so a later one means that the clock was set back."""

_OPEN = "sent_at IS NULL AND dropped_at IS NULL"
_HEADS = f"SELECT MIN(number) FROM outbox WHERE {_OPEN} GROUP BY channel"  # noqa: S608 - constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Owed:
    number: int
    channel: str
    incident: int | None
    notice: Notice | None  # None: what is stored cannot be read
    queued_at: datetime
    due_at: datetime
    attempts: int

    def is_due(self, now: datetime) -> bool:
        return self.attempts == 0 or not now < self.due_at <= now + LONGEST_WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """How far behind a channel is."""

    channel: str
    owed: int
    oldest_at: datetime
    attempts: int  # made for the oldest
    last_error: str


class Outbox:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def owe(self, channel: str, notice: Notice, incident: int | None, now: datetime) -> int:
        row = self._db.execute(
            "INSERT INTO outbox (channel, incident, kind, notice, queued_at, due_at)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING number",
            (channel, incident, notice.kind, notice_to_json(notice), stamp(now), stamp(now)),
        ).fetchone()
        return int(row["number"])

    def heads(self) -> Sequence[Owed]:
        """The oldest message owed to each channel, whether its time has come or not."""
        rows = self._db.execute(
            f"SELECT * FROM outbox WHERE number IN ({_HEADS}) ORDER BY number"  # noqa: S608
        )
        return [_owed(row) for row in rows]

    def due(self, now: datetime) -> Sequence[Owed]:
        """The heads whose time has come: at most one of each channel."""
        return [head for head in self.heads() if head.is_due(now)]

    def waiting(self, channel: str, most: int) -> Sequence[Owed]:
        """The first messages owed to a channel, the head among them."""
        rows = self._db.execute(
            f"SELECT * FROM outbox WHERE {_OPEN} AND channel = ? ORDER BY number LIMIT ?",  # noqa: S608
            (channel, most),
        )
        return [_owed(row) for row in rows]

    def sent(self, number: int, now: datetime) -> None:
        self._change("sent_at = ?, attempts = attempts + 1", number, (stamp(now),))

    def retry(self, number: int, due_at: datetime, error: str) -> None:
        self._change(
            "due_at = ?, attempts = attempts + 1, last_error = ?", number, (stamp(due_at), error)
        )

    def drop(self, number: int, now: datetime, error: str) -> None:
        self._change("dropped_at = ?, last_error = ?", number, (stamp(now), error))

    def get(self, number: int) -> Owed | None:
        """The message, if it is still owed."""
        row = self._db.execute(
            f"SELECT * FROM outbox WHERE {_OPEN} AND number = ?",  # noqa: S608
            (number,),
        ).fetchone()
        return _owed(row) if row else None

    def owed_count(self, channel: str) -> int:
        found = self._db.execute(
            f"SELECT COUNT(*) FROM outbox WHERE {_OPEN} AND channel = ?",  # noqa: S608
            (channel,),
        ).fetchone()
        return int(found[0])

    def backlogs(self) -> Sequence[Backlog]:
        rows = self._db.execute(
            "SELECT outbox.*, waiting.owed FROM outbox JOIN"  # noqa: S608 - constants
            f" (SELECT MIN(number) AS head, COUNT(*) AS owed FROM outbox WHERE {_OPEN}"
            " GROUP BY channel) AS waiting ON number = head ORDER BY channel"
        )
        return [
            Backlog(
                channel=row["channel"],
                owed=row["owed"],
                oldest_at=moment(row["queued_at"]),
                attempts=row["attempts"],
                last_error=row["last_error"],
            )
            for row in rows
        ]

    def hasten(self, now: datetime) -> None:
        """The clock was set back: what was to wait until a time that was never is due now."""
        self._db.execute(
            f"UPDATE outbox SET due_at = ? WHERE {_OPEN} AND due_at > ?",  # noqa: S608
            (stamp(now),) * 2,
        )

    def forget(self, before: datetime) -> None:
        """Drop what was done with before then. What is owed stays."""
        self._db.execute(
            "DELETE FROM outbox WHERE sent_at < ? OR dropped_at < ?", (stamp(before),) * 2
        )

    def _change(self, change: str, number: int, values: tuple[str, ...]) -> None:
        """A row is done once; an answer that comes late changes nothing."""
        self._db.execute(
            f"UPDATE outbox SET {change} WHERE number = ? AND {_OPEN}",  # noqa: S608 - constants
            (*values, number),
        )


def notice_to_json(notice: Notice) -> str:
    return json.dumps(asdict(notice))


def notice_from_json(text: str) -> Notice:
    """Raises `ValueError`, `TypeError` or `KeyError` if `text` is no notice."""
    told = json.loads(text)
    alerts = tuple(AlertFacts(**alert) for alert in told.pop("alerts"))
    decision = told.pop("decision")
    return Notice(
        **told, alerts=alerts, decision=None if decision is None else DecisionFacts(**decision)
    )


def _owed(row: sqlite3.Row) -> Owed:
    try:
        notice = notice_from_json(row["notice"])
    except (ValueError, TypeError, KeyError, AttributeError):
        notice = None
    return Owed(
        number=row["number"],
        channel=row["channel"],
        incident=row["incident"],
        notice=notice,
        queued_at=moment(row["queued_at"]),
        due_at=moment(row["due_at"]),
        attempts=row["attempts"],
    )
