"""Which GPUs a container uses.

Its processes, where the driver lists them, are proof; what it was started with is only what
it may use. An index is the driver's order, N of /dev/nvidiaN the device's minor number, and an
index in CUDA_VISIBLE_DEVICES counts among what the container sees.
"""

import re
from collections.abc import Mapping, Sequence

from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import GpuReading
from sentinel.core.model.container import Container

_CDI = re.compile(r"(?:[\w-]+\.)*nvidia\.com/[\w-]+=(.+)", re.ASCII)
_NODE = re.compile(r"/dev/nvidia(\d+)", re.ASCII)
_ORDINAL = re.compile(r"(?:gpu|mig)?(\d+)(?::\d+)*", re.ASCII)  # 0, gpu0; 0:1 is a part of 0
_OLD_MIG = re.compile(r"MIG-(GPU-[\w-]+)/\d+/\d+", re.ASCII)

Gpus = Sequence[GpuReading]  # in the driver's order


def wants_gpus(container: Container) -> bool:
    """Whether it was started with any NVIDIA GPU at all."""
    return any(
        device.startswith(("gpu:", "gpu=")) or _NODE.fullmatch(device) or _CDI.fullmatch(device)
        for device in container.devices
    )


def used_by(container: Container, gpus: Gpus, owners: Mapping[int, Owner]) -> tuple[str, ...]:
    """UUIDs of the GPUs on which a process of the container runs."""
    return tuple(
        gpu.uuid
        for gpu in gpus
        if any(
            container.id in owners[process.pid].containers
            for process in gpu.processes or ()
            if process.pid in owners
        )
    )


def given_to(container: Container, gpus: Gpus) -> tuple[str, ...]:
    """UUIDs of the GPUs that it was started with, as far as they can be told."""
    chosen = {gpu.uuid for device in container.devices for gpu in _asked_for(device.strip(), gpus)}
    seen = [gpu for gpu in gpus if gpu.uuid in chosen]
    if container.cuda_visible is not None:
        seen = _visible(container.cuda_visible, seen)
    return tuple(gpu.uuid for gpu in seen)


def _asked_for(device: str, gpus: Gpus) -> Gpus:
    if node := _NODE.fullmatch(device):
        return [gpu for gpu in gpus if gpu.minor == int(node[1])]
    if cdi := _CDI.fullmatch(device):
        return _named(cdi[1], gpus)
    kind, sign, rest = device[:3], device[3:4], device[4:]
    if kind != "gpu":
        return []
    if sign == ":" and rest.isdecimal():
        return gpus[: int(rest)]
    return _named(rest, gpus)


def _named(name: str, gpus: Gpus) -> Gpus:
    """By the word `all`, an index, a UUID, or a part of one of these."""
    name = name.strip()
    if name == "all":
        return gpus
    if cdi := _CDI.fullmatch(name):
        return _named(cdi[1], gpus)
    if ordinal := _ORDINAL.fullmatch(name):
        return [gpu for gpu in gpus if gpu.index == int(ordinal[1])]
    return _by_uuid(name, gpus)


def _by_uuid(name: str, gpus: Gpus) -> Gpus:
    """By UUID, whole or as much of it as tells one from the others."""
    if old := _OLD_MIG.fullmatch(name):
        name = old[1]
    if not name.startswith(("GPU-", "MIG-")) or len(name) == len("GPU-"):
        return []
    found = [gpu for gpu in gpus if any(u.startswith(name) for u in (gpu.uuid, *gpu.mig_uuids))]
    return found if len(found) == 1 else []


def _visible(wanted: str, seen: Gpus) -> list[GpuReading]:
    """As CUDA reads CUDA_VISIBLE_DEVICES: what follows an entry that is none does not count."""
    found: list[GpuReading] = []
    for entry in map(str.strip, wanted.split(",")):
        if entry.isdecimal() and entry.isascii():
            place = int(entry)
            one = seen[place : place + 1]
        else:
            one = _by_uuid(entry, seen)
        if not one:
            break
        found += one
    return [gpu for gpu in seen if gpu in found]
