"""The picture of itself that the daemon publishes after each tick, and its JSON.

A `Snapshot` is never changed once published, so any thread may read it without a lock.
`at`, `age_seconds`, `ok` and `daemon.reachable` are added when somebody asks: an age that
was stored is a lie a second later.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sentinel.core.dispatch.board import Board

UNWELL = ("failed", "hung", "unknown")
LOUD = ("warning", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    at: datetime
    ready: bool  # the first look at the containers is over
    status: Mapping[str, Any] = field(default_factory=dict)  # daemon, targets, alerts, …
    explain: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by name of subject
    board: Board | None = None  # alerts, groups and silences, for Alertmanager's API

    def as_status(self, now: datetime, *, reachable: bool = True) -> dict[str, Any]:
        """The answer of `status --json`."""
        empty: dict[str, Any] = {"targets": [], "alerts": [], "approvals": [], "problems": []}
        return {
            "at": rfc3339(self.at),
            "age_seconds": age(self.at, now),
            "ok": is_ok(self.status),
            **empty,
            **self.status,
            "daemon": {**self.status.get("daemon", {}), "reachable": reachable},
        }

    def as_explanation(self, name: str, now: datetime) -> dict[str, Any] | None:
        """The answer of `explain NAME --json`; None if nothing has that name."""
        found = self.explain.get(name)
        if found is None:
            return None
        witnesses = [_aged(witness, now) for witness in found.get("witnesses") or ()]
        return {**found, "witnesses": witnesses}


def is_ok(status: Mapping[str, Any]) -> bool:
    """Whether a person may go back to sleep."""
    targets = status.get("targets", ())
    return (
        bool(targets)
        and not any(target.get("state") in UNWELL for target in targets)
        and not any(is_loud(alert) for alert in status.get("alerts", ()))
        and not status.get("approvals")
        and not status.get("problems")
    )


def is_loud(alert: Mapping[str, Any]) -> bool:
    return (
        alert.get("state") == "firing"
        and alert.get("severity") in LOUD
        and not alert.get("silenced", False)
    )


def _aged(witness: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    at = witness.get("at")
    moment = datetime.fromisoformat(at) if isinstance(at, str) else at
    return {**witness, "age_seconds": None if moment is None else age(moment, now)}


def age(at: datetime, now: datetime) -> float:
    """Seconds since `at`. A clock set back makes nothing older than it is."""
    return round(max(0.0, (now - at).total_seconds()), 3)


def rfc3339(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_json(value: Any) -> bytes:
    """`value` as JSON that every parser takes: no NaN, no infinity, no broken text."""
    try:
        text = _dump(value)
    except ValueError:
        text = _dump(_finite(value))
    # A lone surrogate becomes \udc80, which is exactly how JSON spells it.
    return text.encode("utf-8", "backslashreplace")


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)


def _plain(value: object) -> object:
    return rfc3339(value) if isinstance(value, datetime) else str(value)


def _finite(value: Any) -> Any:
    """Unknown is null in every answer."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
