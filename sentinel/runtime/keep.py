"""The state directory: whose it is, the last picture in it, and the beat of the loop.

The lock is held for as long as the process lives; two daemons never share one directory.
`status.json` is replaced by rename, so that a reader sees a whole one at any instant.
A disk that takes nothing more costs these files, never the daemon.
"""

import contextlib
import fcntl
import grp
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

from sentinel.api.snapshot import Snapshot, to_json
from sentinel.core.model.errors import Permanent

_AT_LEAST_EVERY = timedelta(seconds=30)
_BEAT_EVERY = timedelta(seconds=1)


class StateDir:
    def __init__(self, path: Path, group: str | None = None) -> None:
        """`group`: whose members may look inside, if there is such a group."""
        self.path = path
        self._group = group_id(group)
        self._lock: IO[str] | None = None
        self._written_at: datetime | None = None
        self._written = b""
        self._beat_at: datetime | None = None
        self.trouble = ""  # why nothing can be written here; empty while it can

    def take(self) -> None:
        """Make the directory and lock it. Raises `Permanent` if it is another daemon's."""
        try:
            self.path.mkdir(mode=0o750, parents=True, exist_ok=True)
            self._close_to_others()
            self._lock = self._open_lock()
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise Permanent(
                f"another Sentinel holds {self.path}",
                hint="One daemon per state directory; see systemctl status sentinel.",
            ) from None
        except OSError as error:
            raise Permanent(f"{self.path}: {error.strerror or error}") from None
        with contextlib.suppress(OSError):
            self._lock.truncate(0)
            self._lock.write(f"{os.getpid()}\n")
            self._lock.flush()

    def _close_to_others(self) -> None:
        _give(self.path, self._group)
        with contextlib.suppress(OSError):  # somebody else's, or of a disk that is read-only
            if (mode := self.path.stat().st_mode) & 0o007:
                self.path.chmod(mode & 0o770)

    def close(self) -> None:
        """Let go of the lock, as the end of the process does."""
        if self._lock is not None:
            self._lock.close()

    def _open_lock(self) -> IO[str]:
        """A file that may only be read can be locked as well."""
        file = self.path / "lock"
        try:
            return file.open("a+")
        except OSError:
            if not file.exists():
                raise
            return file.open()

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
        with self._noting_trouble():
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
        with self._noting_trouble():
            self._replace(self.path / "status.json", to_json(snapshot.as_status(now)))
            self._written, self._written_at = content, now

    def _replace(self, file: Path, content: bytes) -> None:
        temporary = file.with_name(f"{file.name}.new")
        temporary.unlink(missing_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)
        with os.fdopen(fd, "wb") as out:
            os.fchmod(fd, 0o640)  # whatever the umask says
            _give(temporary, self._group)
            out.write(content)
        temporary.replace(file)

    @contextlib.contextmanager
    def _noting_trouble(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.trouble = error.strerror or str(error)
        else:
            self.trouble = ""


def group_id(name: str | None) -> int | None:
    try:
        return grp.getgrnam(name).gr_gid if name else None
    except KeyError:
        return None


def _give(path: Path, group: int | None) -> None:
    if group is not None:
        with contextlib.suppress(OSError):  # we are not in it: the owner reads it then
            os.chown(path, -1, group)
