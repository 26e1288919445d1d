"""Why a container must not be recreated, found before anything is changed.

A refusal here leaves the world as it was; whatever is only noticed later has to be taken back.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sentinel.core.recreate.inspected import (
    JOINED,
    Raw,
    borrows_from,
    joins,
    labels_of,
    links_of,
    name_of,
    network_mode,
    part,
    rows,
)
from sentinel.core.recreate.spec import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    guard: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What has to be asked of the host beside the container itself.

    `networks` are the ids of those there are, by name. `missing` are the sources of bind mounts
    that are not there: the engine would quietly make an empty folder of each.
    """

    networks: Mapping[str, str]
    missing: Collection[str] = ()


def preflight(source: Source, around: Surroundings) -> list[Refusal]:
    """Empty: it may be recreated."""
    return [
        *_owned_by_others(source.container),
        *_needed_by_others(source),
        *_impossible(source, around),
    ]


def bind_sources(container: Raw) -> list[str]:
    """The paths of the host that are mounted into it."""
    mounts = rows(container, "Mounts")
    return sorted({str(m.get("Source")) for m in mounts if m.get("Type") == "bind"})


def orchestrator_of(labels: Mapping[str, Any]) -> str:
    """Whose a container is that another program keeps, by its labels; empty if nobody's."""
    return next((what for p, what in _ORCHESTRATORS if any(x.startswith(p) for x in labels)), "")


def belongs_to(orchestrator: str) -> str:
    return f"it belongs to {orchestrator}, which would replace it: change it there"


def composed_by(container: Raw) -> Mapping[str, str] | None:
    """Where Docker Compose has it from, or None: the next `up` of a changed file reverts us."""
    labels = labels_of(container)
    if not labels.get("com.docker.compose.project"):
        return None
    keys = ("project", "service", "project.working_dir", "project.config_files")
    return {key: str(labels.get(f"com.docker.compose.{key}") or "") for key in keys}


GONE_ONCE_STOPPED = "it was started with --rm: once stopped it is gone, with its volumes"
_ORCHESTRATORS = (
    ("com.docker.swarm.", "a Docker Swarm service"),
    ("io.kubernetes.", "a Kubernetes pod"),
    ("io.cri-containerd.", "a Kubernetes pod"),
    ("com.hashicorp.nomad.", "a Nomad allocation"),
    ("com.amazonaws.ecs.", "an Amazon ECS task"),
)
_BEYOND = {"removing": "is being removed", "dead": "is dead"}


def _owned_by_others(container: Raw) -> Iterator[Refusal]:
    if orchestrator := orchestrator_of(labels_of(container)):
        yield Refusal(guard="foreign_orchestrator", because=belongs_to(orchestrator))
        return
    if part(container, "HostConfig").get("AutoRemove") is True:
        yield Refusal(guard="cannot_recreate", because=GONE_ONCE_STOPPED)


def _needed_by_others(source: Source) -> Iterator[Refusal]:
    me = source.container
    mine = {str(me.get("Id")), name_of(me)}
    for other in source.others:
        if other.get("Id") == me.get("Id"):
            continue
        shares = any(_means(text, mine) for text in (*joins(other), *borrows_from(other)))
        linked = any(link.partition(":")[0] == name_of(me) for link in links_of(other))
        if shares or linked:
            how = "is linked to it" if linked and not shares else "lives in it"
            because = f"container {name_of(other)} {how} and would be cut off"
            yield Refusal(guard="others_depend", because=because)


def _means(text: str, ids: Collection[str]) -> bool:
    return text in ids or (len(text) >= 12 and any(known.startswith(text) for known in ids))


def _impossible(source: Source, around: Surroundings) -> Iterator[Refusal]:
    container = source.container
    for because in (
        *_gone(source),
        *_unreachable_networks(container, around.networks),
        *(f"{path}, which it mounts, is not there any more" for path in sorted(around.missing)),
    ):
        yield Refusal(guard="cannot_recreate", because=because)


def _gone(source: Source) -> Iterator[str]:
    container = source.container
    status = str(part(container, "State").get("Status") or "")
    if status in _BEYOND:
        yield f"it {_BEYOND[status]}"
    if source.image is None:
        yield f"its image {container.get('Image')} is gone: only the container still has it"
    there = {text for other in source.others for text in (str(other.get("Id")), name_of(other))}
    for needed in (*joins(container), *borrows_from(container)):
        if not _means(needed, there):
            yield f"container {needed[:12]}, which it is joined to, is gone"
    for link in links_of(container):
        if link.partition(":")[0] not in there:
            yield f"container {link.partition(':')[0]}, which it is linked to, is gone"


def _unreachable_networks(container: Raw, known: Mapping[str, str]) -> Iterator[str]:
    if network_mode(container).startswith(JOINED):
        return
    networks: Mapping[str, Any] = part(container, "NetworkSettings", "Networks")
    for name, endpoint in sorted(networks.items()):
        was = endpoint.get("NetworkID")
        if name not in known:
            yield f"its network {name} is gone"
        elif was and known[name] != was:
            yield f"its network {name} was made anew since: it could not be started again either"
