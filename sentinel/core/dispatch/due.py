"""Messages that are owed: to whom, of what, and why now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.interval import Interval
from sentinel.core.dispatch.ledger import Told
from sentinel.core.dispatch.route import Route

Seen = tuple[Alert, bool]
"""An alert as it is at one instant, and whether it is resolved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ear:
    """One integration of a receiver."""

    channel: str
    send_resolved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    root: Route
    inhibit_rules: tuple[InhibitRule, ...] = ()
    intervals: Mapping[str, Interval]
    ears: Mapping[str, Sequence[Ear]]  # by receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """One message owed."""

    channel: str
    receiver: str
    group_key: str
    group_labels: Mapping[str, str]
    alerts: tuple[Seen, ...]
    is_repeat: bool = False
    new: frozenset[str] = frozenset()  # fire now, and were not told as firing


def why(
    now_firing: frozenset[str],
    now_resolved: frozenset[str],
    told: Told | None,
    ear: Ear,
    quiet_since: datetime,
) -> Literal["changed", "repeat"] | None:
    """Why a channel should hear of a group; None: it knows, and was told after `quiet_since`."""
    if told is None:
        return "changed" if now_firing else None
    if not now_firing <= told.firing:
        return "changed"
    if not now_firing:
        # Also where nothing is sent of what is over: the log has to know.
        return "changed" if told.firing else None
    if ear.send_resolved and not now_resolved <= told.resolved:
        return "changed"
    return "repeat" if told.at < quiet_since else None
