"""Incidents and intents as the JSON that people and programs outside read.

Read-only, and the only place that knows these shapes: the CLI, the API, the page and the
webhook all show what is built here.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from sentinel.core.model.incident import incident_id, incident_number
from sentinel.store.scorecard import scorecard_json


def incident_json(
    db: sqlite3.Connection, number: int, *, evidence_dir: Path | None = None
) -> dict[str, Any] | None:
    row = db.execute("SELECT * FROM incident WHERE number = ?", (number,)).fetchone()
    return None if row is None else _incident(db, row, evidence_dir)


def intent_json(row: sqlite3.Row) -> dict[str, Any]:
    settings = json.loads(row["settings"])
    return {
        "id": f"n-{row['number']:06d}",
        "action": row["action"],
        "target": row["target"],
        "mode": row["mode"],
        "state": row["state"],
        "because": row["because"],
        "proposed_at": row["proposed_at"],
        "expires_at": row["expires_at"],
        "reserved_at": row["reserved_at"],
        "closed_at": row["closed_at"],
        "outcome": row["outcome"],
        "outcome_because": row["closed_because"],
        "by": row["by"],
        "cause": row["cause"] or None,
        "limit": settings.get("limit"),
        "forced": settings.get("forced", []),
        "diff": json.loads(row["diff"]),
        "incident": None if row["incident"] is None else incident_id(row["incident"]),
    }


class Reader:
    """Reads a state file beside the daemon that writes it. One short connection a question."""

    def __init__(self, path: Path, evidence_dir: Path | None = None) -> None:
        self._path, self._evidence_dir = path, evidence_dir

    def incidents(self, limit: int = 100, status: str | None = None) -> list[dict[str, Any]]:
        """Newest first, without their timelines."""
        where = {"open": "WHERE resolved_at IS NULL", "resolved": "WHERE resolved_at IS NOT NULL"}
        with closing(self._open()) as db:
            rows = db.execute(
                f"SELECT * FROM incident {where.get(status or '', '')}"  # noqa: S608
                " ORDER BY number DESC LIMIT ?",
                (limit,),
            ).fetchall()
            return [_incident(db, row, self._evidence_dir) for row in rows]

    def incident(self, id: str) -> dict[str, Any] | None:  # noqa: A002 - the contract's word
        number = incident_number(id)
        if number is None:
            return None
        with closing(self._open()) as db:
            return incident_json(db, number, evidence_dir=self._evidence_dir)

    def intents(self) -> list[dict[str, Any]]:
        """Newest first."""
        with closing(self._open()) as db:
            rows = db.execute("SELECT * FROM intent ORDER BY number DESC LIMIT 1000")
            return [intent_json(row) for row in rows]

    def scorecard(self) -> dict[str, Any]:
        with closing(self._open()) as db:
            return scorecard_json(db)

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=5.0)
        db.row_factory = sqlite3.Row
        return db


def _incident(
    db: sqlite3.Connection, row: sqlite3.Row, evidence_dir: Path | None
) -> dict[str, Any]:
    number = row["number"]
    alerts = db.execute(
        "SELECT alertname FROM incident_alert WHERE incident = ? ORDER BY rowid", (number,)
    )
    intents = db.execute("SELECT * FROM intent WHERE incident = ? ORDER BY number", (number,))
    records = db.execute("SELECT * FROM record WHERE incident = ? ORDER BY number", (number,))
    evidence = evidence_dir / incident_id(number) if evidence_dir else None
    return {
        "id": incident_id(number),
        "status": "resolved" if row["resolved_at"] else "open",
        "subject": {"kind": row["subject_kind"], "name": row["subject_name"]},
        "severity": row["severity"],
        "opened_at": row["opened_at"],
        "resolved_at": row["resolved_at"],
        "acknowledged_at": row["acknowledged_at"],
        "acknowledged_by": row["acknowledged_by"],
        "diagnosis": json.loads(row["diagnosis"]),
        "changed": json.loads(row["changed"]),
        "alerts": [alert["alertname"] for alert in alerts],
        "intents": [intent_json(intent) for intent in intents],
        "timeline": [
            {
                "at": record["at"],
                "event": record["event"],
                "because": record["because"],
                "by": record["by"],
                "facts": json.loads(record["facts"]),
            }
            for record in records
        ],
        "evidence": str(evidence) if evidence and evidence.is_dir() else None,
    }
