"""Counters that go on where they were when the daemon is started again."""

import json
import sqlite3
from collections.abc import Iterable, Mapping

Labels = tuple[tuple[str, str], ...]


class Counters:
    """Kept in memory, written through. A counter exists at 0 from `exist` on."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._values: dict[tuple[str, Labels], float] = {
            (row["name"], tuple(sorted(json.loads(row["labels"]).items()))): row["value"]
            for row in db.execute("SELECT * FROM counter")
        }

    def exist(self, name: str, labels: Mapping[str, str]) -> None:
        key = (name, tuple(sorted(labels.items())))
        if key not in self._values:
            self._save(key, 0.0)

    def add(self, name: str, labels: Mapping[str, str], amount: float = 1.0) -> None:
        key = (name, tuple(sorted(labels.items())))
        self._save(key, self._values.get(key, 0.0) + amount)

    def samples(self, target: str) -> Iterable[tuple[str, Mapping[str, str], float]]:
        """Every counter of one target, as samples."""
        return [
            (name, dict(labels), value)
            for (name, labels), value in self._values.items()
            if ("target", target) in labels
        ]

    def forget(self, target: str) -> None:
        for key in [key for key in self._values if ("target", target) in key[1]]:
            del self._values[key]
            self._db.execute(
                "DELETE FROM counter WHERE name = ? AND labels = ?", (key[0], _text(key[1]))
            )

    def _save(self, key: tuple[str, Labels], value: float) -> None:
        self._values[key] = value
        self._db.execute(
            "INSERT OR REPLACE INTO counter (name, labels, value) VALUES (?, ?, ?)",
            (key[0], _text(key[1]), value),
        )


def _text(labels: Labels) -> str:
    return json.dumps(dict(labels), sort_keys=True, ensure_ascii=False)
