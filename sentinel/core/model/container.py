"""A container, in our words, as the engine described it at one moment.

Nothing here is fetched lazily: a `Container` is one `inspect`, frozen, so that a decision
can be checked against the very facts it was made from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Status(StrEnum):
    """Docker's `State.Status`, with its names."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    RESTARTING = "restarting"
    REMOVING = "removing"
    EXITED = "exited"
    DEAD = "dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One row of the container list. `fingerprint` changes whenever an inspect is due."""

    id: str
    name: str
    image: str
    command: str
    labels: Mapping[str, str]
    status: Status
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPort:
    """One TCP port of the container that the host listens on."""

    container_port: int
    host_ip: str
    host_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    id: str
    name: str
    image: str
    image_id: str
    argv: tuple[str, ...]  # entrypoint and command, as they are executed
    labels: Mapping[str, str] = field(default_factory=dict)
    env_port: int | None = None
    status: Status
    pid: int | None = None
    exit_code: int | None = None
    error: str = ""  # Docker's own, e.g. when a start failed
    oom_killed: bool = False
    created_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    restart_count: int = 0
    restart_policy: str = "no"
    auto_remove: bool = False
    stop_timeout: int | None = None  # seconds
    stop_signal: str = "SIGTERM"
    tty: bool = False
    host_network: bool = False
    addresses: tuple[str, ...] = ()  # container IP addresses, network by name order
    ports: tuple[PublishedPort, ...] = ()
    devices: tuple[str, ...] = ()  # GPU requests and device nodes, for the ledger of launches
    cuda_visible: str | None = None  # CUDA_VISIBLE_DEVICES inside
    manually_stopped: bool | None = None  # Docker's own record; None = not readable
    environment: Mapping[str, str] = field(default_factory=dict)  # without secrets
    memory_limit: int | None = None  # bytes; 0: there is none; None: not said
    shm_size: int | None = None  # bytes
    shares_ipc: bool = False  # with the host: /dev/shm is the host's
    written_paths: tuple[str, ...] = ()  # of the host: its own layer, and what is mounted to write

    @property
    def is_up(self) -> bool:
        """Running as a program. A container waiting for Docker's next try is not."""
        return self.status in (Status.RUNNING, Status.PAUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineEvent:
    """One thing the container engine said had happened. A hint; an inspect is the truth."""

    at: datetime
    at_ns: int
    action: str  # start die oom kill stop destroy rename pause unpause restart update create pull
    container_id: str  # empty: of an image, which `name` names
    name: str
    exit_code: int | None = None
    signal: str = ""
