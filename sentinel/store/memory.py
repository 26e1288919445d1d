"""All that is remembered, behind one connection, owned by the loop's thread."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sentinel.store.alerts import Alerts
from sentinel.store.counters import Counters
from sentinel.store.database import open_database
from sentinel.store.incidents import Incidents
from sentinel.store.journal import Journal
from sentinel.store.launches import Launches
from sentinel.store.outbox import Outbox


class Memory:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.alerts = Alerts(db)
        self.counters = Counters(db)
        self.incidents = Incidents(db)
        self.journal = Journal(db)
        self.launches = Launches(db)
        self.outbox = Outbox(db)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is written inside is written, or none of it."""
        self.db.execute("BEGIN")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def close(self) -> None:
        self.db.close()


def open_memory(path: Path | str) -> Memory:
    """Raises `Permanent` if the file is not ours, is newer than us, or cannot be brought up."""
    return Memory(open_database(path))
