"""Saves what a container looked like before it is touched: its log, metrics, inspect, launches.

Runs in the lane of the hands, before the first step; what cannot be had is left out, and
nothing here ever keeps a remedy from being done. What users sent and secrets stay out.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from sentinel.core.diagnosis.privacy import redacted, without_prompts
from sentinel.core.model.errors import SentinelError

_LOG_LINES = 2000
_MOST = 2 << 20  # bytes of one file


class Describer(Protocol):
    """What the container engine says of a container, in its own words."""

    def raw(self, container_id: str) -> Mapping[str, Any] | None:
        """Raises `Transient` when the engine does not answer."""
        ...

    def log_tail(self, container_id: str, *, lines: int, since: datetime | None = None) -> str:
        """Raises `Transient` likewise."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is to be saved, as far as the loop knows it."""

    incident: str  # its id, also the name of its folder
    intent: str
    container_id: str
    started_at: datetime | None
    metrics: bytes  # of the last good scrape
    launches: Sequence[Mapping[str, Any]]


class Evidence:
    def __init__(self, folder: Path, engine: Describer) -> None:
        self._folder, self._engine = folder, engine
        self.keep_for, self.keep_bytes = timedelta(days=7), 1 << 30

    def save(self, scene: Scene, now: datetime) -> list[str]:
        """The names of the files that could be written."""
        try:
            self.prune(now)
            folder = self._folder / scene.incident
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for each in (self._folder, folder):
                each.chmod(0o700)
        except OSError:
            return []
        since, container = scene.started_at, scene.container_id
        parts: dict[str, Callable[[], str]] = {
            "log.txt": lambda: without_prompts(
                self._engine.log_tail(container, lines=_LOG_LINES, since=since)
            ),
            "inspect.json": lambda: _json(redacted(self._engine.raw(container) or {})),
            "metrics.txt": lambda: scene.metrics.decode("utf-8", "replace"),
            "launches.json": lambda: _json(redacted(list(map(dict, scene.launches)))),
        }
        saved = (self._part(folder / f"{scene.intent}-{n}", read) for n, read in parts.items())
        return [name for name in saved if name]

    def log_of(self, container_id: str) -> str:
        """The end of its log; empty if it cannot be had. Of the lane of the hands, as all here."""
        with contextlib.suppress(SentinelError):
            return self._engine.log_tail(container_id, lines=_LOG_LINES)
        return ""

    def prune(self, now: datetime) -> None:
        """What is too old goes, and then the oldest until the rest fits."""
        if not self._folder.is_dir():
            return
        held = sorted((found.stat().st_mtime, found) for found in self._folder.iterdir())
        sizes = {folder: _size(folder) for _, folder in held}
        total = sum(sizes.values())
        for changed_at, folder in held:
            if now.timestamp() - changed_at > self.keep_for.total_seconds() or (
                total > self.keep_bytes
            ):
                shutil.rmtree(folder, ignore_errors=True)
                total -= sizes[folder]

    def _part(self, file: Path, read: Callable[[], str]) -> str:
        with contextlib.suppress(SentinelError, OSError):
            content = read().encode("utf-8", "replace")[-_MOST:]
            if content.strip() in (b"", b"{}", b"[]"):
                return ""
            fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "wb") as out:
                out.write(content)
            return file.name
        return ""


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
