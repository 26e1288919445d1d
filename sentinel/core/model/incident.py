"""What a person would call one problem: the alerts of one subject, with a timeline."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

SubjectKind = Literal["target", "gpu", "host"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Subject:
    kind: SubjectKind
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    number: int
    subject: Subject
    severity: str
    opened_at: datetime
    quiet_since: datetime | None = None
    resolved_at: datetime | None = None
    diagnosis: Mapping[str, object] = field(default_factory=dict)
    acknowledged_by: str | None = None
    person_called_at: datetime | None = None

    @property
    def id(self) -> str:
        return incident_id(self.number)


def incident_id(number: int) -> str:
    return f"i-{number:06d}"


def incident_number(text: str) -> int | None:
    """The number in `i-000007` (or plain `7`); None if it is neither."""
    digits = text.removeprefix("i-")
    return int(digits) if digits.isascii() and digits.isdigit() else None
