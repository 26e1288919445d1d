"""What Sentinel can know about a container it looks after."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class State(StrEnum):
    """Names from the contract; tools outside rely on them."""

    STOPPED = "stopped"
    STARTING = "starting"
    RESTARTING = "restarting"
    IDLE = "idle"
    SERVING = "serving"
    SATURATED = "saturated"
    HUNG = "hung"
    FAILED = "failed"
    SLEEPING = "sleeping"
    STOPPING = "stopping"
    PAUSED = "paused"
    UNKNOWN = "unknown"


class Traffic(StrEnum):
    ACTIVE = "active"
    DRAINING = "draining"
    DRAINED = "drained"
    WEIGHTED = "weighted"
    UNMANAGED = "unmanaged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a target answers HTTP, and how that was found."""

    url: str  # scheme://host:port, no path
    found_by: str  # "override" | "published port" | "container address" | "host network"

    @property
    def instance(self) -> str:
        """Prometheus's `instance`: host:port."""
        return self.url.split("://", 1)[-1].rstrip("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of one HTTP request to a target. Failures are values: see `failure`."""

    at: datetime
    took: float  # seconds
    status: int | None = None
    body: bytes = b""
    failure: str = ""  # "" | refused | timeout | too_large | unreachable | malformed
    says: str = ""  # the failure in a few words, for people

    @property
    def ok(self) -> bool:
        return not self.failure and self.status is not None and self.status // 100 == 2

    @property
    def is_not_offered(self) -> bool:
        """The server has no such path: neither a good nor a bad word of it."""
        return not self.failure and self.status in (404, 405, 501)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Requests of others that one launch has completed, by the counters of its own series."""

    completed: int  # by each engine, at least
    waiting: int
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What came of asking a target for one token."""

    at: datetime
    took: float  # seconds
    ok: bool
    model: str | None = None
    says: str = ""  # why not, in a few words
    refused: bool = False  # nobody listens
    timed_out: bool = False  # no answer yet: it may wait its turn behind the requests of others
    unauthorised: bool = False  # 401/403: a configuration fault, not the engine's
    unsupported: bool = False  # the API server refused by itself: says nothing of the engine

    @property
    def is_silent(self) -> bool:
        """No answer, or one that only a sick engine gives."""
        return not (self.ok or self.refused or self.unauthorised or self.unsupported)

    @property
    def says_something(self) -> bool:
        """It serves, or asking again would never tell."""
        return self.ok or self.unauthorised or self.unsupported
