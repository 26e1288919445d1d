"""The adapters that look at the host: over made-up trees, and on this machine as it is."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.adapters.cgroups import Cgroups
from sentinel.adapters.clock import MachineClock
from sentinel.adapters.host import Host
from sentinel.adapters.kernel_log import KernelLog
from sentinel.core.host.cgroup import CgroupReading
from sentinel.core.model.errors import Permanent

BOX = "0f61c21c194151209784106ecf6d9e0668cc0b16cb492dad7daf849be9c5605c"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.fixture
def cgroups(tmp_path: Path) -> Cgroups:
    return Cgroups(tmp_path / "proc", tmp_path / "cgroup")


def v1(folder: Path, kills: int) -> None:
    write(
        folder,
        memory__oom_control=f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
        memory__limit_in_bytes="1000\n",
        cgroup__procs="7\n",
    )


def v2(folder: Path, kills: int) -> None:
    write(folder, memory__events=f"oom 1\noom_kill {kills}\n", memory__current="5\n")


@pytest.mark.parametrize("membership", [None, f"4:memory:/docker/{BOX}\n", f"0::/../{BOX}\n"])
def test_version_1_is_read(cgroups: Cgroups, tmp_path: Path, membership: str | None) -> None:
    v1(tmp_path / f"cgroup/memory/docker/{BOX}", 3)
    if membership:
        write(tmp_path / "proc/7", cgroup=membership)

    assert cgroups.memory(BOX, 7) == CgroupReading(limit=1000, kills=3, pids=(7,))


@pytest.mark.parametrize("tree", ["cgroup", "cgroup/unified"])
def test_version_2_is_read(cgroups: Cgroups, tmp_path: Path, tree: str) -> None:
    v2(tmp_path / tree / f"models.slice/docker-{BOX}.scope", 2)
    write(tmp_path / "proc/7", cgroup=f"0::/models.slice/docker-{BOX}.scope/init.scope\n")

    assert cgroups.memory(BOX, 7) == CgroupReading(used=5, kills=2)


def test_on_a_host_with_both_the_tree_with_memory_counts(cgroups: Cgroups, tmp_path: Path) -> None:
    v1(tmp_path / f"cgroup/memory/docker/{BOX}", 3)
    write(tmp_path / f"cgroup/unified/docker/{BOX}", cgroup__procs="7\n")
    write(tmp_path / "proc/7", cgroup=f"0::/docker/{BOX}\n4:memory:/docker/{BOX}\n")

    found = cgroups.memory(BOX, 7)

    assert found is not None
    assert found.kills == 3


@pytest.mark.parametrize("pid", [None, 7])
def test_a_container_that_is_gone_has_no_memory(cgroups: Cgroups, pid: int | None) -> None:
    assert cgroups.memory(BOX, pid) is None


# filesystems


def host(tmp_path: Path, mountinfo: str) -> Host:
    write(tmp_path / "self", mountinfo=mountinfo)
    return Host(lambda _one, _pid: None, tmp_path)


def test_two_paths_on_one_filesystem_are_one(tmp_path: Path) -> None:
    mountinfo = "22 1 259:2 / / rw - ext4 /dev/a rw\n23 22 259:2 /x /usr rw - ext4 /dev/a rw\n"

    disks = host(tmp_path, mountinfo).disks({"a": ["/usr", "/"], "b": ["/", "/nowhere/at/all"]})

    assert [each.mountpoint for each in disks.filesystems] == ["/"]
    assert disks.of == {"a": ("/",), "b": ("/",)}
    said = os.statvfs("/usr")
    assert disks.filesystems[0].free == pytest.approx(said.f_bavail * said.f_frsize, rel=0.05)


@pytest.mark.parametrize(
    "mountinfo",
    [
        pytest.param("", id="nothing is mounted"),
        pytest.param("22 1 259:2 / / rw - tmpfs tmpfs rw\n", id="no disk"),
        pytest.param("22 1 259:2 / / rw - squashfs /dev/loop0 ro\n", id="never written"),
    ],
)
def test_what_does_not_fill_up_is_left_out(tmp_path: Path, mountinfo: str) -> None:
    disks = host(tmp_path, mountinfo).disks({"a": ["/usr"]})

    assert disks.filesystems == ()
    assert disks.of == {"a": ()}


def test_a_symbolic_link_lies_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    mountinfo = f"1 1 1:1 / {tmp_path} rw - ext4 a rw\n2 1 2:2 / /usr rw - ext4 b rw\n"

    disks = host(tmp_path, mountinfo).disks({"a": [str(tmp_path / "link")]})

    assert disks.of == {"a": ("/usr",)}


def test_this_machine_can_be_read(tmp_path: Path) -> None:
    here = Host(Cgroups().memory)

    reading, disks = here.read({"0" * 64: 1}), here.disks({"a": [str(tmp_path)]})

    assert reading.memory_total
    assert reading.memory_available
    assert 0 < reading.memory_available <= reading.memory_total
    assert all(0 <= share <= 1 for share in reading.pressure.values())
    assert all(0 <= each.free <= each.size for each in disks.filesystems)


# the kernel's log


class Kmsg:
    """Like /dev/kmsg, it gives one record at each read."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._out = os.open(path, os.O_RDWR)
        fcntl.fcntl(self._out, fcntl.F_SETFL, os.O_DIRECT)  # each write is a record
        self.clock = MachineClock()
        self.log = KernelLog(self.clock, path)

    def says(self, *records: str) -> None:
        for record in records:
            os.write(self._out, record.encode())

    def close(self) -> None:
        self.log.close()
        os.close(self._out)


@pytest.fixture
def kmsg(tmp_path: Path) -> Iterator[Kmsg]:
    made = Kmsg(tmp_path / "kmsg")
    yield made
    made.close()


def test_records_are_read_once_each_and_in_order(kmsg: Kmsg) -> None:
    kmsg.says("3,1,5,-;Killed process 1\n", "6,2,6,-;veth\n", "3,3,7,-;Killed process 2\n")

    texts = [line.text for line in kmsg.log.read(5.0)]

    assert texts == ["Killed process 1", "Killed process 2"]
    assert not kmsg.log.read(0.0)


def test_lines_that_tell_nothing_do_not_end_the_wait(kmsg: Kmsg) -> None:
    kmsg.says("6,2,6,-;veth\n")
    before = kmsg.clock.monotonic()

    assert not kmsg.log.read(0.03)

    assert kmsg.clock.monotonic() - before >= 0.03


def test_a_log_that_may_not_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(Permanent, match="No such file"):
        KernelLog(MachineClock(), tmp_path / "none").read(0.0)


def test_an_empty_file_in_its_place_is_no_log() -> None:
    """As in containers, where it would else be read without end."""
    with pytest.raises(Permanent, match="not the kernel's"):
        KernelLog(MachineClock(), Path("/dev/null")).read(60.0)


def test_the_log_of_this_machine_is_read_or_said_not_to_be() -> None:
    clock = MachineClock()
    try:
        lines = KernelLog(clock).read(0.0)
    except Permanent:
        return
    assert all(line.at <= clock.now() for line in lines)
    assert not KernelLog(clock)._fd
