"""Every GPU that was ever seen, and how it stands now.

A GPU that was there and does not show any more is lost, and stays so until it shows again:
that, and not its silence, is what people must hear of. While the driver does not answer,
nothing is known of the others, and nothing is said of them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sentinel.core.gpu.owner import Owner, orphaned_bytes
from sentinel.core.gpu.reading import Driver, GpuReading, HostGpus
from sentinel.core.gpu.samples import Row, rows_of
from sentinel.core.gpu.throttle import Throttled, advance
from sentinel.core.gpu.xid import label_of

_ORPHANED_AFTER = 60.0  # seconds; a process that ends needs some to give memory back
_ANSWERS = (Driver.OK, Driver.NO_GPUS)

SeenXid = tuple[str, str]  # UUID and label


@dataclass(slots=True, kw_only=True)
class _Known:
    index: int  # as first seen: the driver counts anew when a GPU is lost
    good: GpuReading  # the last one without trouble, if there was any
    now: GpuReading | None = None
    at: float = 0.0
    throttled: Throttled = field(default_factory=Throttled)
    orphaned: int | None = None
    orphaned_since: float | None = None


class Roster:
    def __init__(self, xids: Mapping[str, Mapping[str, float]]) -> None:
        """`xids`: how often each was seen before, by UUID and label."""
        self._known: dict[str, _Known] = {}
        self._xids = {uuid: dict(counts) for uuid, counts in xids.items()}
        self._told: Counter[SeenXid] = Counter()  # since the start, by either witness
        self._by_driver: Counter[SeenXid] = Counter()
        self._by_kernel: Counter[SeenXid] = Counter()

    def see(
        self, host: HostGpus, owners: Mapping[int, Owner], ended: Collection[str], at: float
    ) -> list[SeenXid]:
        """Take in one look, at monotonic time `at`; say which Xids it brought that are news."""
        shown = {gpu.uuid: gpu for gpu in host.gpus}
        for gpu in shown.values():
            known = self._known.setdefault(gpu.uuid, _Known(index=gpu.index, good=gpu, at=at))
            self._update(known, gpu, at)
            self._watch_orphans(known, orphaned_bytes(gpu, owners, ended), at)
        for uuid, known in self._known.items():
            if uuid in shown:
                continue
            if host.state in _ANSWERS:
                because = "the driver does not show it any more"
                known.now = GpuReading(index=known.index, uuid=uuid, trouble=because)
            elif known.now is not None and not known.now.trouble:
                known.now = None
        return self._count(self._xids_of(host), self._by_driver)

    def hear(self, seen: Iterable[SeenXid]) -> list[SeenXid]:
        """Take in what the kernel logged; say what of it is news."""
        return self._count(seen, self._by_kernel)

    @property
    def gpus(self) -> tuple[GpuReading, ...]:
        """As last seen without trouble, in order; the processes are those of now."""
        return tuple(
            replace(
                known.good,
                index=known.index,
                processes=known.now.processes if known.now is not None else None,
            )
            for known in sorted(self._known.values(), key=lambda each: each.index)
        )

    def index_of(self, uuid: str) -> int:
        return self._known[uuid].index

    def is_well(self, uuid: str) -> bool:
        now = self._known[uuid].now
        return now is not None and not now.trouble

    def troubles(self) -> Iterator[tuple[int, str, str]]:
        """Index, UUID and why, of each GPU that cannot be used."""
        for uuid, known in self._known.items():
            if known.now is not None and known.now.trouble:
                yield known.index, uuid, known.now.trouble

    def rows(self, host: str) -> Iterator[Row]:
        for uuid, known in self._known.items():
            if known.now is not None:
                own = {"gpu": str(known.index), "uuid": uuid, "host": host}
                xids = self._xids.get(uuid, {})
                yield from rows_of(known.now, own, known.throttled.seconds, xids, known.orphaned)

    def _update(self, known: _Known, gpu: GpuReading, at: float) -> None:
        known.throttled = advance(known.throttled, gpu, at - known.at)
        known.now, known.at = gpu, at
        if not gpu.trouble:
            known.good = gpu

    def _watch_orphans(self, known: _Known, orphaned: int | None, at: float) -> None:
        if not orphaned:
            known.orphaned, known.orphaned_since = orphaned, None
            return
        known.orphaned_since = at if known.orphaned_since is None else known.orphaned_since
        known.orphaned = orphaned if at - known.orphaned_since >= _ORPHANED_AFTER else 0

    def _xids_of(self, host: HostGpus) -> Iterator[SeenXid]:
        """One of which the driver does not say where it was may have been anywhere."""
        for event in host.xids:
            for uuid in [event.uuid] if event.uuid else self._known:
                yield uuid, label_of(event.xid)

    def _count(self, seen: Iterable[SeenXid], witness: "Counter[SeenXid]") -> list[SeenXid]:
        """What both witnesses tell counts once, whoever tells it first."""
        news = []
        for each in seen:
            witness[each] += 1
            if witness[each] > self._told[each]:
                self._told[each] += 1
                counts, label = self._xids.setdefault(each[0], {}), each[1]
                counts[label] = counts.get(label, 0.0) + 1
                news.append(each)
        return news
