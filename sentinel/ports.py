"""The promises the core asks of the outside world.

A port is written in the core's words, is as small as its one caller needs, and says
which errors it raises. Adapters implement ports; only `runtime.app` knows which.
Looking at containers and acting on them are two ports, so that one day the hands can
be a process of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from sentinel.core.alerting.outside import Answers, Question
from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import HostGpus
from sentinel.core.host.kernel_log import KernelLine
from sentinel.core.host.reading import Disks, HostReading
from sentinel.core.logrecords import Record
from sentinel.core.model.container import Container, EngineEvent, Summary
from sentinel.core.model.message import Notice
from sentinel.core.sockets import Sockets


class Clock(Protocol):
    """The only source of time. `now` is for records, `monotonic` for durations."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...


class ContainerEyes(Protocol):
    """Looks at containers. Every method raises `Transient` when the engine does not answer."""

    def list(self) -> Sequence[Summary]: ...

    def inspect(self, container_id: str) -> Container | None:
        """The container as it is now, or None if there is none of that id."""
        ...

    def log_tail(self, container_id: str, *, lines: int, since: datetime | None = None) -> str:
        """The last `lines` of the container's log, without terminal colours.

        `since`, the start of a launch, leaves out what earlier launches said.
        """
        ...


class ContainerHands(Protocol):
    """Acts on containers, and only on the very one that was seen.

    Both methods are safe to repeat. Each raises `Permanent` if the container is no longer
    the one seen (another id, or started since), `Transient` if the engine refused, and
    `Ambiguous` if the answer never came.
    """

    def stop(self, container_id: str, *, if_started_at: datetime, grace: int) -> None:
        """Stop it, giving it `grace` seconds. Nothing happens if it is not running."""
        ...

    def start(self, container_id: str, *, if_started_at: datetime) -> None:
        """Start it. Nothing happens if it has been started since `if_started_at`."""
        ...


class ContainerLogs(Protocol):
    """The logs of containers, as they are written."""

    async def follow(
        self,
        container_id: str,
        *,
        since: str,
        tty: bool,
        to_the_end: bool,
        heard: Callable[[Sequence[Record]], None],
    ) -> None:
        """Hand the lines written at `since` (`seconds.nanoseconds`) or later to `heard`.

        Goes on with what is written next, unless it is only wanted `to_the_end`. Returns when
        the log ends, which it may do at any time: ask again from the last line. Raises
        `Permanent` if there is no such container or its log cannot be read at all, `Transient`
        if it could not be had this time; what `heard` raises ends it.
        """
        ...


class EngineEvents(Protocol):
    """The engine's own stream of events: a wake-up, never the truth."""

    def follow(
        self,
        since_ns: int | None,
        *,
        opened: Callable[[], None],
        heard: Callable[[EngineEvent], None],
    ) -> None:
        """Call `opened` once the stream is open, then `heard` for each event; return when it ends.

        Whatever happened before `opened` may have been missed: that is the moment to look at
        everything. Ends also on silence and on a broken connection; raises `Transient` if it
        could not be opened at all. `since_ns` replays what the engine still remembers after
        that instant.
        """
        ...


class Notifier(Protocol):
    """Delivers one notice to one channel. May deliver twice; must not lie about once."""

    async def send(self, notice: Notice) -> None:
        """Raises `Transient` (with fact `retry_after`, seconds, if the other side said so) or
        `Permanent`; neither may carry the channel's secret.
        """
        ...


class RuleSource(Protocol):
    """A Prometheus elsewhere that evaluates the expressions of rules."""

    def ask(self, questions: Sequence[Question], *, within: timedelta) -> Answers:
        """Evaluate each expression at its instant, all of them `within` that time.

        Raises nothing: what the other side says of one expression is that one's outcome
        (`Transient` or `Permanent`), and what ends the whole is `broken`.
        """
        ...


class GpuEyes(Protocol):
    """Looks at the GPUs of this host. Raises nothing: an absence is a value.

    A call may never return, as the driver's own may not: it belongs into a lane.
    """

    def read(self) -> HostGpus: ...


class ProcessEyes(Protocol):
    """Looks at the processes of this host. Raises nothing."""

    @property
    def sees_host(self) -> bool:
        """Whether all processes of the host are seen, by the host's ids."""
        ...

    def owner(self, pid: int) -> Owner: ...

    def device_rules(self, pid: int) -> str | None:
        """`devices.list` of its control group, if that is of version 1 and readable."""
        ...


class HostEyes(Protocol):
    """Looks at this host's memory and filesystems. Raises nothing: an absence is a value."""

    def read(self, mains: Mapping[str, int | None]) -> HostReading:
        """`mains`: the first process of each container, by container id."""
        ...

    def disks(self, paths: Mapping[str, Sequence[str]]) -> Disks:
        """The filesystems that these lie on, by whose they are.

        A filesystem over a network may never answer: this belongs into a lane of its own.
        """
        ...


class KernelLog(Protocol):
    """The log of this host's kernel."""

    def read(self, wait: float) -> Sequence[KernelLine]:
        """What matters of what was logged since the last call; at first, of what is left of old.

        Waits up to `wait` seconds for the first of it. Raises `Permanent` if the log may not
        be read here.
        """
        ...


class ConnectionEyes(Protocol):
    """Looks at the TCP sockets in a container's own network. Raises nothing."""

    def look(self, pid: int, container_id: str, port: int) -> Sockets | None:
        """The sockets on `port`; None if they cannot be seen. `pid` is one of its processes."""
        ...
