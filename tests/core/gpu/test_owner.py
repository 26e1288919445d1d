import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.gpu.owner import Owner, containers_of, orphaned_bytes
from sentinel.core.gpu.reading import GpuReading
from tests.core.gpu.gpus import BOX, GIB, OTHER_BOX, A, gpu, held, owner
from tests.gpu.driver import FIXTURES


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (f"0::/docker/{BOX}\n", (BOX,)),
        (f"0::/system.slice/docker-{BOX}.scope\n", (BOX,)),
        (f"0::/system.slice/docker-{BOX}.scope/init.scope\n", (BOX,)),
        (f"0::/../{BOX}\n", (BOX,)),
        (f"12:devices:/docker/{BOX}\n1:name=systemd:/docker/{BOX}\n0::/a.slice\n", (BOX,)),
        (f"1:name=systemd:/machine.slice/libpod-{BOX}.scope/container\n", (BOX,)),
        (f"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-{BOX}.scope\n", (BOX,)),
        (f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{BOX}.scope", (BOX,)),
        (f"0::/docker/{BOX}/docker/{OTHER_BOX}\n", (BOX, OTHER_BOX)),
        (f"0::/docker/{BOX} (deleted)\n", (BOX,)),
        ("0::/user.slice/user-0.slice/session-1.scope\n", ()),
        ("0::/\n", ()),
        (f"0::/docker/{BOX}a\n", ()),  # 65 digits are no id
        ("", ()),
        ("\x00 nonsense", ()),
    ],
    ids=[
        "v2 cgroupfs",
        "v2 systemd",
        "an init inside",
        "from another namespace",
        "v1 cgroupfs",
        "podman",
        "containerd",
        "rootless",
        "in a container",
        "deleted",
        "a session",
        "the root",
        "too long",
        "empty",
        "nonsense",
    ],
)
def test_the_container_of_a_process(text: str, ids: tuple[str, ...]) -> None:
    assert containers_of(text) == ids


def test_the_container_of_a_real_engine() -> None:
    text = (FIXTURES / "vllm-0.22.1-h200" / "cgroup_of_engine.txt").read_text()

    assert [len(one) for one in containers_of(text)] == [64]


GONE = Owner()


@pytest.mark.parametrize(
    ("reading", "owners", "orphaned"),
    [
        (gpu(processes=held(p1=5)), {1: owner(BOX)}, 0),
        (gpu(processes=held(p1=5)), {1: owner()}, 0),
        (gpu(processes=held(p1=5, p2=7)), {1: GONE, 2: owner(BOX)}, 5),
        (gpu(processes=held(p1=5)), {1: owner(BOX, state="Z")}, 5),
        (gpu(processes=held(p1=5)), {1: owner(BOX, state="D")}, 0),
        (gpu(processes=held(p1=5)), {1: owner(OTHER_BOX)}, 5),
        (gpu(processes=held(p1=5)), {1: owner(BOX, OTHER_BOX)}, 0),
        (gpu(processes=held(p1=5)), {1: owner(name="VLLM::EngineCor", parent=1)}, 5),
        (gpu(processes=held(p1=5)), {1: owner(name="VLLM::EngineCor", parent=80)}, 0),
        (gpu(processes=held(p1=5)), {1: owner(name="python3", parent=1)}, 0),
        (gpu(processes=held(p1=5)), {}, 0),
        (gpu(memory_used=3 * GIB, memory_reserved=GIB), {}, 3 * GIB),
        (gpu(memory_used=GIB // 2, memory_reserved=GIB), {}, 0),
        (gpu(memory_used=3 * GIB), {}, 2 * GIB),
        (gpu(memory_used=GIB), {}, 0),
        (gpu(memory_used=3 * GIB, mig=True), {}, None),
        (gpu(memory_used=None), {}, None),
        (gpu(processes=None, memory_used=3 * GIB), {}, None),
        (GpuReading(index=0, uuid=A, trouble="lost", processes=()), {}, None),
    ],
    ids=[
        "of a container that runs",
        "of the host's own",
        "its process is gone",
        "its process is a zombie",
        "its process waits for a disk",
        "of a container that is over",
        "nested in one that runs",
        "an engine whose server was killed",
        "an engine with its server",
        "a service of the host",
        "a process not looked at",
        "no process, much used",
        "no process, a little used",
        "no process, the reserve not told",
        "nothing but the reserve",
        "in parts",
        "use not told",
        "processes not told",
        "in trouble",
    ],
)
def test_memory_that_nobody_is_left_to_free(
    reading: GpuReading, owners: dict[int, Owner], orphaned: int | None
) -> None:
    assert orphaned_bytes(reading, owners, {OTHER_BOX}) == orphaned


@given(st.text())
def test_no_text_breaks_the_reading_of_control_groups(text: str) -> None:
    assert all(len(one) == 64 for one in containers_of(text))
