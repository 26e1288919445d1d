"""Lines of real kernels, from 3.10 to 6.18; ids and names of hosts are others."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.host.kernel_log import (
    KernelLine,
    KernelXid,
    Kill,
    KillReader,
    bus_of,
    line_of,
    xids_of,
)

BOOT = datetime(2030, 1, 1, tzinfo=UTC)
BOX = "0f61c21c194151209784106ecf6d9e0668cc0b16cb492dad7daf849be9c5605c"
OTHER = "35f18c48d432510c76e76f2e7a962e64a1372de1dc4abd830417263907bea6e0"

LIMIT_6_18 = f"""\
python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
oom_kill_process.cold+0x8/0x8a
[  pid  ]   uid  tgid total_vm      rss rss_anon rss_file rss_shmem pgtables_bytes swapents oom_score_adj name
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset={BOX},mems_allowed=0,oom_memcg=/docker/{BOX},task_memcg=/docker/{BOX},task=python3,pid=31210,uid=0
Memory cgroup out of memory: Killed process 31210 (python3) total-vm:218660kB, anon-rss:43776kB, file-rss:2448kB, shmem-rss:0kB, UID:0 pgtables:148kB oom_score_adj:0
"""
LIMIT_4_14 = f"""\
stress invoked oom-killer: gfp_mask=0x24000c0, order=0, oom_score_adj=0
Task in /docker/{BOX} killed as a result of limit of /docker/{BOX}
memory: usage 524288kB, limit 524288kB, failcnt 77
Memory cgroup out of memory: Kill process 3429 (stress) score 973 or sacrifice child
Killed process 3430 (VLLM::Worker_TP0) total-vm:138388kB, anon-rss:44028kB, file-rss:0kB, shmem-rss:0kB
"""
LIMIT_5_0 = f"""\
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/system.slice/docker-{BOX}.scope,task_memcg=/system.slice/docker-{BOX}.scope,task=a.out,pid=9188,uid=0
Memory cgroup out of memory: Killed process 9188 (a.out) total-vm:14456kB, anon-rss:10324kB, file-rss:504kB, shmem-rss:0kB
"""
HOST_5_4 = f"""\
systemd invoked oom-killer: gfp_mask=0x6200ca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0
oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=/system.slice/docker-{BOX}.scope,task=VLLM::EngineCor,pid=2092,uid=0
Out of memory: Killed process 2092 (VLLM::EngineCor) total-vm:2546008kB, anon-rss:1665620kB, file-rss:936kB, shmem-rss:0kB, UID:0 pgtables:38108kB oom_score_adj:0
oom_reaper: reaped process 2092 (VLLM::EngineCor), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB
"""
HOST_NUMA = f"""\
oom-kill:constraint=CONSTRAINT_MEMORY_POLICY,nodemask=0,2,cpuset=/,mems_allowed=0-3,global_oom,task_memcg=/docker/{BOX},task=vllm,pid=77,uid=0
Out of memory: Killed process 77 (vllm) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:8kB oom_score_adj:0
"""
HOST_3_10 = """\
Out of memory: Kill process 19961 (python) score 17 or sacrifice child
Killed process 21945 (python), UID 1000, total-vm:33027492kB, anon-rss:31303276kB, file-rss:0kB, shmem-rss:0kB
"""
ABOVE = f"""\
oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/models.slice,task_memcg=/models.slice/docker-{BOX}.scope,task=vllm,pid=5,uid=0
Memory cgroup out of memory: Killed process 5 (vllm) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:8kB oom_score_adj:0
"""
NO_REPORT = """\
Memory cgroup out of memory: Killed process 6 (vllm) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:8kB oom_score_adj:0
"""


def lines(text: str) -> list[KernelLine]:
    return [KernelLine(at=BOOT, text=line) for line in text.splitlines()]


def kills(text: str) -> list[Kill]:
    return list(KillReader().read(lines(text)))


def kill(whose: str, pid: int, name: str, cgroup: str = "", limit: str = "") -> Kill:
    return Kill(at=BOOT, whose=whose, pid=pid, name=name, cgroup=cgroup, limit=limit)  # type: ignore[arg-type]


IN_DOCKER, IN_SCOPE = f"/docker/{BOX}", f"/system.slice/docker-{BOX}.scope"


@pytest.mark.parametrize(
    ("text", "killed"),
    [
        pytest.param(LIMIT_6_18, kill("cgroup", 31210, "python3", IN_DOCKER, IN_DOCKER), id="6.18"),
        pytest.param(
            LIMIT_4_14, kill("cgroup", 3430, "VLLM::Worker_TP0", IN_DOCKER, IN_DOCKER), id="4.14"
        ),
        pytest.param(
            LIMIT_5_0, kill("cgroup", 9188, "a.out", IN_SCOPE, IN_SCOPE), id="5.0, constraint wrong"
        ),
        pytest.param(HOST_5_4, kill("host", 2092, "VLLM::EngineCor", IN_SCOPE), id="host, 5.4"),
        pytest.param(HOST_NUMA, kill("host", 77, "vllm", IN_DOCKER), id="host, of some nodes"),
        pytest.param(HOST_3_10, kill("host", 21945, "python"), id="host, 3.10"),
        pytest.param(
            ABOVE,
            kill("cgroup", 5, "vllm", f"/models.slice/docker-{BOX}.scope", "/models.slice"),
            id="a limit above the container's",
        ),
        pytest.param(NO_REPORT, kill("cgroup", 6, "vllm"), id="without a report"),
    ],
)
def test_who_was_killed_and_whose_memory_had_run_out(text: str, killed: Kill) -> None:
    assert kills(text) == [killed]


def test_the_container_of_a_kill_is_told_by_its_control_group() -> None:
    [limit], [host] = kills(LIMIT_5_0), kills(HOST_5_4)

    assert limit.containers == host.containers == (BOX,)


def test_where_all_of_a_group_die_each_is_told() -> None:
    group = f"""\
{LIMIT_6_18}Tasks in /docker/{BOX} are going to be killed due to memory.oom.group set
Memory cgroup out of memory: Killed process 1 (vllm) total-vm:43400kB, anon-rss:1228kB
Memory cgroup out of memory: Killed process 2 (VLLM::EngineCor) total-vm:1kB, anon-rss:1kB
"""
    assert [(each.pid, each.containers) for each in kills(group)] == [
        (31210, (BOX,)),
        (1, (BOX,)),
        (2, (BOX,)),
    ]


def test_a_report_of_one_is_not_taken_for_another() -> None:
    assert [each.containers for each in kills(LIMIT_6_18 + NO_REPORT)] == [(BOX,), ()]
    assert [each.limit for each in kills(LIMIT_4_14 + HOST_3_10)] == [IN_DOCKER, ""]
    early = LIMIT_6_18.replace("Memory cgroup", "lost: Memory cgroup")
    assert [each.containers for each in kills(early + NO_REPORT)] == [()]


def test_a_kill_may_be_told_in_several_readings() -> None:
    reader, every = KillReader(), lines(LIMIT_6_18)

    found = [kill for line in every for kill in reader.read([line])]

    assert [each.containers for each in found] == [(BOX,)]


@pytest.mark.parametrize(
    "text",
    [
        "vllm[31210]: segfault at 0 ip 00007f3c sp 00007fff error 4",
        "oom_reaper: reaped process 31210 (python3), now anon-rss:0kB",
        "Out of memory and no killable processes...",
        "audit: comm='Killed process 1 (x) total-vm:'",
        "systemd-journald[1]: Out of memory: Killed process 1 (x) total-vm:1kB",
        "oom-kill:constraint=",
        "Killed process",
    ],
)
def test_other_lines_kill_nobody(text: str) -> None:
    assert kills(text) == []


@given(st.text(), st.text(min_size=1, max_size=15).filter(lambda name: "\n" not in name))
def test_any_name_and_any_line_can_be_read(text: str, name: str) -> None:
    assert isinstance(kills(text), list)
    told = LIMIT_6_18.replace("(python3)", f"({name})").replace("task=python3", f"task={name}")
    if len(told.splitlines()) == len(LIMIT_6_18.splitlines()):
        assert [(each.pid, each.containers) for each in kills(told)] == [(31210, (BOX,))]


# records of /dev/kmsg


def test_a_record_is_the_kernels_line_and_when_it_was_written() -> None:
    record = (
        "3,38059,16114098492,-;Memory cgroup out of memory: Killed process 1 (x)\n SUBSYSTEM=y\n"
    )

    assert line_of(record, BOOT) == KernelLine(
        at=BOOT + timedelta(microseconds=16114098492),
        text="Memory cgroup out of memory: Killed process 1 (x)",
    )


@pytest.mark.parametrize(
    "record",
    [
        pytest.param("11,1,5,-;Out of memory: Killed process 1 (x) total-vm:1kB\n", id="a program"),
        pytest.param("6,1,5,-;veth107997c: entered promiscuous mode\n", id="nothing that tells"),
        pytest.param("Out of memory: Killed process 1 (x)", id="no head"),
        pytest.param("a,b,c;Killed process", id="a head of words"),
        pytest.param("3,1;Killed process", id="half a head"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_not_the_kernels_or_tells_nothing_is_left_out(record: str) -> None:
    assert line_of(record, BOOT) is None


def test_fields_that_later_kernels_add_do_no_harm() -> None:
    record = "3,1,5,-,caller=T31210,more=x;Out of memory: Killed process 1 (x)\n"

    assert line_of(record, BOOT) is not None


# Xids


@pytest.mark.parametrize(
    ("text", "bus", "xid"),
    [
        (
            "NVRM: Xid (PCI:0000:c6:00): 79, pid=1234, name=VLLM::Worker, GPU has fallen",
            "0:c6:0",
            79,
        ),
        ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "0:3b:0", 79),
        ("NVRM: Xid (0000:05:00): 31, Ch 00000010, engmask 00000101", "0:5:0", 31),
        ("NVRM: Xid (PCI:0009:01:00): 119, pid='<unknown>', name=<unknown>, Timeout", "9:1:0", 119),
        ("NVRM: Xid (PCI:0000:83:00): 48", "0:83:0", 48),
    ],
)
def test_an_xid_names_its_gpu_by_bus(text: str, bus: str, xid: int) -> None:
    assert list(xids_of(lines(text))) == [KernelXid(at=BOOT, bus=bus, xid=xid)]


def test_the_driver_and_the_kernel_write_one_address_in_two_ways() -> None:
    assert bus_of("00000000:C6:00.0") == bus_of("0000:c6:00") == "0:c6:0"
    assert bus_of("00000000:06:00.0") != bus_of("0000:60:00")


def test_an_xid_in_other_lines_is_none() -> None:
    assert not list(xids_of(lines("NVRM: loading\nuser said NVRM: Xid (PCI:0000:3b:00): 79, x")))
