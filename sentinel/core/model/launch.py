"""One start of a target, as the ledger of launches keeps it, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class By(StrEnum):
    """Who started it."""

    DOCKER = "docker"
    SENTINEL = "sentinel"
    OTHER = "other"


class EndedAs(StrEnum):
    OWN = "own"
    PERSON = "person"
    ENGINE_SHUTDOWN = "engine_shutdown"
    CRASH = "crash"
    OOM = "oom"
    UNWITNESSED = "unwitnessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a launch ended. `cause` is a word from the list of causes."""

    kind: EndedAs
    because: str
    cause: str
    at: datetime | None
    exit_code: int | None
    log_line: str = ""  # the line that names the cause; stays on the host, not kept on disk

    @property
    def is_failure(self) -> bool:
        return self.kind in (EndedAs.CRASH, EndedAs.OOM, EndedAs.UNWITNESSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    target: str
    container_id: str
    started_at: datetime
    by: By
    restart_count: int = 0
    ready_at: datetime | None = None
    model: str | None = None
    ending: Ending | None = None
    # what it was made of
    image: str = ""
    image_id: str = ""
    argv: tuple[str, ...] = ()  # without secrets, as is the environment
    environment: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    compose_hash: str = ""
    driver: str = ""  # of the GPUs; empty: not known
    facts: Mapping[str, float | str] = field(default_factory=dict)  # what its log told
