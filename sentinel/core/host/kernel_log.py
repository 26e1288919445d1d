"""The kernel's log: whom it killed for want of memory, and what its GPU driver reported.

The kernel says a kill in several lines, and each of its versions in other ones: those before
say whose memory it was, and only the one with `Killed process` who died. It may leave the
former out when kills come fast. What programs write into the log is not the kernel's word.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sentinel.core.gpu.owner import containers_of

Whose = Literal["host", "cgroup"]  # memory: the machine's, or what a limit allows

_FACILITY_SHIFT, _KERNEL = 3, 0
_HEAD_FIELDS = 3  # priority, number, microseconds; others may follow
_KILLED = re.compile(
    r"(?P<of>(?:Memory cgroup o|O)ut of memory[^:]*: )?"
    r"Killed process (?P<pid>\d+)(?:, UID \d+,)? \((?P<name>.*?)\)(?: total-vm:| vsz:|,|$)"
)
_ANNOUNCED = re.compile(r"(?P<of>(?:Memory cgroup o|O)ut of memory[^:]*): Kill process \d+ ")
_REPORTED = re.compile(
    r"oom-kill:constraint=\w+,.*?(?:oom_memcg=(?P<limit>[^,]*)|global_oom),"
    r"task_memcg=(?P<victim>[^,]*),task=.*,pid=(?P<pid>\d+),uid=\d+$"
)
_LIMIT_OF = re.compile(r"Task in (?P<victim>\S+) killed as a result of limit of (?P<limit>\S+)")
_GROUP = re.compile(r"Tasks in (?P<victim>\S+) are going to be killed due to memory\.oom\.group")
_TELLING = re.compile(r"kill|Kill|NVRM: Xid")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9A-Fa-f:.]+)\): (?P<xid>\d+)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A process that the kernel ended because memory had run out."""

    at: datetime
    whose: Whose
    pid: int  # the host's
    name: str
    cgroup: str = ""  # of the one who died; empty if the kernel did not say
    limit: str = ""  # the control group whose limit it was

    @property
    def containers(self) -> tuple[str, ...]:
        return containers_of(self.cgroup)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelXid:
    at: datetime
    bus: str  # on PCI, as `bus_of` writes it
    xid: int


def line_of(record: str, booted_at: datetime) -> KernelLine | None:
    """One record of /dev/kmsg; None if it is not the kernel's own, or tells nothing here."""
    head, found, rest = record.partition(";")
    fields = head.split(",")
    if not found or len(fields) < _HEAD_FIELDS:
        return None
    priority, _, microseconds = fields[:_HEAD_FIELDS]
    if not (priority.isdecimal() and microseconds.isdecimal()):
        return None
    if int(priority) >> _FACILITY_SHIFT != _KERNEL:
        return None
    text = rest.partition("\n")[0].strip()
    if not _TELLING.search(text):
        return None
    return KernelLine(at=booted_at + timedelta(microseconds=int(microseconds)), text=text)


def xids_of(lines: Iterable[KernelLine]) -> Iterator[KernelXid]:
    for line in lines:
        if (found := _XID.match(line.text)) is not None:
            yield KernelXid(at=line.at, bus=bus_of(found["bus"]), xid=int(found["xid"]))


def bus_of(text: str) -> str:
    """A PCI address without its function: domain, bus and device, each as short as it goes."""
    parts = text.partition(".")[0].lower().split(":")
    return ":".join(part.lstrip("0") or "0" for part in parts)


class KillReader:
    """Puts the lines of each kill together; keeps what is unfinished for the next call."""

    def __init__(self) -> None:
        self._forget()

    def read(self, lines: Iterable[KernelLine]) -> Iterator[Kill]:
        for line in lines:
            if (found := _KILLED.match(line.text)) is not None:
                yield self._killed(found, line.at)
            else:
                self._note(line.text)

    def _forget(self) -> None:
        self._whose: Whose = "host"
        self._victim = self._limit = ""
        self._pid: int | None = None  # the only one that the report is about, if it says so
        self._many = False  # all of the group die

    def _note(self, text: str) -> None:
        if (found := _REPORTED.match(text)) is not None:
            self._forget()
            self._victim, self._limit = found["victim"], found["limit"] or ""
            self._whose = "host" if found["limit"] is None else "cgroup"
            self._pid = int(found["pid"])
        elif (found := _LIMIT_OF.match(text)) is not None:
            self._forget()
            self._victim, self._limit, self._whose = found["victim"], found["limit"], "cgroup"
        elif (found := _GROUP.match(text)) is not None:
            self._victim, self._pid, self._many = found["victim"], None, True
        elif (found := _ANNOUNCED.match(text)) is not None:
            self._whose = _whose(found["of"])

    def _killed(self, found: re.Match[str], at: datetime) -> Kill:
        pid, whose = int(found["pid"]), _whose(found["of"]) if found["of"] else self._whose
        reported = self._pid in (None, pid)
        kill = Kill(
            at=at,
            whose=whose,
            pid=pid,
            name=found["name"],
            cgroup=self._victim if reported else "",
            limit=self._limit if reported and whose == "cgroup" else "",
        )
        if not self._many:
            self._victim, self._pid = "", None
        return kill


def _whose(said: str) -> Whose:
    return "cgroup" if said.startswith("Memory cgroup") else "host"
