"""Counters that go on where they were when the daemon is started again."""

import json
import sqlite3
from collections.abc import Mapping, Sequence

Key = tuple[str, tuple[tuple[str, str], ...]]  # name, and labels sorted by name


class Counters:
    """Kept in memory, written through. A counter exists at 0 from `exist` on."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._of: dict[str, dict[Key, float]] = {}  # by target
        self._frames: dict[str, list[tuple[str, Mapping[str, str]]]] = {}
        for row in db.execute("SELECT * FROM counter"):
            self._keep(_key(row["name"], json.loads(row["labels"])), row["value"])

    def exist(self, name: str, labels: Mapping[str, str]) -> None:
        key = _key(name, labels)
        if key not in self._of.get(labels.get("target", ""), {}):
            self._save(key, 0.0)

    def add(self, name: str, labels: Mapping[str, str], amount: float = 1.0) -> None:
        key = _key(name, labels)
        known = self._of.get(labels.get("target", ""), {})
        self._save(key, known.get(key, 0.0) + amount)

    def frame(self, target: str) -> Sequence[tuple[str, Mapping[str, str]]]:
        """Name and labels of every counter of one target; the same object until one is added."""
        return self._frames.get(target, ())

    def values(self, target: str) -> Sequence[float]:
        """In the order of `frame`."""
        return list(self._of.get(target, {}).values())

    def _save(self, key: Key, value: float) -> None:
        self._keep(key, value)
        self._db.execute(
            "INSERT OR REPLACE INTO counter (name, labels, value) VALUES (?, ?, ?)",
            (key[0], json.dumps(dict(key[1]), sort_keys=True, ensure_ascii=False), value),
        )

    def _keep(self, key: Key, value: float) -> None:
        labels = dict(key[1])
        target = labels.get("target", "")
        mine = self._of.setdefault(target, {})
        if key not in mine:
            self._frames[target] = [*self._frames.get(target, ()), (key[0], labels)]
        mine[key] = value


def _key(name: str, labels: Mapping[str, str]) -> Key:
    return name, tuple(sorted(labels.items()))
