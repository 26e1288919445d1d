"""Looks at the host below the containers: memory, filesystems, and whom the kernel killed.

A kill has two witnesses. The kernel's log says whose memory had run out, and a control group
only that somebody in it died: a rise there counts by itself only where the log does not tell
of it. Filesystems are asked in a lane of their own, as one over a network may never answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from sentinel.core.endpoint import tensor_parallel_of
from sentinel.core.host import samples as series
from sentinel.core.host.cgroup import CgroupReading
from sentinel.core.host.kernel_log import KernelLine, KernelXid, Kill, KillReader, xids_of
from sentinel.core.host.reading import Disks, HostReading
from sentinel.core.model.errors import Permanent
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.source import Frame
from sentinel.ports import Clock, HostEyes, KernelLog
from sentinel.runtime.counts import Counts
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_log = structlog.get_logger("sentinel.host")
_SELDOM = 5.0  # seconds between two looks at what changes slowly, if the kernel says nothing
_GRACE = 10.0  # seconds beyond the time in which the kernel's log is waited for
_DISKS_EVERY = timedelta(seconds=60)
_DISKS_WITHIN = 30.0  # seconds
_OWN = "sentinel"  # whose the state directory is
_MAY_BE_FOUND = timedelta(seconds=30)
_LOOKS_BACK = timedelta(minutes=10)  # into the kernel's log, at the very first start

HearXids = Callable[[Sequence[KernelXid]], None]
Launch = tuple[str, datetime | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLook:
    reading: HostReading
    lines: Sequence[KernelLine] = ()
    no_log: str = ""  # why the kernel's log cannot be read


class Nowhere:
    """A host of which nobody wants to know."""

    def read(self, _mains: Mapping[str, int | None]) -> HostReading:
        return HostReading()

    def disks(self, _paths: Mapping[str, Sequence[str]]) -> Disks:
        return Disks()


class Silence:
    """A kernel that says nothing."""

    def read(self, _wait: float) -> Sequence[KernelLine]:
        return ()


def look(
    eyes: HostEyes, kernel: KernelLog, mains: Mapping[str, int | None], wait: float
) -> HostLook:
    """The log is read again at the end: what a control group counts must stand in it by then."""
    try:
        lines = [*kernel.read(wait)]
    except Permanent as error:
        return HostLook(reading=eyes.read(mains), no_log=error.message)
    reading = eyes.read(mains)
    return HostLook(reading=reading, lines=[*lines, *kernel.read(0.0)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What of the host is looked at."""

    eyes: HostEyes = field(default_factory=Nowhere)
    kernel: KernelLog = field(default_factory=Silence)
    written_paths: Sequence[str] = ()  # by Sentinel itself


class HostWatch:
    def __init__(  # noqa: PLR0913, PLR0917 - one part of each kind
        self,
        around: Surroundings,
        lane: Callable[[str], Lane],
        clock: Clock,
        store: Store,
        memory: Memory,
        counts: Counts,
        inbox: Inbox,
        plan: Plan,
        hear_xids: HearXids,
        watched_until: datetime | None = None,
    ) -> None:
        self._around, self._lane, self._disk_lane = around, lane("host"), lane("filesystems")
        self._clock, self._store, self._inbox = clock, store, inbox
        self._memory, self._counts, self._hear_xids = memory, counts, hear_xids
        self.plan = plan
        self.published: list[WrittenSample] = []  # what the last look said
        self._began = clock.now()
        self._since = watched_until or self._began - _LOOKS_BACK
        self._targets: Mapping[str, Target] = {}
        self._kills_of = KillReader()
        self._counted: dict[Launch, int] = {}  # kills that each launch's control group tells
        self._pids: dict[int, str] = {}  # container ids
        self._unplaced: list[Kill] = []  # in containers that are no targets, or not yet
        self._no_log: str | None = None
        self._disks = Disks()
        self._disks_due: datetime | None = None
        self._disks_hang: datetime | None = None  # since when
        self._frame: Frame = []

    def ask_if_due(self, targets: Mapping[str, Target], now: datetime) -> None:
        """To be called at each slot; never waits."""
        self._targets = targets
        if not targets and self._no_log is None:
            return  # what the kernel logged before would be nobody's
        self._ask_disks(now)
        tick = self._clock.monotonic()
        if self._lane.busy_since is None:
            self._ask(tick)
        elif self._lane.overdue(tick):
            self._publish(HostReading(), now)

    def problems(self) -> list[str]:
        if self._disks_hang is None:
            return []
        since = f"{self._disks_hang:%H:%M:%S} UTC"
        return [f"a filesystem that a target writes to does not answer since {since}"]

    def _ask(self, tick: float) -> None:
        ups = [t.container for t in self._targets.values() if t.container.is_up]
        mains = {container.id: container.pid for container in ups}
        slot = max(self.plan.scrape_interval.total_seconds(), _SELDOM)
        wait = slot * 0.9  # over when the next slot comes
        self._lane.submit(
            lambda: look(self._around.eyes, self._around.kernel, mains, wait),
            now=tick,
            deadline=wait + _GRACE,
            deliver=self._deliver,
        )

    def _deliver(self, answer: LaneAnswer[HostLook]) -> None:
        """On the lane's thread. A turn follows at once if somebody was killed."""
        urgent = answer.value is not None and answer.value.lines
        put = self._inbox.put if urgent else self._inbox.put_question
        put(lambda: self.looked(answer))

    def looked(self, answer: LaneAnswer[HostLook]) -> None:
        now, seen = self._clock.now(), answer.value
        if seen is None:
            _log.warning(events.PROBLEM_SEEN, because=f"the host cannot be read: {answer.error!r}")
            return
        is_first = self._no_log is None
        self._note_log(seen.no_log)
        if is_first:
            lines = [line for line in seen.lines if line.at >= self._since]
        else:  # the kernel's clock drifts
            lines = [replace(line, at=now) for line in seen.lines]
        with self._memory.together():
            killed = self._by_kernel([*self._kills_of.read(lines)], now)
            self._by_cgroups(seen.reading.cgroups, killed, now)
        self._hear_xids([*xids_of(lines)])
        self._publish(seen.reading, now)
        if killed and self._lane.busy_since is None:  # another may follow
            self._ask(self._clock.monotonic())

    def _note_log(self, because: str) -> None:
        if because and because != self._no_log:
            _log.info(events.PROBLEM_SEEN, because=f"the kernel's log is not read: {because}")
        self._no_log = because

    # who was killed

    def _by_kernel(self, kills: Sequence[Kill], now: datetime) -> set[str]:
        """Count them; say in which containers. One limit may cost several lives."""
        by_id = {t.container.id: t for t in self._targets.values()}
        found: dict[tuple[str, str], tuple[Target, Kill]] = {}
        unplaced = []
        for kill in [*self._unplaced, *kills]:
            owners = (*kill.containers, self._pids.get(kill.pid, ""))
            target = next((by_id[one] for one in owners if one in by_id), None)
            if target is not None:
                found.setdefault((target.name, kill.whose), (target, kill))
            elif kill.containers and now - kill.at < _MAY_BE_FOUND:
                unplaced.append(kill)
        self._unplaced = unplaced
        for target, kill in found.values():
            says = _says(kill, target)
            self._counts.oom(target.name, kill.whose, says, kill.at, knows=True)
        return {target.container.id for target, _ in found.values()}

    def _by_cgroups(
        self, readings: Mapping[str, CgroupReading], killed: set[str], now: datetime
    ) -> None:
        counted: dict[Launch, int] = {}
        for target in self._targets.values():
            reading = readings.get(target.container.id)
            if reading is None or reading.kills is None:
                continue
            began = target.container.started_at
            is_new = began is not None and began > self._began
            before = self._counted.get(target.key, 0 if is_new else reading.kills)
            counted[target.key] = reading.kills
            if reading.kills > before and target.container.id not in killed:
                whose = "host" if reading.limit is None else "cgroup"
                because = "a process in it was killed for want of memory, its control group says"
                self._counts.oom(target.name, whose, because, now)
        self._counted = counted
        self._pids = {pid: one for one, each in readings.items() for pid in each.pids}

    # filesystems

    def _ask_disks(self, now: datetime) -> None:
        tick, busy_since = self._clock.monotonic(), self._disk_lane.busy_since
        if busy_since is not None:
            if self._disk_lane.overdue(tick) and self._disks_hang is None:
                self._disks_hang = now - timedelta(seconds=tick - busy_since)
                self._disks = Disks()
            return
        if self._disks_due is not None and self._disks_due - _DISKS_EVERY <= now < self._disks_due:
            return
        self._disks_due = now + _DISKS_EVERY
        paths = {name: target.container.written_paths for name, target in self._targets.items()}
        paths[_OWN] = tuple(self._around.written_paths)
        self._disk_lane.submit(
            lambda: self._around.eyes.disks(paths),
            now=tick,
            deadline=_DISKS_WITHIN,
            deliver=lambda answer: self._inbox.put_question(lambda: self._take_disks(answer)),
        )

    def _take_disks(self, answer: LaneAnswer[Disks]) -> None:
        self._disks_hang, self._disks = None, answer.value or Disks()

    # what is published

    def _publish(self, reading: HostReading, now: datetime) -> None:
        self.published = [
            (name, labels, float(value))
            for name, labels, value in self._rows(reading)
            if value is not None
        ]
        frame = [(name, labels) for name, labels, _ in self.published]
        if frame != self._frame:
            self._frame = frame
        values = [value for _, _, value in self.published]
        self._store.source("host", {}).put_frame(self._frame, values, millis(now))

    def _rows(self, reading: HostReading) -> Iterator[series.Row]:
        host = {"host": self.plan.host}
        yield from series.host_rows(reading, host)
        yield series.KERNEL_LOG_UP, host, float(not self._no_log)
        yield from series.disk_rows(self._disks, host)
        for name, target in self._targets.items():
            own, container = {**host, "target": name}, target.container
            found = reading.cgroups.get(container.id)
            yield from series.container_rows(found, own) if found is not None else ()
            if not container.shares_ipc:
                yield series.SHARED_MEMORY, own, container.shm_size
            yield series.TENSOR_PARALLEL, own, tensor_parallel_of(container.argv)
            for mountpoint in self._disks.of.get(name, ()):
                yield series.TARGET_FILESYSTEM, {**own, "mountpoint": mountpoint}, 1.0


def _says(kill: Kill, target: Target) -> str:
    who = f"the kernel killed {kill.name} (process {kill.pid})"
    if kill.whose == "host":
        return f"{who} because the host ran out of memory"
    if kill.limit and target.container.id not in kill.limit:
        return f"{who} at the memory limit of {kill.limit}, which its container is part of"
    return f"{who} at the memory limit of its container"
