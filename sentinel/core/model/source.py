"""A source: one thing that is looked at as a whole, and the columns of its series.

All series of a source are written together, one whole look at a time, so they share the
source's column of times: sample `k` of a series was taken at `series.times[series.first + k]`.
That is what keeps a sample at eight bytes. A series that came back after a gap, or brings
its own times, gets a column of times of its own (`series.own`). That a shared column ends
before the times do is how a vanished series is known: never append to one alone.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from sentinel.core.model.labels import NAME, Labels, labels_of, value_of

TRIM_AT_LEAST = 32  # samples; trimming is bulk work


class Index(Protocol):
    """What a source needs of the store it belongs to."""

    keep: Callable[[str], bool] | None

    def keeps(self, name: str) -> bool: ...
    def add(self, name: str, series: "Series") -> None: ...
    def remove(self, series: "Series") -> None: ...
    def changed(self, series: "Series") -> None: ...


class Series:
    """The samples of one label set, from one source."""

    __slots__ = (
        "_drops",
        "_scanned",
        "_trimmed",
        "first",
        "gone",
        "labels",
        "own",
        "source",
        "values",
    )

    def __init__(self, source: "Source", labels: Labels) -> None:
        self.source = source
        self.labels = labels
        self.values: array[float] = array("d")
        self.first = 0
        self.own: array[int] | None = None  # own times, when the source's do not fit
        self.gone: array[int] = array("q")  # looks that found it missing; only with own times
        self._trimmed = 0  # values cut off the front so far
        self._scanned = 1  # up to which value, counted from the very first, drops are known
        self._drops: list[int] = []

    @property
    def times(self) -> "array[int]":
        return self.source.times if self.own is None else self.own

    @property
    def latest(self) -> float | None:
        """Its value in the last good look; None if that did not find it."""
        if not self.values:
            return None
        if self.own is None:
            is_there = self.first + len(self.values) == len(self.source.times)
            return self.values[-1] if is_there else None
        return None if self.gone and self.gone[-1] > self.own[-1] else self.values[-1]

    def drops(self, i: int, j: int) -> list[int]:
        """Where in `values[i:j]` a value is below the one before it: counter resets."""
        self._scan()
        if not self._drops:
            return self._drops
        low = bisect_right(self._drops, i + self._trimmed)
        high = bisect_left(self._drops, j + self._trimmed)
        return [place - self._trimmed for place in self._drops[low:high]]

    def ends_between(self, after: int, until: int) -> bool:
        """Whether the series went stale in `(after, until]`."""
        return _any_in(self.source.failed, after, until) or _any_in(self.gone, after, until)

    def append_own(self, value: float, at_ms: int) -> None:
        """Append with a time of its own. What is not newer than the last sample is left out."""
        if self.own is None:
            self.own = self.source.times[self.first : self.first + len(self.values)]
            if len(self.own) and self.first + len(self.values) < len(self.source.times):
                self.gone.append(self.source.times[self.first + len(self.values)])
            self.first = 0
            self.source.irregular.add(self)
            self.source.store.changed(self)
        if not self.own or at_ms > self.own[-1]:
            self.own.append(at_ms)
            self.values.append(value)

    def since(self, at_ms: int, source: "Source", shift: int) -> "Series":
        """A copy for a copy of the source whose first `shift` times are cut off."""
        copy = Series(source, self.labels)
        if self.own is None:
            copy.values = self.values[max(shift - self.first, 0) :]
            copy.first = max(self.first - shift, 0)
        else:
            k = bisect_left(self.own, at_ms)
            copy.own, copy.values = self.own[k:], self.values[k:]
            copy.gone = self.gone[bisect_left(self.gone, at_ms) :]
        return copy

    def forget_before(self, n: int) -> None:
        """Drop the first `n` values."""
        del self.values[:n]
        self._trimmed += n
        del self._drops[: bisect_right(self._drops, self._trimmed)]

    def forget_from(self, k: int) -> None:
        """Drop the values from `k` on: the clock was set back."""
        del self.values[k:]
        self._drops = []
        self._scanned = self._trimmed + 1

    def _scan(self) -> None:
        values = self.values
        start = max(self._scanned - self._trimmed, 1)
        if start >= len(values):
            return
        recent = values[start - 1 :]
        for place, (previous, value) in enumerate(pairwise(recent), start + self._trimmed):
            if value < previous:
                self._drops.append(place)
        self._scanned = len(values) + self._trimmed


Frame = Sequence[tuple[str, Mapping[str, str]]]
"""Names and labels of a whole look, without their values."""


class Source:
    """One thing that is looked at as a whole: a target's exposition, Docker, a rule group."""

    def __init__(self, store: Index, name: str, labels: Labels) -> None:
        self.store = store
        self.name = name
        self.labels = labels
        self.times: array[int] = array("q")
        self.failed: array[int] = array("q")  # first failed look after each good one
        self.series: dict[Labels, Series] = {}
        self._steady: list[Series] = []  # the last look, if none of its series has own times
        self._own: set[Series] = set()  # series with own times that the last look found
        self.irregular: set[Series] = set()  # every series with own times
        self._framed: (
            tuple[Frame, int, Callable[[str], bool] | None, list[int], list[Series]] | None
        ) = None
        self.removals = 0  # rises when series are forgotten: who holds some must ask again

    def put(self, samples: Iterable[tuple[str, Mapping[str, str], float]], at_ms: int) -> None:
        """Record one whole look. A series that is not in `samples` has vanished.

        Of two samples of one series the first counts. Names the store does not keep are skipped.
        """
        look: dict[Series, float] = {}
        for name, labels, value in samples:
            if self.store.keeps(name):
                look.setdefault(self.find(name, labels), value)
        self.write(list(look), list(look.values()), at_ms)

    def put_frame(self, frame: Frame, values: Sequence[float], at_ms: int) -> None:
        """As `put`, for a look of the same distinct series each time: known by its identity."""
        known = self._framed
        if known is None or known[0] is not frame or known[1:3] != (self.removals, self.store.keep):
            kept = [at for at, (name, _) in enumerate(frame) if self.store.keeps(name)]
            found = [self.find(*frame[at]) for at in kept]
            known = self._framed = (frame, self.removals, self.store.keep, kept, found)
        self.write(known[4], [values[at] for at in known[3]], at_ms)

    def missed(self, at_ms: int) -> None:
        """Record that nobody could look: every series is stale until the next `put`."""
        self._rewind(at_ms)
        if self.times and not (self.failed and self.failed[-1] > self.times[-1]):
            self.failed.append(at_ms)
        self._steady = []

    def find(self, name: str, labels: Mapping[str, str]) -> Series:
        """The series of this name and these labels; made if there is none."""
        full = self._identify(name, labels)
        series = self.series.get(full)
        if series is None:
            series = self.series[full] = Series(self, full)
            self.store.add(name, series)
        return series

    def write(
        self,
        look: list[Series],
        values: Sequence[float],
        at_ms: int,
        timed: Mapping[Series, tuple[float, int]] | None = None,
    ) -> None:
        """Append one whole look over distinct series of this source.

        `timed` holds those of its series that bring a time of their own.
        """
        self._rewind(at_ms)
        if look and not timed and look == self._steady:
            for series, value in zip(look, values, strict=True):
                series.values.append(value)
            self.times.append(at_ms)
            return
        n = len(self.times)
        own: set[Series] = set()
        for series, value in zip(look, values, strict=True):
            if series.own is None and not series.values:
                series.first = n
            if series.own is None and series.first + len(series.values) == n:
                series.values.append(value)
            else:
                series.append_own(value, at_ms)
                own.add(series)
        for series, (value, own_ms) in (timed or {}).items():
            series.append_own(value, own_ms)
            own.add(series)
        self.times.append(at_ms)
        self._end_own(at_ms, own)
        self._steady = [] if own else look

    def failed_in(self, last: int, until: int) -> bool:
        """Whether nobody could look any more after look `last`, up to `until`."""
        return _any_in(self.failed, self.times[last], until)

    def end(self) -> None:
        """Nothing will be written any more: every series ends right after its last sample."""
        if self.times:
            self.missed(self.times[-1] + 1)

    def copy_into(self, store: Index, names: Container[str] | None, since_ms: int) -> "Source":
        """A copy with the samples from `since_ms` on, of these metrics (None: all)."""
        return self.copy_some(
            store,
            [
                series
                for labels, series in self.series.items()
                if names is None or value_of(labels, NAME) in names
            ],
            since_ms,
        )

    def copy_some(self, store: Index, wanted: Iterable[Series], since_ms: int) -> "Source":
        """A copy with the samples from `since_ms` on, of these of its series."""
        copy = Source(store, self.name, self.labels)
        shift = bisect_left(self.times, since_ms)
        copy.times = self.times[shift:]
        copy.failed = self.failed[bisect_left(self.failed, since_ms) :]
        for series in wanted:
            twin = series.since(since_ms, copy, shift)
            if twin.values:
                copy.series[series.labels] = twin
                if twin.own is not None:
                    copy.irregular.add(twin)
                store.add(value_of(series.labels, NAME), twin)
        return copy

    def trim(self, before_ms: int) -> None:
        """Forget samples older than `before_ms`, a good piece at a time."""
        cut = bisect_left(self.times, before_ms)
        shared = cut if cut >= TRIM_AT_LEAST or cut == len(self.times) else 0
        if shared:
            del self.times[:shared]
        del self.failed[: bisect_left(self.failed, before_ms)]
        if not shared and not self.irregular:
            return
        for series in self.series.values():
            if series.own is not None:
                self._trim_own(series, before_ms)
            elif shared:
                series.forget_before(max(shared - series.first, 0))
                series.first = max(series.first - shared, 0)
        self.forget_empty()

    def forget_empty(self) -> None:
        """Forget series without a sample: all were trimmed, or none was ever written."""
        for series in [each for each in self.series.values() if not each.values]:
            del self.series[series.labels]
            self.removals += 1
            self._own.discard(series)
            self.irregular.discard(series)
            self._steady = []
            self.store.remove(series)

    @staticmethod
    def _trim_own(series: Series, before_ms: int) -> None:
        assert series.own is not None
        cut = bisect_left(series.own, before_ms)
        if cut >= TRIM_AT_LEAST or cut == len(series.own):
            del series.own[:cut]
            series.forget_before(cut)
        del series.gone[: bisect_left(series.gone, before_ms)]

    def _identify(self, name: str, labels: Mapping[str, str]) -> Labels:
        if not self.labels:
            return labels_of({**labels, NAME: name})
        full = dict(self.labels)
        for own, value in labels.items():
            kept = own
            while kept in full or (kept != own and kept in labels):
                kept = f"exported_{kept}"
            if value:
                full[kept] = value
        full[NAME] = name
        return labels_of(full)

    def _end_own(self, at_ms: int, found: set[Series]) -> None:
        for series in self._own - found:
            series.gone.append(at_ms)
        self._own = found

    def _rewind(self, at_ms: int) -> None:
        """The clock was set back: what was written for later times is forgotten."""
        while self.failed and self.failed[-1] >= at_ms:
            self.failed.pop()
        if not self.times or self.times[-1] < at_ms:
            return
        cut = bisect_left(self.times, at_ms)
        del self.times[cut:]
        self._steady = []
        self._own = set()
        for series in self.series.values():
            if series.own is None:
                series.forget_from(max(cut - series.first, 0))
                series.first = min(series.first, cut)
            else:
                keep = bisect_left(series.own, at_ms)
                del series.own[keep:]
                series.forget_from(keep)
                del series.gone[bisect_left(series.gone, at_ms) :]
                if series.own and not (series.gone and series.gone[-1] > series.own[-1]):
                    self._own.add(series)


def _any_in(times: "array[int]", after: int, until: int) -> bool:
    place = bisect_right(times, after)
    return place < len(times) and times[place] <= until
