"""Keeps the series over a restart: a snapshot on disk, replaced by rename.

Packing is a few milliseconds and happens on the loop's thread; writing happens in a lane. A
snapshot that cannot be read is left out with a word, never a reason not to start.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from sentinel.core.model.errors import Transient
from sentinel.core.model.packed import pack, unpack
from sentinel.core.model.series import Store
from sentinel.ports import Clock
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.telemetry import events

_log = structlog.get_logger("sentinel")
_EVERY = timedelta(seconds=30)
_WITHIN = 30.0  # seconds for one write


class SeriesFile:
    def __init__(self, path: Path, clock: Clock, lane: Callable[[str], Lane] = Lane) -> None:
        self._path, self._clock = path, clock
        self._lane = lane("series-file")
        self._saved_at: datetime | None = None
        self.trouble = ""  # why the last write failed

    def load(self, store: Store) -> datetime | None:
        """Fill `store` with what was saved, and say since when it holds samples.

        None, and an empty store, if nothing was saved or it cannot be used.
        """
        try:
            unpack(self._path.read_bytes(), store)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            because = f"{self._path} cannot be used, windows begin empty: {error}"
            _log.warning(events.PROBLEM_SEEN, because=because)
            return None
        oldest = min((s.times[0] for s in store.sources() if s.times), default=None)
        return None if oldest is None else datetime.fromtimestamp(oldest / 1000, UTC)

    def save_if_due(self, store: Store, now: datetime) -> None:
        due = self._saved_at is None or not timedelta(0) <= now - self._saved_at < _EVERY
        if not due or self._lane.busy_since is not None:
            return
        self._saved_at = now
        packed = pack(store)
        try:
            self._lane.submit(
                lambda: self.write(packed),
                now=self._clock.monotonic(),
                deadline=_WITHIN,
                deliver=self._written,
            )
        except Transient:
            return

    def save_now(self, store: Store) -> None:
        """The last word before the daemon ends. Raises `OSError`."""
        self.write(pack(store))

    def write(self, packed: bytes) -> None:
        temporary = self._path.with_suffix(".snapshot.new")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
        with os.fdopen(fd, "wb") as out:
            out.write(packed)
        temporary.replace(self._path)

    def _written(self, answer: LaneAnswer[None]) -> None:
        self.trouble = "" if answer.error is None else f"{self._path}: {answer.error}"
