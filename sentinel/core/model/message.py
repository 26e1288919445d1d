"""A message owed to people: the facts, before any receiver gives them a form.

Wording, language and layout belong to the adapter of each receiver; a `Notice` holds only
what is true. It is stored as JSON in the outbox, so that a restart
of the daemon sends the same facts.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["alert", "held", "approval", "action", "resolved", "digest", "test", "audit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFacts:
    """One alert as Alertmanager's webhook carries it."""

    status: Literal["firing", "resolved"]
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str  # RFC 3339
    ends_at: str = "0001-01-01T00:00:00Z"
    fingerprint: str = ""
    generator_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionFacts:
    """What was done, or would be. `guard` names what holds it back, if anything does."""

    action: str
    would: bool  # True: it was not done
    guard: str | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    kind: Kind
    group_key: str
    group_labels: dict[str, str]
    alerts: tuple[AlertFacts, ...]
    incident: dict[str, Any] | None  # I of the contract, without its timeline
    decision: DecisionFacts | None = None
    headline: str = ""  # one sentence a tired person understands
    facts: dict[str, str] = field(default_factory=dict)  # target, model, state, cause, since …
    line: dict[str, Any] | None = None  # of the audit
