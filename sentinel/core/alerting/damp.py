"""Damps flapping: an alert that comes and goes is told once, and as over when it stays away.

Rules are evaluated to Prometheus's letter; this only decides when an end counts. The first
few firings within the window end at once, so that a problem that was cured twice is said to
be cured twice.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

WINDOW = timedelta(minutes=30)
FREE = 3
"""So many firings within the window are no flapping."""
SHORTEST = timedelta(minutes=2)
LONGEST = timedelta(minutes=15)


class Damper:
    """When each alert began to fire, and how long its end must last before it counts."""

    def __init__(self, firings: Mapping[str, Sequence[datetime]] | None = None) -> None:
        self._firings = {key: list(at) for key, at in (firings or {}).items()}

    def fired(self, key: str, now: datetime) -> int:
        """Note it. How many times it has fired within the window, this time included."""
        recent = [at for at in self._firings.get(key, ()) if now - WINDOW < at <= now]
        self._firings[key] = [*recent, now]
        return len(recent) + 1

    def counts_from(self, key: str, ended_at: datetime) -> datetime:
        """From when on an end at `ended_at` counts, if it does not fire again before."""
        recent = [at for at in self._firings.get(key, ()) if ended_at - WINDOW < at <= ended_at]
        beyond = len(recent) - FREE
        if beyond <= 0:
            return ended_at
        doubled: int = 2 ** min(beyond - 1, 10)
        return ended_at + min(SHORTEST * doubled, LONGEST)

    def forget(self, now: datetime) -> None:
        self._firings = {
            key: at for key, at in self._firings.items() if at and now - at[-1] < 2 * WINDOW
        }
