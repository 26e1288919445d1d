"""All that is at hand about one case: what advice and inference look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sentinel.core.diagnosis.facts import Facts
from sentinel.core.diagnosis.log import LogReading
from sentinel.core.diagnosis.traces import Launch
from sentinel.core.dockerspeak import container_of
from sentinel.core.model.container import Container


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the container may have, from its inspect. None: not said."""

    memory: int | None = None  # bytes; 0 is none
    shm: int | None = None  # bytes
    shares_ipc: bool = False  # with the host: /dev/shm is the host's


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    reading: LogReading = field(default_factory=LogReading)
    launch: Launch | None = None
    exit_code: int | None = None
    container: Container | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def facts(self) -> Facts:
        return self.reading.facts


def inspected(document: Any) -> tuple[Container, Limits] | None:
    """Of an inspect, alone or in the list that `docker inspect` prints; None if it is none."""
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, Mapping) or not isinstance(document.get("State"), Mapping):
        return None
    host = document.get("HostConfig")
    host = host if isinstance(host, Mapping) else {}
    limits = Limits(
        memory=_bytes(host.get("Memory")),
        shm=_bytes(host.get("ShmSize")) or None,
        shares_ipc=host.get("IpcMode") == "host",
    )
    return container_of(document), limits


def _bytes(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(case: Case, name: str) -> float | None:
    value = case.facts.get(name)
    return float(value) if isinstance(value, int | float) else None


def text(case: Case, name: str) -> str:
    """A fact as one writes it; empty if it is not known."""
    value = case.facts.get(name)
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
