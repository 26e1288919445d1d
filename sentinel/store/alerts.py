"""Alerts as they stand, so that `for` and `keep_firing_for` outlive the daemon."""

import json
import sqlite3
from collections.abc import Sequence

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.model.moment import moment, moment_or_none, stamp, stamp_or_none


class Alerts:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def save(self, alert: ActiveAlert, incident: int | None) -> None:
        self._db.execute(
            "INSERT INTO alert (key, alertname, labels, annotations, state, value, active_at,"
            " fired_at, resolved_at, last_seen_at, keep_since, incident, rule, rule_group, file)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
            " labels = excluded.labels, annotations = excluded.annotations,"
            " state = excluded.state, value = excluded.value, active_at = excluded.active_at,"
            " fired_at = excluded.fired_at, resolved_at = excluded.resolved_at,"
            " last_seen_at = excluded.last_seen_at, keep_since = excluded.keep_since,"
            " incident = coalesce(excluded.incident, incident)",
            (
                alert.key,
                alert.alertname,
                json.dumps(dict(alert.labels), ensure_ascii=False),
                json.dumps(dict(alert.annotations), ensure_ascii=False),
                alert.state,
                alert.value,
                stamp(alert.active_at),
                stamp_or_none(alert.fired_at),
                stamp_or_none(alert.resolved_at),
                stamp(alert.last_seen_at),
                stamp_or_none(alert.keep_since),
                incident,
                alert.rule,
                alert.group,
                alert.file,
            ),
        )

    def forget(self, key: str) -> None:
        self._db.execute("DELETE FROM alert WHERE key = ?", (key,))

    def all(self) -> Sequence[tuple[ActiveAlert, int | None]]:
        """Every alert on disk, with the number of its incident."""
        return [(_alert(row), row["incident"]) for row in self._db.execute("SELECT * FROM alert")]


def _alert(row: sqlite3.Row) -> ActiveAlert:
    return ActiveAlert(
        key=row["key"],
        alertname=row["alertname"],
        labels=json.loads(row["labels"]),
        annotations=json.loads(row["annotations"]),
        state=row["state"],
        value=row["value"] if row["value"] is not None else float("nan"),
        active_at=moment(row["active_at"]),
        fired_at=moment_or_none(row["fired_at"]),
        resolved_at=moment_or_none(row["resolved_at"]),
        last_seen_at=moment(row["last_seen_at"]),
        keep_since=moment_or_none(row["keep_since"]),
        rule=row["rule"],
        group=row["rule_group"],
        file=row["file"],
    )
