"""All that is remembered, behind one connection, owned by the loop's thread.

When the file cannot be written or read any more, what is known goes on in RAM, so that the
eyes and the voice go on; `trouble` then says why, and for as long as it does nothing may act.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from sentinel.core.model.errors import Permanent
from sentinel.store.alerts import Alerts
from sentinel.store.counters import Counters
from sentinel.store.database import migrate, migrations, open_database
from sentinel.store.dispatch import Dispatches
from sentinel.store.incidents import Incidents
from sentinel.store.journal import Journal
from sentinel.store.launches import Launches
from sentinel.store.logbook import Logbook
from sentinel.store.outbox import Outbox
from sentinel.store.scorecard import Scorecard
from sentinel.store.silences import Silences


class Memory:
    def __init__(self, db: sqlite3.Connection, path: Path | None = None) -> None:
        self._path = path
        self.trouble = ""  # why the file is out of use; empty while it is in use
        self.is_whole = True  # false in RAM, if the file could not be read either
        self.db = db
        self.alerts = Alerts(db)
        self.counters = Counters(db)
        self.dispatches = Dispatches(db)
        self.incidents = Incidents(db)
        self.journal = Journal(db)
        self.launches = Launches(db)
        self.logbook = Logbook(db)
        self.outbox = Outbox(db)
        self.scorecard = Scorecard(db)
        self.silences = Silences(db)

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is written inside is written, or none of it."""
        self.db.execute("BEGIN")
        try:
            yield
            self.db.execute("COMMIT")
        except BaseException:
            self.journal.forget_read()
            with contextlib.suppress(sqlite3.Error):  # the file may be what is broken
                self.db.execute("ROLLBACK")
            raise

    def forget(self, before: datetime) -> None:
        """Drop what was over before then."""
        with self.together():
            self.incidents.forget(before)
            self.launches.forget(before)
            self.logbook.forget(before)
            self.outbox.forget(before)
            self.scorecard.forget(before)

    def retreat(self, because: str) -> None:
        """Go on in RAM, from what can still be read of the file."""
        if self.trouble:
            return
        ram, whole = _in_ram(), True
        try:
            self.db.backup(ram)
        except sqlite3.Error:
            ram, whole = _in_ram(), False
        self._use(ram)
        self.trouble, self.is_whole = because, whole

    def come_back(self) -> bool:
        """Into the file again, with all that happened meanwhile, once it takes it."""
        if not (self.trouble and self.is_whole and self._path):
            return False
        try:
            disk = open_database(self._path)
            try:
                self.db.backup(disk)
            except sqlite3.Error:
                disk.close()
                return False
        except (sqlite3.Error, Permanent):
            return False
        self._use(disk)
        self.trouble = ""
        return True

    def _use(self, db: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.db.close()
        self.db = db
        parts = (
            self.alerts,
            self.counters,
            self.dispatches,
            self.incidents,
            self.journal,
            self.launches,
            self.logbook,
            self.outbox,
            self.scorecard,
            self.silences,
        )
        for part in parts:  # others hold them, so they stay and their file changes
            part._db = db  # noqa: SLF001 - they are this module's own

    def close(self) -> None:
        self.db.close()


def open_memory(path: Path | str) -> Memory:
    """What is remembered in the file; in RAM, and in trouble, if the file cannot be had.

    Raises `Permanent` if the file is newer than us.
    """
    try:
        if path != ":memory:":
            _for_the_owner_alone(Path(path))
        db = open_database(path)
        _check(db)
        return Memory(db, Path(path))
    except sqlite3.Error as error:
        because = str(error)
    except Permanent as error:
        if not isinstance(error.__cause__, sqlite3.Error):
            raise
        because = f"{error.message}: {error.__cause__}"
    return _salvaged(Path(path), because)


def _for_the_owner_alone(path: Path) -> None:
    """What SQLite puts beside it takes its mode."""
    with contextlib.suppress(OSError):
        path.touch(mode=0o600)
        path.chmod(0o600)


def _salvaged(path: Path, because: str) -> Memory:
    """A file that may be read but not written still tells what is open and who stopped what."""
    for how in ("mode=ro", "mode=ro&immutable=1"):  # the second does not see what is in the WAL
        with contextlib.suppress(sqlite3.Error, Permanent):
            memory = Memory(_copied(f"file:{path}?{how}"), path)
            memory.trouble, memory.is_whole = because, how == "mode=ro"
            return memory
    memory = Memory(_in_ram(), path)
    memory.trouble, memory.is_whole = because, False
    return memory


def _copied(uri: str) -> sqlite3.Connection:
    with closing(sqlite3.connect(uri, uri=True)) as frozen:
        ram = sqlite3.connect(":memory:", isolation_level=None)
        frozen.backup(ram)
    ram.row_factory = sqlite3.Row
    migrate(ram, migrations())
    _check(ram)
    return ram


def _check(db: sqlite3.Connection) -> None:
    found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise sqlite3.DatabaseError(f"the file is damaged: {found}")


def _in_ram() -> sqlite3.Connection:
    return open_database(":memory:")
