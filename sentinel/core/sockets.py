"""Who listens and who is connected, by the kernel's own table of a network namespace.

Read inside the container's namespace it is a witness that no port mapping, firewall or proxy
can distort. Only connections that outlast a look count: Sentinel's own are closed before the
next one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from sentinel.core.model.container import Container
from sentinel.core.model.target import Endpoint

_LISTEN, _ESTABLISHED = "0A", "01"
_USUAL = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sockets:
    """What concerns one port."""

    listening: bool = False
    ends: frozenset[str] = frozenset()  # the far ends of established connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """What the last looks at the sockets of a target told."""

    at: datetime
    port: int
    listening: bool
    ends: frozenset[str]
    clients: frozenset[str] = frozenset()  # those of others that were there a look before too
    waiting_since: datetime | None = None  # since when some are there, and none of their work


def read_sockets(tables: Iterable[str], port: int) -> Sockets:
    """`tables`: the text of /proc/<pid>/net/tcp and tcp6."""
    ours, listening, ends = f":{port:04X}", False, set[str]()
    for table in tables:
        if ours not in table:
            continue
        for line in table.splitlines()[1:]:
            words = line.split(None, 4)
            if len(words) < 4 or not words[1].endswith(ours):
                continue
            listening = listening or words[3] == _LISTEN
            if words[3] == _ESTABLISHED:
                ends.add(words[2])
    return Sockets(listening=listening, ends=frozenset(ends))


def follow(
    before: Connections | None,
    seen: Sockets,
    port: int,
    at: datetime,
    *,
    own: int = 0,
    is_counted: bool = False,
) -> Connections:
    """Take in a look. `own`: requests of ours under way; `is_counted`: the engine counts work.

    While one of ours is under way nobody new is believed: it looks like any other.
    """
    known = frozenset[str]() if before is None else before.clients if own else before.ends
    clients = seen.ends & known
    since = None
    if clients and not is_counted:
        since = (before.waiting_since if before else None) or at
    return Connections(
        at=at,
        port=port,
        listening=seen.listening,
        ends=seen.ends,
        clients=clients,
        waiting_since=since,
    )


def port_inside(container: Container, endpoint: Endpoint) -> int | None:
    """The port that the server listens on in the container; None if that cannot be told."""
    parts = urlsplit(endpoint.url)
    asked = parts.port or _USUAL.get(parts.scheme)
    if endpoint.found_by in ("container address", "host network"):
        return asked
    mapped = {way.container_port for way in container.ports if way.host_port == asked}
    if len(mapped) == 1:
        return mapped.pop()
    return asked if parts.hostname in container.addresses or container.host_network else None
