"""What a person asks of a running daemon. The loop carries it out; `by` is who asked."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Hold every action; of one target, or of all if `target` is None."""

    by: str
    target: str | None = None
    for_: timedelta | None = None  # None: until `resume`


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    by: str
    target: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    by: str
    incident: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approve:
    by: str
    intent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    by: str
    intent: str
    because: str = ""


Command = Pause | Resume | Reload | Acknowledge | Approve | Reject
