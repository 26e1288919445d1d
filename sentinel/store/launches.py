"""The ledger of launches, and what the container engine was heard to say about them."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime

from sentinel.core.diagnosis.privacy import redacted
from sentinel.core.model.container import Container, EngineEvent
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.model.moment import moment, moment_or_none, stamp
from sentinel.core.policy.changed import changed

_COMPOSE_HASH = "com.docker.compose.config-hash"
_JSON = ("argv", "devices", "environment", "facts")
_KEPT_EVENTS = frozenset({"start", "die", "oom", "kill", "stop", "destroy", "restart"})


class Launches:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def write(self, container: Container, target: str, by: By, now: datetime) -> Launch:
        """Enter this start in the ledger, or return what the ledger already says of it."""
        assert container.started_at is not None
        self._db.execute(
            "INSERT OR IGNORE INTO launch (target, container_id, started_at, by, image, image_id,"
            " argv, devices, restart_count, seen_at, environment, compose_hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                target,
                container.id,
                stamp(container.started_at),
                by,
                container.image,
                container.image_id,
                json.dumps(redacted(list(container.argv))),
                json.dumps(container.devices),
                container.restart_count,
                stamp(now),
                json.dumps(dict(container.environment), sort_keys=True),
                container.labels.get(_COMPOSE_HASH, ""),
            ),
        )
        found = self.get(container.id, container.started_at)
        assert found is not None
        return found

    def get(self, container_id: str, started_at: datetime) -> Launch | None:
        found = self._select(
            "WHERE container_id = ? AND started_at = ?", (container_id, stamp(started_at))
        )
        return found[0] if found else None

    def before(self, target: str, container_id: str, started_at: datetime) -> Launch | None:
        """The launch of the same target before this one, whichever container it was.

        By the order of entry: a clock set back makes the later start the earlier time.
        """
        this = (container_id, stamp(started_at))
        found = self._select(
            "WHERE target = ? AND rowid < coalesce((SELECT rowid FROM launch WHERE"
            " container_id = ? AND started_at = ?), 9223372036854775807)"
            " ORDER BY rowid DESC LIMIT 1",
            (target, *this),
        )
        return found[0] if found else None

    def at(self, target: str, at: datetime) -> Launch | None:
        """The launch that was under way at an instant, or the last before it."""
        found = self._select(
            "WHERE target = ? AND started_at <= ? ORDER BY started_at DESC LIMIT 1",
            (target, stamp(at)),
        )
        return found[0] if found else None

    def last_healthy(self, before: Launch) -> Launch | None:
        """The last launch of the target before this one that became ready."""
        found = self._select(
            "WHERE target = ? AND ready_at IS NOT NULL AND rowid < coalesce((SELECT rowid FROM"
            " launch WHERE container_id = ? AND started_at = ?), 9223372036854775807)"
            " ORDER BY rowid DESC LIMIT 1",
            (before.target, before.container_id, stamp(before.started_at)),
        )
        return found[0] if found else None

    def changed(self, launch: Launch) -> list[str]:
        """What differs from the last launch before it that was healthy."""
        healthy = self.last_healthy(launch)
        return changed(healthy, launch) if healthy is not None else []

    def since(self, target: str, at: datetime) -> Sequence[Launch]:
        return self._select(
            "WHERE target = ? AND started_at >= ? ORDER BY started_at", (target, stamp(at))
        )

    def facts(self, target: str, most: int) -> list[dict[str, object]]:
        """The last launches of a target with all that is kept of them, newest first."""
        rows = self._db.execute(
            "SELECT * FROM launch WHERE target = ? ORDER BY rowid DESC LIMIT ?", (target, most)
        )
        return [
            {
                **dict(row),
                **{key: json.loads(row[key]) for key in _JSON},
                "changed": self.changed(_launch(row)),
            }
            for row in rows
        ]

    def start_seconds(self, target: str, most: int) -> list[float]:
        """How long its last starts took that became ready, newest first.

        One that was found ready taught nothing: the greater part of a start must have been seen.
        """
        rows = self._db.execute(
            "SELECT started_at, seen_at, ready_at FROM launch WHERE target = ?"
            " AND ready_at IS NOT NULL ORDER BY rowid DESC LIMIT ?",
            (target, most),
        )
        moments = [[moment(value) for value in row] for row in rows]
        return [
            (ready - started).total_seconds()
            for started, seen, ready in moments
            if seen - started <= ready - seen
        ]

    def ready(self, launch: Launch, model: str | None, now: datetime) -> None:
        self._db.execute(
            "UPDATE launch SET ready_at = coalesce(ready_at, ?), model = coalesce(?, model)"
            " WHERE container_id = ? AND started_at = ?",
            (stamp(now), model, launch.container_id, stamp(launch.started_at)),
        )

    def learn(self, launch: Launch, facts: Mapping[str, float | str], driver: str) -> None:
        """Keep what its log told, and the driver of its GPUs."""
        self._db.execute(
            "UPDATE launch SET facts = ?, driver = ? WHERE container_id = ? AND started_at = ?",
            (
                json.dumps(dict(facts), sort_keys=True, ensure_ascii=False),
                driver,
                launch.container_id,
                stamp(launch.started_at),
            ),
        )

    def end(self, launch: Launch, ending: Ending, now: datetime) -> None:
        self._db.execute(
            "UPDATE launch SET ended_at = ?, exit_code = ?, ended_as = ?, ended_because = ?,"
            " ended_cause = ? WHERE container_id = ? AND started_at = ?",
            (
                stamp(ending.at or now),
                ending.exit_code,
                ending.kind,
                ending.because,
                ending.cause,
                launch.container_id,
                stamp(launch.started_at),
            ),
        )

    def hear(self, event: EngineEvent) -> bool:
        """Keep an event that says how a container ended; False if it was known already."""
        if event.action not in _KEPT_EVENTS:
            return True
        return (
            self._db.execute(
                "INSERT OR IGNORE INTO engine_event"
                " (at_ns, container_id, action, at, signal, exit_code) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    event.at_ns,
                    event.container_id,
                    event.action,
                    stamp(event.at),
                    event.signal,
                    event.exit_code,
                ),
            ).rowcount
            == 1
        )

    def heard(self, container_id: str, since: datetime) -> Sequence[EngineEvent]:
        """What was heard of one container since `since`, in order."""
        rows = self._db.execute(
            "SELECT * FROM engine_event WHERE container_id = ? AND at >= ? ORDER BY at_ns",
            (container_id, stamp(since)),
        )
        return [
            EngineEvent(
                at=moment(row["at"]),
                at_ns=row["at_ns"],
                action=row["action"],
                container_id=row["container_id"],
                name="",
                exit_code=row["exit_code"],
                signal=row["signal"],
            )
            for row in rows
        ]

    def last_heard_ns(self) -> int | None:
        at: int | None = self._db.execute("SELECT max(at_ns) FROM engine_event").fetchone()[0]
        return at

    def forget(self, before: datetime) -> None:
        self._db.execute("DELETE FROM engine_event WHERE at < ?", (stamp(before),))
        self._db.execute(  # how the last launch of each target ended is known for good
            "DELETE FROM launch WHERE started_at < ? AND ended_at IS NOT NULL AND EXISTS"
            " (SELECT 1 FROM launch AS later WHERE later.target = launch.target"
            " AND later.started_at > launch.started_at)",
            (stamp(before),),
        )

    def _select(self, clause: str, parameters: tuple[object, ...]) -> list[Launch]:
        rows = self._db.execute(f"SELECT * FROM launch {clause}", parameters)  # noqa: S608
        return [_launch(row) for row in rows]


def _launch(row: sqlite3.Row) -> Launch:
    ending = None
    if row["ended_as"]:
        ending = Ending(
            kind=EndedAs(row["ended_as"]),
            because=row["ended_because"],
            cause=row["ended_cause"],
            at=moment_or_none(row["ended_at"]),
            exit_code=row["exit_code"],
        )
    return Launch(
        target=row["target"],
        container_id=row["container_id"],
        started_at=moment(row["started_at"]),
        by=By(row["by"]),
        restart_count=row["restart_count"],
        ready_at=moment_or_none(row["ready_at"]),
        model=row["model"],
        ending=ending,
        image=row["image"],
        image_id=row["image_id"],
        argv=tuple(json.loads(row["argv"])),
        environment=json.loads(row["environment"]),
        devices=tuple(json.loads(row["devices"])),
        compose_hash=row["compose_hash"],
        driver=row["driver"],
        facts=json.loads(row["facts"]),
    )
