"""GPUs, processes and containers for tests, with what a test does not care about filled in."""

from typing import Any

from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import Driver, GpuProcess, GpuReading, HostGpus
from sentinel.core.model.container import Container, Status

A, B, C, D = (f"GPU-{letter * 8}-1111-2222-3333-444444444444" for letter in ("a", "b", "c", "d"))
BOX = "5" * 64
OTHER_BOX = "6" * 64
GIB = 1 << 30


def gpu(index: int = 0, **facts: Any) -> GpuReading:
    known = {"uuid": (A, B, C, D)[index], "minor": index, "memory_used": 0, "processes": ()}
    return GpuReading(index=index, **{**known, **facts})


def held(**used: int) -> tuple[GpuProcess, ...]:
    """`p7=100`: process 7 holds 100 bytes."""
    return tuple(GpuProcess(pid=int(name[1:]), used=bytes_) for name, bytes_ in used.items())


def host(*gpus: GpuReading, state: Driver = Driver.OK, **facts: Any) -> HostGpus:
    return HostGpus(state=state, gpus=gpus, **facts)


def owner(*containers: str, state: str = "S", **facts: Any) -> Owner:
    return Owner(state=state, containers=containers, **facts)


def container(*devices: str, cuda_visible: str | None = None, **facts: Any) -> Container:
    known: dict[str, Any] = {
        "id": BOX,
        "name": "t1-a",
        "image": "vllm",
        "image_id": "sha256:1",
        "argv": (),
        "status": Status.RUNNING,
    }
    return Container(**{**known, **facts}, devices=devices, cuda_visible=cuda_visible)
