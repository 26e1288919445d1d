import json

import pytest

from sentinel.core.dockerspeak import container_of
from sentinel.core.gpu.mapping import given_to, used_by, wants_gpus
from sentinel.core.gpu.owner import containers_of
from tests.core.gpu.gpus import BOX, OTHER_BOX, A, B, C, D, container, gpu, held, owner
from tests.gpu.driver import FIXTURES

FOUR = [gpu(0), gpu(1), gpu(2), gpu(3)]
TWINS = [gpu(0, uuid="GPU-ab1"), gpu(1, uuid="GPU-ab2")]
MIG = "MIG-99999999-1111-2222-3333-444444444444"


@pytest.mark.parametrize(
    ("devices", "uuids"),
    [
        (["gpu:all"], (A, B, C, D)),
        (["gpu:2"], (A, B)),
        (["gpu:0"], ()),
        (["gpu:9"], (A, B, C, D)),
        (["gpu=1"], (B,)),
        (["gpu=2", "gpu=0"], (A, C)),
        (["gpu=all"], (A, B, C, D)),
        ([f"gpu={C}"], (C,)),
        (["gpu=GPU-bbbb"], (B,)),
        (["gpu=GPU-"], ()),
        (["gpu=GPU-eeee"], ()),
        (["gpu=1:0"], (B,)),
        (["gpu= 1"], (B,)),
        (["gpu=nvidia.com/gpu=3"], (D,)),
        (["gpu=٣"], ()),
        (["nvidia.com/gpu=0"], (A,)),
        (["nvidia.com/gpu=all"], (A, B, C, D)),
        (["nvidia.com/gpu=gpu2"], (C,)),
        (["nvidia.com/gpu=mig1:0"], (B,)),
        ([f"nvidia.com/gpu={A}"], (A,)),
        (["runtime.nvidia.com/gpu=1"], (B,)),
        (["management.nvidia.com/gpu=all"], (A, B, C, D)),
        (["example.com/gpu=0"], ()),
        (["/dev/nvidia3"], (D,)),
        (
            ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"],
            (A,),
        ),
        (["/dev/nvidia7"], ()),
        (["/dev/dri/card0", "/dev/kfd"], ()),
        ([""], ()),
        ([], ()),
    ],
    ids=str,
)
def test_the_gpus_that_a_container_was_started_with(
    devices: list[str], uuids: tuple[str, ...]
) -> None:
    assert given_to(container(*devices), FOUR) == uuids


def test_a_device_node_goes_by_its_minor_number_and_not_by_the_drivers_order() -> None:
    turned = [gpu(0, minor=1), gpu(1, minor=0)]

    assert given_to(container("/dev/nvidia0"), turned) == (B,)
    assert given_to(container("gpu=0"), turned) == (A,)


def test_a_name_that_fits_two_gpus_is_neither() -> None:
    assert given_to(container("gpu=GPU-ab"), TWINS) == ()
    assert given_to(container("gpu=GPU-ab2"), TWINS) == ("GPU-ab2",)


@pytest.mark.parametrize("name", [MIG, "MIG-9999", f"MIG-{B}/3/0"], ids=["uuid", "short", "old"])
def test_a_part_of_a_gpu_is_on_that_gpu(name: str) -> None:
    parts = [gpu(0), gpu(1, mig=True, mig_uuids=(MIG,))]

    assert given_to(container(f"gpu={name}"), parts) == (B,)


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        (None, (B, C, D)),
        ("0", (B,)),  # the first that it sees, not the first of the host
        ("1,2", (C, D)),
        ("2,0", (B, D)),
        (C, (C,)),
        (f"GPU-dddd,{B}", (B, D)),
        (A, ()),  # not given to it
        ("0,7,1", (B,)),  # CUDA stops at what is none
        ("-1", ()),
        ("NoDevFiles", ()),
        ("", ()),
        (" 1 , 0 ", (B, C)),
    ],
    ids=str,
)
def test_cuda_sees_less_than_the_container(visible: str | None, uuids: tuple[str, ...]) -> None:
    box = container("gpu=1", "gpu=2", "gpu=3", cuda_visible=visible)

    assert given_to(box, FOUR) == uuids


def test_its_processes_tell_where_a_container_runs() -> None:
    gpus = [gpu(0, processes=held(p1=1)), gpu(1, processes=held(p2=1, p3=1)), gpu(2)]
    owners = {1: owner(OTHER_BOX), 2: owner(), 3: owner("9" * 64, BOX)}

    assert used_by(container("gpu:all"), gpus, owners) == (B,)


def test_without_processes_nothing_is_known_of_where_it_runs() -> None:
    assert used_by(container("gpu:all"), [gpu(0, processes=None), gpu(1)], {}) == ()


@pytest.mark.parametrize(
    ("device", "wants"),
    [
        ("gpu:all", True),
        ("gpu=0", True),
        ("nvidia.com/gpu=0", True),
        ("/dev/nvidia1", True),
        ("/dev/nvidiactl", False),
        ("/dev/kfd", False),
        ("amd.com/gpu=0", False),
    ],
)
def test_whether_a_container_was_started_with_nvidia_gpus(device: str, wants: bool) -> None:
    assert wants_gpus(container(device)) is wants


def test_a_real_container_with_its_device_nodes_passed_one_by_one() -> None:
    folder = FIXTURES / "nvidia-h200"
    box = container_of(json.loads((folder / "inspect.json").read_text()))
    ids = containers_of((folder / "cgroup_in_container.txt").read_text())
    gpus = [gpu(0, processes=held(p860=1)), gpu(1)]

    assert box.cuda_visible == "0"
    assert given_to(box, gpus) == (A,)
    assert ids == (box.id,)
    assert used_by(box, gpus, {860: owner(*ids)}) == (A,)
