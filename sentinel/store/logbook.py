"""How far each log was read, and each time memory ran out."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.model.moment import moment, stamp


@dataclass(frozen=True, slots=True)
class Position:
    """The last line taken: when it was written, and how many of that very time were taken."""

    stamp: str  # as the container engine writes it
    taken: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Oom:
    target: str
    launched_at: datetime
    kind: str  # host | cgroup | cuda_startup | cuda_runtime
    at: datetime
    because: str


class Logbook:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def position(self, container_id: str) -> Position | None:
        row = self._db.execute(
            "SELECT stamp, taken FROM log_position WHERE container_id = ?", (container_id,)
        ).fetchone()
        return Position(row["stamp"], row["taken"]) if row else None

    def reached(self, container_id: str, position: Position) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO log_position (container_id, stamp, taken) VALUES (?, ?, ?)",
            (container_id, position.stamp, position.taken),
        )

    def enter(self, oom: Oom) -> None:
        self._db.execute(
            "INSERT INTO oom (target, launched_at, kind, at, because) VALUES (?, ?, ?, ?, ?)",
            (oom.target, stamp(oom.launched_at), oom.kind, stamp(oom.at), oom.because),
        )

    def correct(self, oom: Oom, kind: str, because: str) -> None:
        """Who knows better has spoken."""
        self._db.execute(
            "UPDATE oom SET kind = ?, because = ? WHERE target = ? AND at = ? AND kind = ?",
            (kind, because, oom.target, stamp(oom.at), oom.kind),
        )

    def ooms(self, target: str, since: datetime) -> Sequence[Oom]:
        rows = self._db.execute(
            "SELECT * FROM oom WHERE target = ? AND at >= ? ORDER BY at", (target, stamp(since))
        )
        return [
            Oom(
                target=target,
                launched_at=moment(row["launched_at"]),
                kind=row["kind"],
                at=moment(row["at"]),
                because=row["because"],
            )
            for row in rows
        ]

    def forget(self, before: datetime) -> None:
        self._db.execute("DELETE FROM oom WHERE at < ?", (stamp(before),))
        self._db.execute(
            "DELETE FROM log_position WHERE container_id NOT IN (SELECT container_id FROM launch)"
        )
