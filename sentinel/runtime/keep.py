"""The state directory: whose it is, the last picture in it, and the beat of the loop.

The lock is held for as long as the process lives; two daemons never share one directory.
`status.json` is replaced by rename, so that a reader sees a whole one at any instant.
"""

import fcntl
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TextIO

from sentinel.api.snapshot import Snapshot, to_json
from sentinel.core.model.errors import Permanent

_AT_LEAST_EVERY = timedelta(seconds=30)
_BEAT_EVERY = timedelta(seconds=1)


class StateDir:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: TextIO | None = None
        self._written_at: datetime | None = None
        self._written = b""
        self._beat_at: datetime | None = None

    def take(self) -> None:
        """Make the directory and lock it. Raises `Permanent` if it is another daemon's."""
        try:
            self.path.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._lock = (self.path / "lock").open("a+")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Permanent(
                f"another Sentinel holds {self.path}",
                hint="One daemon per state directory; see systemctl status sentinel.",
            ) from None
        except OSError as error:
            raise Permanent(f"{self.path}: {error.strerror or error}") from None
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()

    @property
    def database(self) -> Path:
        return self.path / "state.db"

    @property
    def evidence(self) -> Path:
        return self.path / "evidence"

    def last_beat(self) -> datetime | None:
        """When a loop over this directory last beat: until then somebody watched."""
        try:
            return datetime.fromtimestamp((self.path / "beat").stat().st_mtime, UTC)
        except OSError:
            return None

    def beat(self, now: datetime) -> None:
        """Costs no sync, and survives a kill of the process."""
        if self._beat_at is not None and timedelta(0) <= now - self._beat_at < _BEAT_EVERY:
            return
        self._beat_at = now
        file = self.path / "beat"
        file.touch(mode=0o640)
        os.utime(file, (now.timestamp(), now.timestamp()))

    def show(self, snapshot: Snapshot, now: datetime) -> None:
        """Rewrite `status.json` if the picture has changed, or is getting old."""
        content = to_json({**snapshot.status})
        fresh = (
            self._written_at is not None
            and timedelta(0) <= now - self._written_at < _AT_LEAST_EVERY
        )
        if fresh and content == self._written:
            return
        self._written, self._written_at = content, now
        temporary = self.path / "status.json.new"
        text = json.dumps(snapshot.as_status(now), ensure_ascii=False, default=str)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        with os.fdopen(fd, "w", encoding="utf-8") as out:
            out.write(text)
        temporary.replace(self.path / "status.json")
