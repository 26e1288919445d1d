"""The store of recent samples: every source, and the index from metric name to series.

Series are found by name; what rules do not read is not kept (`keep`), and what is older than
the retention is forgotten in bulk. Only one thread may touch a store: readers elsewhere ask
for a `cut`. `version` must rise whenever the set of series changes, or compiled expressions
go on reading series that are gone.
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from sentinel.core.model.labels import NAME, labels_of, value_of
from sentinel.core.model.source import Series, Source

__all__ = ["Series", "Source", "Store"]


class Store:
    """Every source, and the index from metric name to series."""

    def __init__(
        self, *, keep: Callable[[str], bool] | None = None, retention_ms: int = 3_600_000
    ) -> None:
        self.keep = keep  # asked once per new series name; None keeps all
        self.retention_ms = retention_ms
        self.version = 0  # rises when series come or go
        self._sources: dict[str, Source] = {}
        self._ended: list[Source] = []
        self._named: dict[str, list[Series]] = {}
        self._revisions: dict[str, int] = {}  # the version in which each name last changed

    def source(self, name: str, labels: Mapping[str, str]) -> Source:
        """The source of this name; its series all carry `labels`.

        A scraped label of the same name is kept as `exported_<name>`. Other labels than
        last time end the old source and start a new one; no labels at all mean the source
        that is there, whatever its labels.
        """
        wanted = labels_of(labels)
        found = self._sources.get(name)
        if found is not None and (not wanted or found.labels == wanted):
            return found
        self.drop(name)
        for ended in self._ended:
            if (ended.name, ended.labels) == (name, wanted):
                self._ended.remove(ended)
                self._sources[name] = ended
                return ended
        self._sources[name] = made = Source(self, name, wanted)
        return made

    def drop(self, name: str) -> None:
        """The source is gone: its series end. Their past stays until it is trimmed."""
        source = self._sources.pop(name, None)
        if source is not None:
            source.end()
            self._ended.append(source)

    def sources(self) -> tuple[Source, ...]:
        """Every source, also those that ended and whose past is still there."""
        return (*self._sources.values(), *self._ended)

    def adopt(self, source: Source) -> None:
        """Take in a source with a past, as one that has ended."""
        source.end()
        self._ended.append(source)
        for labels, series in source.series.items():
            self.add(value_of(labels, NAME), series)

    def trim(self, now_ms: int) -> None:
        """Forget what is older than the retention."""
        before = now_ms - self.retention_ms
        for source in self.sources():
            source.trim(before)
        self._ended = [source for source in self._ended if source.series]

    def keeps(self, name: str) -> bool:
        return self.keep is None or self.keep(name)

    def named(self, name: str) -> Sequence[Series]:
        return self._named.get(name, ())

    def every(self) -> Iterable[Series]:
        for series in self._named.values():
            yield from series

    def names(self) -> Iterable[str]:
        return self._named.keys()

    def cut(self, names: Container[str] | None, since_ms: int) -> "Store":
        """A copy for another thread: these metrics (None: all), samples from `since_ms` on."""
        copy = Store(retention_ms=self.retention_ms)
        copy._ended = [source.copy_into(copy, names, since_ms) for source in self.sources()]
        return copy

    def revision(self, name: str | None) -> int:
        """The version in which the series of this name (None: any) last changed."""
        return self.version if name is None else self._revisions.get(name, 0)

    def add(self, name: str, series: Series) -> None:
        self._named.setdefault(name, []).append(series)
        self._touch(name)

    def remove(self, series: Series) -> None:
        name = value_of(series.labels, NAME)
        self._named[name].remove(series)
        self._touch(name)
        if not self._named[name]:
            del self._named[name], self._revisions[name]

    def changed(self, series: Series) -> None:
        """The series is laid out in another way from now on."""
        self._touch(value_of(series.labels, NAME))

    def _touch(self, name: str) -> None:
        self.version += 1
        self._revisions[name] = self.version
