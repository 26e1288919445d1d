"""One line of history: when, what, because, by whom."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

SENTINEL = "sentinel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    at: datetime
    event: str
    because: str
    by: str = SENTINEL
    target: str | None = None
    incident: int | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
