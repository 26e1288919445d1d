"""The lifecycle's memory: groups with their next tick, and what each channel was told.

This is what is kept on disk. A group that only ticks on is not written again: its `next_at`
is then some earlier tick, from which the later ones follow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.dispatch.alert import INCIDENT, Alert

GroupId = tuple[str, str]
"""Key and receiver: two routes with the same matchers share their keys."""

ToldId = tuple[str, str]
"""Key of the group, and channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    key: str
    receiver: str
    route_key: str
    labels: Mapping[str, str]
    next_at: datetime
    has_flushed: bool
    members: tuple[str, ...]  # fingerprints

    @property
    def id(self) -> GroupId:
        return self.key, self.receiver


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The last message of a group to a channel: which alerts it said are firing, and resolved."""

    group_key: str
    channel: str
    firing: frozenset[str]  # fingerprints
    resolved: frozenset[str]
    at: datetime

    @property
    def id(self) -> ToldId:
        return self.group_key, self.channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What must be written."""

    alerts_put: tuple[Alert, ...] = ()
    alerts_forgotten: tuple[str, ...] = ()  # fingerprints
    groups_put: tuple[Group, ...] = ()
    groups_forgotten: tuple[GroupId, ...] = ()
    told_put: tuple[Told, ...] = ()
    told_forgotten: tuple[ToldId, ...] = ()


def has_left(labels: Mapping[str, str], alert: Alert) -> bool:
    """Whether an alert of a group with these labels has gone over to another incident."""
    return INCIDENT in labels and labels[INCIDENT] != alert.incident
