"""What a person asks of a running daemon. The loop carries it out; `by` is who asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sentinel.core.model.intent import Action
from sentinel.core.model.labels import Matcher


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Do something to a target. It is its own approval; `force` overrides guards by name."""

    by: str
    action: Action
    target: str
    to: int | None = None
    dry_run: bool = False
    force: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PostedAlert:
    """One alert as it arrived: what was left out is None."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    generator_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostAlerts:
    """Alerts of others. Answered only when they are on disk."""

    by: str
    alerts: tuple[PostedAlert, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetSilence:
    """Make a silence, or change the one called `id`. The answer has its `silenceID`."""

    by: str
    id: str | None = None
    matchers: tuple[Matcher, ...]
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireSilence:
    by: str
    id: str


Command = (
    Pause
    | Resume
    | Reload
    | Acknowledge
    | Approve
    | Reject
    | Act
    | PostAlerts
    | SetSilence
    | ExpireSilence
)
