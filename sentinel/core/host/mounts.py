"""Which filesystem a path of the host lies on, and which paths a container writes to."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_OCTAL = re.compile(r"\\([0-7]{3})")
_NO_DISK = frozenset({"tmpfs", "devtmpfs", "ramfs", "hugetlbfs"})
_HIDDEN = "/systemd/inaccessible"  # what a unit's hardening puts over a folder
_FIELDS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    point: str
    device: str  # major:minor; the same for all mounts of one filesystem
    root: str
    kind: str
    read_only: bool  # the filesystem itself, not this mount of it

    @property
    def is_disk(self) -> bool:
        """Something that fills up, and whose figures are about what lies there."""
        hidden = self.root.startswith(_HIDDEN)
        return not (self.read_only or hidden or self.kind in _NO_DISK)


def mounts_of(mountinfo: str) -> list[Mount]:
    """The text of /proc/self/mountinfo; what is mounted over something else comes last."""
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < _FIELDS or not kinds:
            continue
        found.append(
            Mount(
                point=_plain(fields[4]),
                device=fields[2],
                root=_plain(fields[3]),
                kind=kinds[0],
                read_only="ro" in kinds[-1].split(",") if len(kinds) > 1 else False,
            )
        )
    return found


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that an absolute path without symbolic links lies on."""
    parts = path.strip("/").split("/")
    above = {"/", *("/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1))}
    fitting = [mount for mount in mounts if mount.point in above]
    return max(reversed(fitting), key=lambda mount: len(mount.point), default=None)


def name_of(mount: Mount, mounts: Iterable[Mount]) -> str:
    """The shortest mount point of its filesystem, by which people know it."""
    alike = (each.point for each in mounts if each.device == mount.device and each.is_disk)
    return min(alike, key=lambda point: (len(point), point), default=mount.point)


def written_paths(inspected: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths of the host that a container writes to, from Docker's inspect: its own layer or its
    log, and what is mounted into it to be written.
    """
    layers = _map(_map(inspected.get("GraphDriver")).get("Data"))
    own = layers.get("UpperDir") or inspected.get("LogPath")
    mounts = inspected.get("Mounts")
    given = [
        mount.get("Source")
        for mount in map(_map, mounts if isinstance(mounts, Sequence) else ())
        if mount.get("RW") is not False and mount.get("Type") in ("bind", "volume")
    ]
    paths = [path for path in (own, *given) if isinstance(path, str) and path.startswith("/")]
    return tuple(dict.fromkeys(paths))


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _plain(text: str) -> str:
    """Blanks and the like stand as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), text)
