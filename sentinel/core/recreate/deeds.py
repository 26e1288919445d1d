"""What can be seen of a recreation, what can be done about it, and what only its caller can do.

Values only. Every deed names its container by id, and to do it twice is to do it once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sentinel.core.model.container import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One container that has to do with a plan: the old one, one with its label, or another
    that has one of its names.
    """

    id: str
    name: str
    tx: str  # its label, or empty
    status: Status
    started_at: datetime | None = None
    policy: str = "no"  # the name of its restart policy
    networks: frozenset[str] = field(default_factory=frozenset)

    @property
    def is_up(self) -> bool:
        """Also one that Docker is about to start again."""
        return self.status in (Status.RUNNING, Status.PAUSED, Status.RESTARTING)

    @property
    def was_started(self) -> bool:
        return self.is_up or self.started_at is not None


# --- deeds: what is done to the world


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    name: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    container_id: str
    network: str
    endpoint: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    container_id: str
    grace: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPolicy:
    """Only ever on a stopped container: an update takes the GPUs from a running one."""

    container_id: str
    policy: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    container_id: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    container_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Never its volumes."""

    container_id: str


Deed = Create | Connect | Stop | SetPolicy | Rename | Start | Remove


# --- what the caller has to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Compare it with the old one; then `found_same`, or aim to roll back."""

    container_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prove:
    """It is started: wait until it serves; then aim to commit, or to roll back."""

    container_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandon:
    """It cannot be finished: aim to roll back."""

    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranded:
    """Neither can be had: nothing more is touched, and a person has to look."""

    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Nothing is left to do. `container_id` has the name now."""

    container_id: str


Next = Deed | Check | Prove | Abandon | Stranded | Finished
