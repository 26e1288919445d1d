"""Looks at the GPUs at each slot, and publishes what it saw as series.

The driver may never answer: then its series end, it is said to be hung, and nothing else waits.
On a host without GPUs there are no series and there is no problem.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain

import structlog

from sentinel.core.gpu import samples as series
from sentinel.core.gpu.detached import is_forbidden, is_refused
from sentinel.core.gpu.mapping import given_to, used_by, wants_gpus
from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import Driver, GpuReading, HostGpus
from sentinel.core.gpu.roster import Roster
from sentinel.core.gpu.xid import label_of
from sentinel.core.host.kernel_log import KernelXid, bus_of
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.source import Frame
from sentinel.ports import Clock, GpuEyes, ProcessEyes
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_log = structlog.get_logger("sentinel.gpus")
_DEADLINE = 15.0  # seconds
_OPENING = 60.0  # without persistence mode each GPU takes seconds to wake
_ABSENT_AGAIN = timedelta(seconds=30)
_ABSENT = (Driver.NO_LIBRARY, Driver.NOT_LOADED, Driver.NO_GPUS)
_SOURCE = "gpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    host: HostGpus
    owners: Mapping[int, Owner] = field(default_factory=dict)
    forbidden: frozenset[str] = frozenset()  # containers that may use no GPU any more


class Blind:
    """Of a host that has no GPUs, or of which nobody wants to know."""

    sees_host = False

    def read(self) -> HostGpus:
        return HostGpus(state=Driver.NO_LIBRARY)

    def owner(self, _pid: int) -> Owner:
        return Owner()

    def device_rules(self, _pid: int) -> str | None:
        return None


def look(eyes: GpuEyes, processes: ProcessEyes, mains: Mapping[str, int]) -> Look:
    """`mains`: the first process of each container that was given GPUs."""
    host = eyes.read()
    if not processes.sees_host:  # the driver's process ids mean nothing here
        blind = tuple(replace(gpu, processes=None) for gpu in host.gpus)
        return Look(host=replace(host, gpus=blind))
    pids = {process.pid for gpu in host.gpus for process in gpu.processes or ()}
    rules = {one: processes.device_rules(pid) for one, pid in mains.items()}
    return Look(
        host=host,
        owners={pid: processes.owner(pid) for pid in pids},
        forbidden=frozenset(one for one, text in rules.items() if text and is_forbidden(text)),
    )


class Gpus:
    def __init__(  # noqa: PLR0913, PLR0917 - one part of each kind
        self,
        eyes: GpuEyes,
        processes: ProcessEyes,
        lane: Lane,
        clock: Clock,
        store: Store,
        memory: Memory,
        inbox: Inbox,
        plan: Plan,
    ) -> None:
        self._eyes, self._processes, self._lane = eyes, processes, lane
        self._clock, self._store, self._memory, self._inbox = clock, store, memory, inbox
        self.plan = plan
        self.published: list[WrittenSample] = []  # what the last look said
        self._host = HostGpus(state=Driver.NO_LIBRARY)
        self._since = clock.now()  # which it hangs, if it does
        self._roster = Roster(_counted(memory))
        self._targets: Mapping[str, Target] = {}
        self._of: dict[str, tuple[str, ...]] = {}  # by target: UUIDs
        self._proven: dict[str, tuple[str, ...]] = {}  # by container id: where it last ran
        self._forbidden: frozenset[str] = frozenset()
        self._refused: dict[str, object] = {}  # by target: the launch whose log said so
        self._frame: Frame = []
        self._due_at: datetime | None = None
        self._asked_tick = 0.0  # monotonic: when the last look began
        self._holders: tuple[float, frozenset[str]] = 0.0, frozenset()  # containers, as of then
        self._complained: list[str] = []

    def ask_if_due(self, targets: Mapping[str, Target], now: datetime) -> None:
        """To be called at each slot; never waits."""
        self._targets = targets
        monotonic, busy_since = self._clock.monotonic(), self._lane.busy_since
        if busy_since is not None:
            if self._lane.overdue(monotonic):
                self._hang(now - timedelta(seconds=monotonic - busy_since), now)
            return
        if self._host.state in _ABSENT and self._due_at is not None and now < self._due_at:
            return
        self._due_at, self._asked_tick = now + _ABSENT_AGAIN, monotonic
        mains = {
            target.container.id: target.container.pid
            for target in targets.values()
            if target.container.is_up and target.container.pid and wants_gpus(target.container)
        }
        self._lane.submit(
            lambda: look(self._eyes, self._processes, mains),
            now=monotonic,
            deadline=_DEADLINE if self._host.state is Driver.OK else _OPENING,
            deliver=lambda answer: self._inbox.put_question(lambda: self.looked(answer)),
        )

    @property
    def driver(self) -> str:
        """Its version; empty where it is not known."""
        return self._host.driver or ""

    def of_target(self, name: str) -> list[str]:
        """UUIDs of the GPUs that a target uses, as far as that is known."""
        return list(self._of.get(name, ()))

    def readings_of(self, name: str) -> list[GpuReading]:
        """What the driver last said of them."""
        mine = self.of_target(name)
        return [gpu for gpu in self._roster.gpus if gpu.uuid in mine]

    def are_held_by(self, container_ids: Collection[str], since: float) -> bool:
        """Whether one of them still has a process on a GPU, or nobody has looked since then.

        Only of containers that were seen on a GPU, while the driver can be asked.
        """
        if self._host.state is not Driver.OK or self._proven.keys().isdisjoint(container_ids):
            return False
        tick, holders = self._holders
        return tick < since or not holders.isdisjoint(container_ids)

    def read_log(self, target: Target, log: str) -> None:
        """The end of a target's log: it may say that its GPUs are gone."""
        if is_refused(log):
            self._refused[target.name] = target.key

    def hear_kernel(self, xids: Sequence[KernelXid]) -> None:
        """The kernel logs Xids also while the driver answers nobody."""
        uuids = {bus_of(gpu.bus_id): gpu.uuid for gpu in self._roster.gpus if gpu.bus_id}
        known = [(uuids[each.bus], label_of(each.xid)) for each in xids if each.bus in uuids]
        if news := self._roster.hear(known):
            self._remember(news)

    def problems(self) -> list[str]:
        found, host = [], self._host
        if host.state is Driver.HUNG:
            found.append(
                f"the NVIDIA driver does not answer since {self._since:%H:%M:%S} UTC: "
                "GPUs are not watched"
            )
        elif host.state is Driver.MISMATCH:
            found.append(
                f"GPUs are not watched: {host.because} (was the driver updated? then restart "
                "Sentinel, and the host if that does not help)"
            )
        elif host.state is Driver.FAILED or (host.state in _ABSENT and self._are_wanted):
            found.append(f"GPUs are not watched: {host.because or 'the driver shows none'}")
        found += [
            f"GPU {index} ({uuid}) cannot be used: {because}"
            for index, uuid, because in self._roster.troubles()
        ]
        return found

    # what a look brings

    def looked(self, answer: LaneAnswer[Look]) -> None:
        seen = answer.value
        if seen is None:
            seen = Look(host=HostGpus(state=Driver.FAILED, because=repr(answer.error)))
        self._take(seen, self._clock.now())

    def _hang(self, since: datetime, now: datetime) -> None:
        self._since = since
        self._take(Look(host=HostGpus(state=Driver.HUNG), forbidden=self._forbidden), now)

    def _take(self, seen: Look, now: datetime) -> None:
        self._host, self._forbidden = seen.host, seen.forbidden
        up = {t.container.id for t in self._targets.values() if t.container.is_up}
        ended = self._proven.keys() - up
        xids = self._roster.see(seen.host, seen.owners, ended, self._clock.monotonic())
        holders = (owner.containers for owner in seen.owners.values())
        self._holders = self._asked_tick, frozenset(chain.from_iterable(holders))
        if seen.host.state is Driver.OK:
            self._map(seen.owners)
        self._publish(now)
        self._complain()
        if xids:
            self._remember(xids)

    def _map(self, owners: Mapping[int, Owner]) -> None:
        gpus = self._roster.gpus
        self._of = {}
        for name, target in self._targets.items():
            container = target.container
            if container.is_up and (proof := used_by(container, gpus, owners)):
                self._proven[container.id] = proof
            self._of[name] = self._proven.get(container.id) or given_to(container, gpus)

    def _publish(self, now: datetime) -> None:
        rows = [*self._driver_rows(), *self._roster.rows(self.plan.host), *self._target_rows()]
        self.published = [
            (name, labels, float(value)) for name, labels, value in rows if value is not None
        ]
        if not self.published and not self._frame:
            return
        frame = [(name, labels) for name, labels, _ in self.published]
        if frame != self._frame:
            self._frame = frame
        values = [value for _, _, value in self.published]
        self._store.source(_SOURCE, {}).put_frame(self._frame, values, millis(now))

    def _driver_rows(self) -> Iterator[series.Row]:
        state, host = self._host.state, {"host": self.plan.host}
        if state in _ABSENT and not self._are_wanted:
            return
        yield series.DRIVER_UP, host, float(state in (Driver.OK, Driver.NO_GPUS))
        yield series.DRIVER_HUNG, host, float(state is Driver.HUNG)

    def _target_rows(self) -> Iterator[series.Row]:
        for name, uuids in self._of.items():
            own = {"target": name, "host": self.plan.host}
            for uuid in uuids:
                labels = {**own, "gpu": str(self._roster.index_of(uuid)), "uuid": uuid}
                yield series.TARGET_GPU, labels, 1.0
            target = self._targets.get(name)
            if target is None or not target.container.is_up:
                continue
            if any(self._roster.is_well(uuid) for uuid in uuids):
                yield series.CONTAINER_GPU_UP, own, float(not self._is_detached(target))

    def _is_detached(self, target: Target) -> bool:
        if target.container.id in self._forbidden:
            return True
        return self._refused.get(target.name) == target.key

    @property
    def _are_wanted(self) -> bool:
        """Whether anything here uses GPUs, or did."""
        return bool(self._roster.gpus) or any(
            wants_gpus(target.container) for target in self._targets.values()
        )

    def _complain(self) -> None:
        problems = self.problems()
        for because in problems:
            if because not in self._complained:
                _log.warning(events.PROBLEM_SEEN, because=because)
        self._complained = problems

    def _remember(self, xids: list[tuple[str, str]]) -> None:
        with self._memory.together():
            for uuid, xid in xids:
                labels = {"host": self.plan.host, "uuid": uuid, "xid": xid}
                self._memory.counters.add(series.XID_ERRORS, labels)


def _counted(memory: Memory) -> dict[str, dict[str, float]]:
    """Xids seen before this start, by UUID."""
    found: dict[str, dict[str, float]] = {}
    counters = zip(memory.counters.frame(""), memory.counters.values(""), strict=True)
    for (name, labels), value in counters:
        if name == series.XID_ERRORS:
            found.setdefault(labels["uuid"], {})[labels["xid"]] = value
    return found
