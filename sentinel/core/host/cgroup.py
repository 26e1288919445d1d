"""The control group of a container: where it is, and what its memory files say.

Version 1 keeps a tree for each controller, version 2 one for all; a host may have both. Who
asks must try every place, because a daemon in a container may see but a part of the tree.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_UNLIMITED = 1 << 62  # what version 1 says instead of "max", and above


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupReading:
    """Memory of one container. A field is None where its kernel does not tell it."""

    used: int | None = None  # bytes, with the page cache
    limit: int | None = None  # bytes; None: no limit
    kills: int | None = None  # processes that the kernel ended in it, since it was made
    failures: int | None = None  # times its limit was hit
    pressure: float | None = None  # share of the last minute in which something waited for memory
    pids: tuple[int, ...] = ()


def places(container_id: str, membership: str) -> Iterator[tuple[int, str]]:
    """Version and path of where its memory is accounted for; the likeliest first.

    `membership`: the text of /proc/<pid>/cgroup of its first process; empty if it cannot be read.
    """
    for line in membership.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield 2, _own_part(container_id, path)
        elif "memory" in controllers.split(","):
            yield 1, _own_part(container_id, path)
    for version in (2, 1):
        yield version, f"/system.slice/docker-{container_id}.scope"
        yield version, f"/docker/{container_id}"


def _own_part(container_id: str, path: str) -> str:
    """A process may sit in a group below its container's, which accounts for them all."""
    before, found, after = path.partition(container_id)
    return before + found + after.partition("/")[0]


def reading_of(files: Mapping[str, str]) -> CgroupReading:
    """`files`: texts by name, of either version."""
    events = numbers_of(files.get("memory.events", "") or files.get("memory.oom_control", ""))
    hits = events.get("max", _number(files.get("memory.failcnt")))
    limit = _number(files.get("memory.max") or files.get("memory.limit_in_bytes"))
    pids = files.get("cgroup.procs", "").split()
    return CgroupReading(
        used=_number(files.get("memory.current") or files.get("memory.usage_in_bytes")),
        limit=limit if limit is not None and limit < _UNLIMITED else None,
        kills=events.get("oom_kill"),
        failures=hits,
        pressure=pressure_of(files.get("memory.pressure", "")).get("some"),
        pids=tuple(int(pid) for pid in pids if pid.isdecimal()),
    )


def numbers_of(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def pressure_of(text: str) -> dict[str, float]:
    """Shares (0 to 1) of the last minute, by `some` and `full`, from a pressure file."""
    found = {}
    for line in filter(str.strip, text.splitlines()):
        kind, *fields = line.split()
        values = dict(field.split("=", 1) for field in fields if "=" in field)
        try:
            found[kind] = float(values["avg60"]) / 100
        except (KeyError, ValueError):
            continue
    return found


def _number(text: str | None) -> int | None:
    word = (text or "").strip()
    return int(word) if word.isdecimal() else None
