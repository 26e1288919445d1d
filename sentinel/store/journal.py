"""The journal of intents: reserve, act, then close with what came of it.

A row is written before the thing it speaks of is done. Whoever changes the order of
writing and doing here breaks the promise that nothing is done twice.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sentinel.core.model.intent import Action, Intent, Mode, Outcome, Step, Wish
from sentinel.core.model.moment import moment, moment_or_none, stamp, stamp_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    target: str | None
    until: datetime | None
    by: str


class Journal:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._read: dict[str, tuple[sqlite3.Connection, int, list[Intent]]] = {}

    def forget_read(self) -> None:
        """What was read may have been rolled back."""
        self._read.clear()

    def reserve(self, wish: Wish, now: datetime) -> Intent | None:
        """Write `wish` down; None if something is already being done to its target."""
        return self._write(wish, state="reserved", reserved_at=now)

    def propose(self, wish: Wish, now: datetime, expires_at: datetime) -> Intent | None:
        """Ask for it; None if something is already being asked for its target."""
        return self._write(wish, state="proposed", proposed_at=now, expires_at=expires_at)

    def approve(self, number: int, now: datetime) -> Intent | None:
        """Turn a proposal into a reservation, once; None if it no longer waits."""
        changed = self._db.execute(
            "UPDATE OR IGNORE intent SET state = 'reserved', reserved_at = ?"
            " WHERE number = ? AND state = 'proposed'",
            (stamp(now), number),
        ).rowcount
        return self.get(number) if changed else None

    def begin(self, intent: Intent, step: Step, now: datetime) -> None:
        self._db.execute(
            "UPDATE step SET started_at = coalesce(started_at, ?)"
            " WHERE intent = ? AND position = ?",
            (stamp(now), intent.number, step.position),
        )

    def done(self, intent: Intent, step: Step, says: str, now: datetime) -> None:
        self._db.execute(
            "UPDATE step SET done_at = ?, says = ? WHERE intent = ? AND position = ?",
            (stamp(now), says, intent.number, step.position),
        )

    def expect_proof(self, intent: Intent, verify_by: datetime) -> None:
        self._db.execute(
            "UPDATE intent SET verify_by = ? WHERE number = ?", (stamp(verify_by), intent.number)
        )

    def differ(self, intent: Intent, diff: Sequence[str]) -> None:
        """What it changes on the command line, as `-…` and `+…`."""
        self._db.execute(
            "UPDATE intent SET diff = ? WHERE number = ?", (json.dumps(diff), intent.number)
        )

    def recreation(self, number: int) -> Mapping[str, Any] | None:
        """How far its container has been made anew; None if that has not begun."""
        row = self._db.execute(
            "SELECT recreation FROM intent WHERE number = ?", (number,)
        ).fetchone()
        return json.loads(row[0]) if row and row[0] else None

    def recreate(self, number: int, facts: Mapping[str, Any] | None) -> None:
        """Written before what it speaks of is done; None: it is not needed any more."""
        self._db.execute(
            "UPDATE intent SET recreation = ? WHERE number = ?",
            (None if facts is None else json.dumps(facts), number),
        )

    def close(self, intent: Intent, outcome: Outcome, because: str, now: datetime) -> bool:
        """Close it; False if it was closed before."""
        changed = self._db.execute(
            "UPDATE intent SET state = 'closed', outcome = ?, closed_because = ?, closed_at = ?"
            " WHERE number = ? AND state <> 'closed'",
            (outcome, because, stamp(now), intent.number),
        ).rowcount
        return changed == 1

    def get(self, number: int) -> Intent | None:
        found = self._select("WHERE number = ?", (number,))
        return found[0] if found else None

    def open(self) -> Sequence[Intent]:
        """Reserved and not closed: what may be half done."""
        return self._standing("reserved")

    def proposed(self) -> Sequence[Intent]:
        return self._standing("proposed")

    def of_incident(self, incident: int) -> Sequence[Intent]:
        return self._select("WHERE incident = ?", (incident,))

    def since(self, at: datetime) -> Sequence[Intent]:
        """Everything reserved at or after `at`, of all targets."""
        return self._select("WHERE reserved_at >= ?", (stamp(at),))

    def last_of(self, target: str) -> Intent | None:
        found = self._select(
            "WHERE target = ? AND reserved_at IS NOT NULL ORDER BY reserved_at DESC LIMIT 1",
            (target,),
        )
        return found[0] if found else None

    def last_made_anew(self, target: str) -> Intent | None:
        """The last time that its limit was changed, and that was proved."""
        found = self._select(
            "WHERE target = ? AND outcome = 'verified' AND diff <> '[]'"
            " ORDER BY number DESC LIMIT 1",
            (target,),
        )
        return found[0] if found else None

    def in_vain(self, since: datetime, *, at_least: int) -> frozenset[str]:
        """Targets on which so many remedies have failed since then."""
        rows = self._db.execute(
            "SELECT target FROM intent WHERE closed_at >= ?"
            " AND outcome IN ('failed', 'rolled_back') GROUP BY target HAVING COUNT(*) >= ?",
            (stamp(since), at_least),
        )
        return frozenset(row["target"] for row in rows)

    def pause(self, pause: Pause, now: datetime) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO pause (target, since, until, by) VALUES (?, ?, ?, ?)",
            (pause.target or "", stamp(now), stamp_or_none(pause.until), pause.by),
        )

    def resume(self, target: str | None) -> bool:
        """End the pause of `target`, or of everything if None; False if there was none."""
        if target is None:
            return self._db.execute("DELETE FROM pause").rowcount > 0
        return self._db.execute("DELETE FROM pause WHERE target = ?", (target,)).rowcount > 0

    def pauses(self, now: datetime) -> Sequence[Pause]:
        """The pauses in force."""
        rows = self._db.execute(
            "SELECT * FROM pause WHERE until IS NULL OR until > ?", (stamp(now),)
        )
        return [
            Pause(target=row["target"] or None, until=moment_or_none(row["until"]), by=row["by"])
            for row in rows
        ]

    def _standing(self, state: str) -> list[Intent]:
        """Asked many times a turn, so read again only after something was written."""
        db = self._db
        known = self._read.get(state)
        if known is None or known[0] is not db or known[1] != db.total_changes:
            found = self._select("WHERE state = ?", (state,))
            known = self._read[state] = (db, db.total_changes, found)
        return known[2]

    def _write(self, wish: Wish, *, state: str, **times: datetime) -> Intent | None:
        columns = {
            "target": wish.target,
            "action": wish.action,
            "mode": wish.mode,
            "state": state,
            "incident": wish.incident,
            "because": wish.because,
            "by": wish.by,
            "container_id": wish.container_id,
            "saw_started_at": stamp(wish.saw_started_at),
            "cause": wish.cause,
            "settings": json.dumps(_settings(wish)),
            **{name: stamp(at) for name, at in times.items()},
        }
        names, marks = ", ".join(columns), ", ".join("?" for _ in columns)
        cursor = self._db.execute(
            f"INSERT OR IGNORE INTO intent ({names}) VALUES ({marks})",  # noqa: S608 - own names
            tuple(columns.values()),
        )
        if cursor.rowcount != 1 or cursor.lastrowid is None:
            return None
        self._db.executemany(
            "INSERT INTO step (intent, position, name) VALUES (?, ?, ?)",
            [(cursor.lastrowid, at, name) for at, name in enumerate(wish.steps)],
        )
        return self.get(cursor.lastrowid)

    def _select(self, clause: str, parameters: tuple[object, ...] = ()) -> list[Intent]:
        query = f"SELECT * FROM intent {clause}"  # noqa: S608 - own clauses
        rows = self._db.execute(query, parameters).fetchall()
        return [_intent(row, self._steps(row["number"])) for row in rows]

    def _steps(self, number: int) -> tuple[Step, ...]:
        rows = self._db.execute("SELECT * FROM step WHERE intent = ? ORDER BY position", (number,))
        return tuple(
            Step(
                position=row["position"],
                name=row["name"],
                started_at=moment_or_none(row["started_at"]),
                done_at=moment_or_none(row["done_at"]),
                says=row["says"],
            )
            for row in rows
        )


def _settings(wish: Wish) -> dict[str, object]:
    return {
        "remedy": wish.remedy,
        "limit": wish.limit,
        "restores": wish.restores,
        "forced": wish.forced,
        "within": None if wish.within is None else wish.within.total_seconds(),
    }


def _intent(row: sqlite3.Row, steps: tuple[Step, ...]) -> Intent:
    settings = json.loads(row["settings"])
    within = settings.get("within")
    return Intent(
        number=row["number"],
        wish=Wish(
            target=row["target"],
            action=Action(row["action"]),
            mode=Mode(row["mode"]),
            because=row["because"],
            by=row["by"],
            container_id=row["container_id"],
            saw_started_at=moment(row["saw_started_at"]),
            incident=row["incident"],
            cause=row["cause"],
            remedy=settings.get("remedy", ""),
            limit=settings.get("limit"),
            restores=settings.get("restores", False),
            forced=tuple(settings.get("forced", ())),
            within=None if within is None else timedelta(seconds=within),
        ),
        steps=steps,
        proposed_at=moment_or_none(row["proposed_at"]),
        expires_at=moment_or_none(row["expires_at"]),
        reserved_at=moment_or_none(row["reserved_at"]),
        verify_by=moment_or_none(row["verify_by"]),
        closed_at=moment_or_none(row["closed_at"]),
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        closed_because=row["closed_because"] or "",
    )
