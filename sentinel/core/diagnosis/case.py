"""All that is at hand about one case: what advice and inference look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sentinel.core.diagnosis.facts import Facts
from sentinel.core.diagnosis.log import LogReading
from sentinel.core.diagnosis.traces import Launch
from sentinel.core.dockerspeak import container_of
from sentinel.core.model.container import Container

_QUOTES = frozenset({"wrong", "section"})  # facts that are pieces of a sentence


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
    container = container_of(document)
    return container, limits_of(container)


def limits_of(container: Container) -> Limits:
    return Limits(
        memory=container.memory_limit, shm=container.shm_size, shares_ipc=container.shares_ipc
    )


def without_quotes(case: Case) -> Case:
    """Without what would quote the log: its numbers and what they mean stay."""
    reading, launch = case.reading, case.launch
    facts = {name: value for name, value in reading.facts.items() if name not in _QUOTES}
    return replace(
        case,
        reading=replace(reading, facts=facts, more=()),
        launch=replace(launch, error=None) if launch else None,
    )


def number(case: Case, name: str) -> float | None:
    value = case.facts.get(name)
    return float(value) if isinstance(value, int | float) else None


def text(case: Case, name: str) -> str:
    """A fact as one writes it; empty if it is not known."""
    value = case.facts.get(name)
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
