"""What the daemon last wrote of itself, for when it does not answer.

The answer has the shape of `status --json`, says that the daemon is not reachable, and is
never `ok`: old good news is no news.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FILE = "status.json"


def last_known(state: Path) -> dict[str, Any]:
    file = state / FILE
    try:
        found = json.loads(file.read_bytes())
        at = datetime.fromisoformat(found["at"])
        age = max(0.0, round((_now() - at).total_seconds(), 3))
    except (OSError, ValueError, TypeError, KeyError) as error:
        return _nothing(f"no last known state: cannot read {file}: {_why(error)}")
    daemon = {**found.get("daemon", {}), "reachable": False}
    return {**found, "age_seconds": age, "ok": False, "daemon": daemon}


def _nothing(because: str) -> dict[str, Any]:
    daemon = dict.fromkeys(("version", "mode", "started_at", "paused_until"))
    return {
        "at": None,
        "age_seconds": None,
        "ok": False,
        "daemon": {"reachable": False, **daemon},
        "targets": [],
        "alerts": [],
        "approvals": [],
        "problems": [because],
    }


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a command has no loop to be told the time by
