"""Incidents and their history, as they stand on disk."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from sentinel.core.model.incident import Incident, Subject
from sentinel.core.model.moment import moment, moment_or_none, stamp
from sentinel.core.model.record import Record


class Incidents:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def open_for(self, subject: Subject, severity: str, now: datetime) -> tuple[Incident, bool]:
        """The open incident of `subject`, opening one if there is none; and whether it is new."""
        opened = self._db.execute(
            "INSERT OR IGNORE INTO incident (subject_kind, subject_name, severity, opened_at)"
            " VALUES (?, ?, ?, ?)",
            (subject.kind, subject.name, severity, stamp(now)),
        ).rowcount
        found = self._select(
            "WHERE subject_kind = ? AND subject_name = ? AND resolved_at IS NULL",
            (subject.kind, subject.name),
        )
        return found[0], opened == 1

    def open(self) -> Sequence[Incident]:
        return self._select("WHERE resolved_at IS NULL ORDER BY number")

    def get(self, number: int) -> Incident | None:
        found = self._select("WHERE number = ?", (number,))
        return found[0] if found else None

    def hold_alerts(self, number: int, alertnames: Iterable[str]) -> None:
        self._db.executemany(
            "INSERT OR IGNORE INTO incident_alert (incident, alertname) VALUES (?, ?)",
            [(number, name) for name in alertnames],
        )

    def set_severity(self, number: int, severity: str) -> None:
        self._db.execute("UPDATE incident SET severity = ? WHERE number = ?", (severity, number))

    def set_quiet(self, number: int, since: datetime | None) -> None:
        self._db.execute(
            "UPDATE incident SET quiet_since = ? WHERE number = ?",
            (stamp(since) if since else None, number),
        )

    def diagnose(self, number: int, diagnosis: Mapping[str, object]) -> None:
        self._db.execute(
            "UPDATE incident SET diagnosis = ? WHERE number = ?",
            (json.dumps(diagnosis, ensure_ascii=False), number),
        )

    def set_changed(self, number: int, changed: Sequence[str]) -> None:
        """What was different when it opened, against the last launch that was healthy."""
        self._db.execute(
            "UPDATE incident SET changed = ? WHERE number = ?",
            (json.dumps(list(changed), ensure_ascii=False), number),
        )

    def call_person(self, number: int, now: datetime) -> bool:
        """A person is called once an incident; False if one already was."""
        return (
            self._db.execute(
                "UPDATE incident SET person_called_at = ?"
                " WHERE number = ? AND person_called_at IS NULL",
                (stamp(now), number),
            ).rowcount
            == 1
        )

    def acknowledge(self, number: int, by: str, now: datetime) -> bool:
        """False if there is no such open incident."""
        return (
            self._db.execute(
                "UPDATE incident SET acknowledged_at = ?, acknowledged_by = ?"
                " WHERE number = ? AND resolved_at IS NULL",
                (stamp(now), by, number),
            ).rowcount
            == 1
        )

    def resolve(self, number: int, now: datetime) -> None:
        self._db.execute(
            "UPDATE incident SET resolved_at = ? WHERE number = ?", (stamp(now), number)
        )

    def write(self, record: Record) -> int:
        """The number it has from now on."""
        row = self._db.execute(
            "INSERT INTO record (at, event, target, incident, because, by, facts)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING number",
            (
                stamp(record.at),
                record.event,
                record.target,
                record.incident,
                record.because,
                record.by,
                json.dumps(_said(record.facts), ensure_ascii=False, default=str),
            ),
        ).fetchone()
        return int(row["number"])

    def adopt(self, number: int, target: str, since: datetime) -> None:
        """What was recorded of `target` from `since` on belongs to the incident it led to."""
        self._db.execute(
            "UPDATE record SET incident = ? WHERE target = ? AND incident IS NULL AND at >= ?",
            (number, target, stamp(since)),
        )

    def forget(self, before: datetime) -> None:
        """Drop history older than its retention. What is open stays."""
        old = "(SELECT number FROM incident WHERE resolved_at < ?)"
        self._db.execute("DELETE FROM record WHERE at < ? AND incident IS NULL", (stamp(before),))
        self._db.execute(f"DELETE FROM record WHERE incident IN {old}", (stamp(before),))  # noqa: S608
        self._db.execute(f"DELETE FROM incident_alert WHERE incident IN {old}", (stamp(before),))  # noqa: S608

    def _select(self, clause: str, parameters: tuple[object, ...] = ()) -> list[Incident]:
        rows = self._db.execute(f"SELECT * FROM incident {clause}", parameters)  # noqa: S608
        return [_incident(row) for row in rows]


def _said(facts: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value is not None}


def _incident(row: sqlite3.Row) -> Incident:
    return Incident(
        number=row["number"],
        subject=Subject(kind=row["subject_kind"], name=row["subject_name"]),
        severity=row["severity"],
        opened_at=moment(row["opened_at"]),
        quiet_since=moment_or_none(row["quiet_since"]),
        resolved_at=moment_or_none(row["resolved_at"]),
        diagnosis=json.loads(row["diagnosis"]),
        acknowledged_by=row["acknowledged_by"],
        person_called_at=moment_or_none(row["person_called_at"]),
    )
