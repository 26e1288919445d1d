"""What would become of a container if its `--max-num-seqs` were changed, and why it may not be.

Worked out from what the engine says of the container and its surroundings, before anything is
touched. What is refused here leaves the world as it was.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sentinel.core.recreate.arguments import (
    DEFAULT,
    Absent,
    Edited,
    Found,
    Unclear,
    max_num_seqs_of,
    restored,
    with_max_num_seqs,
)
from sentinel.core.recreate.fit import Load, NoFit, changes_nothing, fit
from sentinel.core.recreate.inspected import (
    ORIGINAL,
    TX,
    Raw,
    chosen_ports,
    command_line_of,
    labels_of,
    name_of,
    part,
)
from sentinel.core.recreate.port import Described
from sentinel.core.recreate.preflight import Refusal, composed_by, preflight


@dataclass(frozen=True, slots=True, kw_only=True)
class Lower:
    """`to` None: as low as it takes to cure `cause`, and not below `floor`."""

    to: int | None = None
    cause: str = ""
    floor: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """The limit that its owner gave it."""


Wanted = Lower | Restore


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowered:
    """The last change of this target that was proved: what it was given, and as which `tx`."""

    tx: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    edited: Edited | None = None
    limit: int | None = None  # what it is to run with, if that is a number
    because: str = ""  # why that one
    refusals: tuple[Refusal, ...] = ()
    patch: str = ""  # for the file that the container is made from
    ports: tuple[str, ...] = ()  # its own that will be published on another port of the host
    deploys: str = ""  # what somebody else is in the middle of doing to it

    @property
    def diff(self) -> tuple[str, ...]:
        return self.edited.diff if self.edited is not None else ()


def change_of(
    described: Described, wanted: Wanted, load: Load, lowered: Lowered | None = None
) -> Change:
    """Same words of the engine, same answer."""
    source = described.source
    container = source.container
    change = _edit(container, wanted, load)
    owners = _other_owner(container, source.others, lowered)
    refusals = (*preflight(source, described.around), *owners, *change.refusals)
    return replace(
        change,
        refusals=refusals,
        patch=_patch(container, change.edited) if change.edited else "",
        ports=tuple(chosen_ports(container)),
        deploys=_deploys(container, source.others),
    )


def limit_of(container: Raw) -> int | None:
    """The limit on its command line, if there is one that counts."""
    found = max_num_seqs_of(command_line_of(container))
    return found.value if isinstance(found, Found) else None


def _edit(container: Raw, wanted: Wanted, load: Load) -> Change:
    command_line = command_line_of(container)
    was = max_num_seqs_of(command_line)
    if isinstance(was, Unclear):
        return _refused(was.guard, was.because)
    if isinstance(wanted, Restore):
        original = labels_of(container).get(ORIGINAL)
        if original is None:
            return _refused("changes_nothing", "it runs with the limit that its owner gave it")
        edited, because = restored(command_line, str(original)), "as its owner wrote it"
    else:
        if isinstance(was, Found):
            load = replace(load, limit=was.value)
        aim = _aim(wanted, load)
        if isinstance(aim, Refusal):
            return Change(refusals=(aim,))
        limit, because = aim
        edited = with_max_num_seqs(command_line, limit)
    if isinstance(edited, Unclear):
        return _refused(edited.guard, edited.because)
    limited = int(edited.now) if edited.now.isdigit() else None
    return Change(edited=edited, limit=limited, because=because)


def _aim(wanted: Lower, load: Load) -> tuple[int, str] | Refusal:
    if wanted.to is None:
        found = fit(wanted.cause, load, floor=wanted.floor)
        if isinstance(found, NoFit):
            return Refusal(guard=found.guard, because=found.because)
        return found.value, found.because
    nothing = changes_nothing(wanted.to, load)
    if nothing is not None:
        return Refusal(guard=nothing.guard, because=nothing.because)
    return wanted.to, "as asked for"


def _refused(guard: str, because: str) -> Change:
    return Change(refusals=(Refusal(guard=guard, because=because),))


# --- others who keep it


_WATCHTOWER = "com.centurylinklabs.watchtower.enable"
_UNIT = "PODMAN_SYSTEMD_UNIT"


def _other_owner(
    container: Raw, others: Sequence[Raw], lowered: Lowered | None
) -> Iterator[Refusal]:
    because = _reverted(container, lowered) or _kept(container, others)
    if because:
        yield Refusal(guard="other_owner", because=because)


def _reverted(container: Raw, lowered: Lowered | None) -> str:
    """Ours has been replaced since, and not by one that took the lower limit over."""
    if lowered is None or labels_of(container).get(TX) == lowered.tx:
        return ""
    limit = limit_of(container)
    if limit is not None and limit <= lowered.limit:
        return ""
    composed = composed_by(container)
    who = f"Docker Compose ({composed['project']})" if composed else "somebody"
    return (
        f"{who} took the limit of {lowered.limit} back by making the container anew: "
        "change it where the container comes from"
    )


def _kept(container: Raw, others: Sequence[Raw]) -> str:
    labels = labels_of(container)
    if unit := labels.get(_UNIT):
        return f"the systemd unit {unit} keeps it: change it there"
    if labels.get(_WATCHTOWER) != "false" and any(_is_watchtower(other) for other in others):
        return "Watchtower keeps the containers of this host: change it where it comes from"
    return ""


def _is_watchtower(other: Raw) -> bool:
    image = str(part(other, "Config").get("Image") or "")
    running = part(other, "State").get("Running") is True
    return running and image.rpartition("/")[2].partition(":")[0] == "watchtower"


_COMPOSES_OWN = "com.docker.compose.replace"


def _deploys(container: Raw, others: Sequence[Raw]) -> str:
    """Docker Compose makes the new one beside the old, as `<id>_<name>`."""
    name = name_of(container)
    for other in others:
        stands_by = re.fullmatch(rf"[0-9a-f]{{12}}_{re.escape(name)}", name_of(other))
        replaces = labels_of(other).get(_COMPOSES_OWN) in (name, container.get("Id"))
        if stands_by or replaces:
            return f"Docker Compose is making {name} anew as {name_of(other)}"
    return ""


# --- for the file it is made from


def _patch(container: Raw, edited: Edited) -> str:
    """In the form of a diff, of a file that is not read: without what else stands there."""
    composed = composed_by(container)
    if composed is None:
        return ""
    file = composed["project.config_files"].partition(",")[0] or "docker-compose.yml"
    was = edited.was
    before = "" if isinstance(was, Absent) else f"-  … {was.form}\n"
    after = "" if edited.now == DEFAULT else f"+  … --max-num-seqs {edited.now}\n"
    where = was.append_where if isinstance(was, Absent) else was.where
    place = f"@@ services: {composed['service']}: {where} @@\n"
    return f"--- {file}\n+++ {file}\n{place}{before}{after}"
