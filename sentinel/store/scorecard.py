"""Steps that were held back, and what became of the trouble without them."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel.core.model.moment import moment, stamp
from sentinel.core.policy.hindsight import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldStep:
    number: int
    at: datetime
    target: str
    incident: int
    action: str
    deadline: datetime


class Scorecard:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def note(  # noqa: PLR0913 - what is to be judged later
        self,
        *,
        target: str,
        incident: int,
        remedy: str,
        action: str,
        guard: str,
        deadline: datetime,
        now: datetime,
    ) -> None:
        """Once for each action of an incident: the first time it was held counts."""
        self._db.execute(
            "INSERT OR IGNORE INTO held_step"
            " (at, target, incident, remedy, action, guard, deadline)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (stamp(now), target, incident, remedy, action, guard, stamp(deadline)),
        )

    def unjudged(self) -> Sequence[HeldStep]:
        rows = self._db.execute("SELECT * FROM held_step WHERE judged_at IS NULL ORDER BY number")
        return [
            HeldStep(
                number=row["number"],
                at=moment(row["at"]),
                target=row["target"],
                incident=row["incident"],
                action=row["action"],
                deadline=moment(row["deadline"]),
            )
            for row in rows
        ]

    def judge(self, step: HeldStep, verdict: Verdict, now: datetime) -> None:
        self._db.execute(
            "UPDATE held_step SET judged_at = ?, verdict = ? WHERE number = ?",
            (stamp(now), verdict, step.number),
        )

    def forget(self, before: datetime) -> None:
        self._db.execute(
            "DELETE FROM held_step WHERE judged_at IS NOT NULL AND at < ?", (stamp(before),)
        )


_OUTCOMES = ("verified", "failed", "rolled_back", "refused", "rejected", "expired")


def scorecard_json(db: sqlite3.Connection) -> dict[str, Any]:
    """For each remedy and action: what was done and how it ended, what was held and what then."""
    cards: dict[tuple[str, str], dict[str, Any]] = {}

    def card(remedy: str, action: str) -> dict[str, Any]:
        blank = {
            "remedy": remedy,
            "action": action,
            "done": dict.fromkeys(_OUTCOMES, 0),
            "held": 0,
            "without": {**{verdict.value: 0 for verdict in Verdict}, "open": 0},
        }
        return cards.setdefault((remedy, action), blank)

    for row in db.execute(
        "SELECT json_extract(settings, '$.remedy') AS remedy, action, outcome, count(*) AS times"
        " FROM intent WHERE outcome IS NOT NULL GROUP BY 1, 2, 3"
    ):
        if row["remedy"]:
            card(row["remedy"], row["action"])["done"][row["outcome"]] = row["times"]
    for row in db.execute(
        "SELECT remedy, action, coalesce(verdict, 'open') AS verdict, count(*) AS times"
        " FROM held_step GROUP BY 1, 2, 3"
    ):
        found = card(row["remedy"], row["action"])
        found["held"] += row["times"]
        found["without"][row["verdict"]] = row["times"]
    return {"remedies": [cards[key] for key in sorted(cards)]}
