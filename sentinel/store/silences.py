"""Silences on disk, so that what was kept quiet stays quiet over a restart."""

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from sentinel.core.dispatch.silence import Silence
from sentinel.core.model.labels import Matcher
from sentinel.core.model.moment import moment, stamp

KEPT = timedelta(hours=120)
"""How long one that has ended can still be seen, as in Alertmanager."""


class Silences:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def all(self) -> Sequence[Silence]:
        return [_silence(row) for row in self._db.execute("SELECT * FROM silence ORDER BY rowid")]

    def save(self, silence: Silence) -> None:
        matchers = [[one.name, one.op, one.value] for one in silence.matchers]
        self._db.execute(
            "INSERT INTO silence (id, matchers, starts_at, ends_at, updated_at, created_by,"
            " comment)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
            " matchers = excluded.matchers, starts_at = excluded.starts_at,"
            " ends_at = excluded.ends_at, updated_at = excluded.updated_at,"
            " created_by = excluded.created_by, comment = excluded.comment",
            (
                silence.id,
                json.dumps(matchers, ensure_ascii=False),
                stamp(silence.starts_at),
                stamp(silence.ends_at),
                stamp(silence.updated_at),
                silence.created_by,
                silence.comment,
            ),
        )

    def forget(self, before: datetime) -> None:
        """Drop those that had ended by then."""
        self._db.execute("DELETE FROM silence WHERE ends_at < ?", (stamp(before),))


def _silence(row: sqlite3.Row) -> Silence:
    return Silence(
        id=row["id"],
        matchers=tuple(Matcher(*one) for one in json.loads(row["matchers"])),
        starts_at=moment(row["starts_at"]),
        ends_at=moment(row["ends_at"]),
        updated_at=moment(row["updated_at"]),
        created_by=row["created_by"],
        comment=row["comment"],
    )
