"""The lifecycle's memory on disk: what stands, how it is grouped, and who was told of what.

Written with the messages that follow from it, in one transaction: what was told and what is
owed never disagree.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import datetime

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.ledger import Changes, Group, GroupId, Told, ToldId
from sentinel.core.model.moment import moment, moment_or_none, stamp, stamp_or_none


class Dispatches:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def alerts(self) -> Sequence[Alert]:
        return [_alert(row) for row in self._db.execute("SELECT * FROM standing")]

    def groups(self) -> Sequence[Group]:
        return [_group(row) for row in self._db.execute("SELECT * FROM gathering")]

    def told(self) -> Sequence[Told]:
        return [_told(row) for row in self._db.execute("SELECT * FROM told")]

    def write(self, changes: Changes) -> None:
        self._write_alerts(changes.alerts_put, changes.alerts_forgotten)
        self._write_groups(changes.groups_put, changes.groups_forgotten)
        self._write_told(changes.told_put, changes.told_forgotten)

    def firings(self) -> dict[str, list[datetime]]:
        """When each alert began to fire, oldest first."""
        found: dict[str, list[datetime]] = {}
        for row in self._db.execute("SELECT key, at FROM firing ORDER BY at"):
            found.setdefault(row["key"], []).append(moment(row["at"]))
        return found

    def fired(self, key: str, at: datetime) -> None:
        self._db.execute("INSERT OR IGNORE INTO firing (key, at) VALUES (?, ?)", (key, stamp(at)))

    def forget_firings(self, before: datetime) -> None:
        self._db.execute("DELETE FROM firing WHERE at < ?", (stamp(before),))

    def _write_alerts(self, put: Iterable[Alert], forgotten: Iterable[str]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO standing (fingerprint, labels, annotations, starts_at, ends_at,"
            " updated_at, is_timeout, generator_url, origin, incident)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    alert.fingerprint,
                    _dump(dict(alert.labels)),
                    _dump(dict(alert.annotations)),
                    stamp(alert.starts_at),
                    stamp_or_none(alert.ends_at),
                    stamp(alert.updated_at),
                    int(alert.is_timeout),
                    alert.generator_url,
                    alert.origin,
                    alert.incident,
                )
                for alert in put
            ],
        )
        self._db.executemany(
            "DELETE FROM standing WHERE fingerprint = ?", [(print_,) for print_ in forgotten]
        )

    def _write_groups(self, put: Iterable[Group], forgotten: Iterable[GroupId]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO gathering (key, receiver, route_key, labels, next_at,"
            " has_flushed, members) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    group.key,
                    group.receiver,
                    group.route_key,
                    _dump(dict(group.labels)),
                    stamp(group.next_at),
                    int(group.has_flushed),
                    _dump(list(group.members)),
                )
                for group in put
            ],
        )
        self._db.executemany(
            "DELETE FROM gathering WHERE key = ? AND receiver = ?", list(forgotten)
        )

    def _write_told(self, put: Iterable[Told], forgotten: Iterable[ToldId]) -> None:
        self._db.executemany(
            "INSERT OR REPLACE INTO told (group_key, channel, firing, resolved, at)"
            " VALUES (?, ?, ?, ?, ?)",
            [
                (
                    told.group_key,
                    told.channel,
                    _dump(sorted(told.firing)),
                    _dump(sorted(told.resolved)),
                    stamp(told.at),
                )
                for told in put
            ],
        )
        self._db.executemany(
            "DELETE FROM told WHERE group_key = ? AND channel = ?", list(forgotten)
        )


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _alert(row: sqlite3.Row) -> Alert:
    return Alert(
        labels=json.loads(row["labels"]),
        annotations=json.loads(row["annotations"]),
        starts_at=moment(row["starts_at"]),
        ends_at=moment_or_none(row["ends_at"]),
        updated_at=moment(row["updated_at"]),
        is_timeout=bool(row["is_timeout"]),
        generator_url=row["generator_url"],
        origin=row["origin"],
        incident=row["incident"],
    )


def _group(row: sqlite3.Row) -> Group:
    return Group(
        key=row["key"],
        receiver=row["receiver"],
        route_key=row["route_key"],
        labels=json.loads(row["labels"]),
        next_at=moment(row["next_at"]),
        has_flushed=bool(row["has_flushed"]),
        members=tuple(json.loads(row["members"])),
    )


def _told(row: sqlite3.Row) -> Told:
    return Told(
        group_key=row["group_key"],
        channel=row["channel"],
        firing=frozenset(json.loads(row["firing"])),
        resolved=frozenset(json.loads(row["resolved"])),
        at=moment(row["at"]),
    )
