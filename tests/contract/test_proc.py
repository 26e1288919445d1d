"""Processes of this host, real ones and written ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sentinel.adapters.proc import Proc
from sentinel.core.gpu.owner import Owner

BOX = "5" * 64


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "7").mkdir()
    return tmp_path


def write(root: Path, stat: str, cgroup: str = "0::/\n") -> Proc:
    (root / "7" / "stat").write_text(stat)
    (root / "7" / "cgroup").write_text(cgroup)
    return Proc(root, root / "devices")


def test_this_very_process() -> None:
    owner = Proc().owner(os.getpid())

    assert owner.state in ("R", "S")
    assert owner.parent == os.getppid()
    assert not owner.is_over


def test_a_process_that_was_never_there() -> None:
    assert Proc().owner(2**22 + 1) == Owner()
    assert Proc().owner(2**22 + 1).is_over


def test_a_zombie_is_over() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

        assert Proc().owner(child.pid).state == "Z"
        assert Proc().owner(child.pid).is_over


@pytest.mark.parametrize(
    ("stat", "name", "parent"),
    [
        ("7 (VLLM::EngineCor) S 1 7 7 0", "VLLM::EngineCor", 1),
        ("7 (a) b (c) S 12 7", "a) b (c", 12),
        ("7 (x) S", "x", None),
        ("7 (x) S ? 7", "x", None),
    ],
)
def test_a_name_may_hold_anything(root: Path, stat: str, name: str, parent: int | None) -> None:
    owner = write(root, stat).owner(7)

    assert (owner.state, owner.name, owner.parent) == ("S", name, parent)


def test_half_a_file_is_half_an_answer(root: Path) -> None:
    assert write(root, "7 (x", "").owner(7).containers == ()


def test_the_container_of_a_process(root: Path) -> None:
    assert write(root, "7 (x) S 1", f"0::/docker/{BOX}\n").owner(7).containers == (BOX,)


def test_the_devices_that_a_control_group_allows(root: Path) -> None:
    proc = write(root, "7 (x) S 1", f"5:cpu,cpuacct:/a\n3:devices:/docker/{BOX}\n0::/b\n")
    group = root / "devices" / "docker" / BOX
    group.mkdir(parents=True)
    (group / "devices.list").write_text("c 195:0 rw\n")

    assert proc.device_rules(7) == "c 195:0 rw\n"


@pytest.mark.parametrize("cgroup", ["0::/docker/a\n", "3:devices:/docker/none\n", "3\n", ""])
def test_devices_that_cannot_be_told(root: Path, cgroup: str) -> None:
    assert write(root, "7 (x) S 1", cgroup).device_rules(7) is None


@pytest.mark.parametrize(
    ("namespace", "shown", "sees"),
    [
        ("pid:[4026531836]", True, True),
        ("pid:[4026531836]", False, False),  # mounted with hidepid
        ("pid:[4026532001]", True, False),  # in a container
    ],
)
def test_whether_the_hosts_processes_are_seen(
    root: Path, namespace: str, shown: bool, sees: bool
) -> None:
    (root / "self" / "ns").mkdir(parents=True)
    (root / "self" / "ns" / "pid").symlink_to(namespace)
    if shown:
        (root / "1").mkdir()
        (root / "1" / "stat").write_text("1 (systemd) S 0")

    assert Proc(root).sees_host is sees


def test_a_host_that_does_not_say_is_not_seen(root: Path) -> None:
    assert not Proc(root).sees_host
