"""How a thread of the API gets copies of what the loop works with.

The loop makes them on its own thread, a moment of work at a time, between what it has to do:
a question is never a reason to be late, and no turn follows it. A source is copied whole within
one moment, since its columns belong together.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar, cast

from sentinel.api.prometheus.copies import About, Judged, Known, Scraped
from sentinel.api.snapshot import Snapshot
from sentinel.core.model.errors import Permanent, Transient
from sentinel.core.model.series import Series, Source, Store
from sentinel.ports import Clock
from sentinel.runtime.loop import Loop
from sentinel.runtime.scraped import told

T = TypeVar("T")

MOMENT = 0.002  # seconds of the loop's time in one go
MOST_SAMPLES = 5_000_000  # copied for one question: 40 MB
SERIES_AT_ONCE = 500
LONGEST = 10.0  # seconds one moment of the loop is waited for


class Queries:
    def __init__(self, loop: Loop, published: Callable[[], Snapshot]) -> None:
        self._loop = loop
        self._published = published

    def about(self) -> About:
        plan = self._loop.plan
        return About(
            host=plan.host,
            external_labels=plan.external_labels,
            scrape_interval=plan.scrape_interval,
            scrape_timeout=plan.scrape_timeout,
            evaluation_interval=plan.evaluation_interval,
            retention=plan.metrics_retention,
            keeps=self._loop.parts.store.keeps,
        )

    def cut(self, names: Collection[str] | None, since_ms: int, within: float) -> Store:
        copy = Store()
        self._in_moments(lambda: _cutting(self._loop.parts.store, copy, names, since_ms), within)
        return copy

    def known(self, names: Collection[str] | None, within: float) -> list[Known]:
        found: list[Known] = []
        self._in_moments(lambda: _knowing(self._loop.parts.store, found, names), within)
        return found

    def judged(self, within: float) -> Judged:
        return self._ask(self._judge, within)

    def scraped(self, within: float) -> list[Scraped]:
        return self._ask(self._scrapes, within)

    def _judge(self) -> Judged:
        published, evaluator = self._published(), self._loop.parts.evaluator
        return Judged(
            groups=evaluator.groups,
            active=[replace(a, annotations=dict(a.annotations)) for a in evaluator.active],
            failing=dict(self._loop.failing),
            evaluated_at=published.at if published.ready else None,
            interval=self._loop.plan.evaluation_interval,
        )

    def _scrapes(self) -> list[Scraped]:
        loop = self._loop
        targets = loop.parts.watch.targets
        return [
            told(targets[name], self.about(), loop.parts.scraper.descriptions_of(name))
            for name in sorted(targets)
            if targets[name].endpoint is not None
        ]

    def _in_moments(self, begin: Callable[[], Iterator[None]], within: float) -> None:
        clock = self._loop.parts.clock
        until = clock.monotonic() + within
        work = self._ask(begin, within)
        while not self._ask(lambda: _go_on(work, clock), until - clock.monotonic()):
            pass

    def _ask(self, call: Callable[[], T], within: float) -> T:
        """What `call` returns or raises on the loop's thread."""
        box = _Box[T](call)
        self._loop.parts.inbox.put_question(box.fill)
        return box.take(min(within, LONGEST))


class _Box(Generic[T]):
    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._queue: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._abandoned = False

    def fill(self) -> None:
        if self._abandoned:
            return
        try:
            self._queue.put((True, self._call()))
        except BaseException as error:  # noqa: BLE001 - handed to who asked
            self._queue.put((False, error))

    def take(self, within: float) -> T:
        try:
            good, came = self._queue.get(timeout=max(within, 0.0))
        except Empty:
            self._abandoned = True
            raise Transient("the loop is busy and has not answered in time") from None
        if not good:
            raise came
        return cast(T, came)


def _go_on(work: Iterator[None], clock: Clock) -> bool:
    """Work for a moment; whether all is done."""
    end = clock.monotonic() + MOMENT
    return all(clock.monotonic() < end for _ in work)


def _cutting(
    store: Store, copy: Store, names: Collection[str] | None, since_ms: int
) -> Iterator[None]:
    """Copy what is wanted, source by source."""
    samples = 0
    for source, wanted in _wanted(store, names):
        twin = source.copy_some(copy, wanted, since_ms)
        samples += sum(len(series.values) for series in twin.series.values())
        if samples > MOST_SAMPLES:
            raise Permanent(
                "query processing would load too many samples into memory in query execution"
            )
        yield


def _wanted(store: Store, names: Collection[str] | None) -> list[tuple[Source, Collection[Series]]]:
    if names is None:
        return [(source, source.series.values()) for source in store.sources()]
    grouped: dict[int, tuple[Source, list[Series]]] = {}
    for name in names:
        for series in store.named(name):
            grouped.setdefault(id(series.source), (series.source, []))[1].append(series)
    return list(grouped.values())


def _knowing(store: Store, found: list[Known], names: Collection[str] | None) -> Iterator[None]:
    for name in list(store.names()) if names is None else names:
        for place, series in enumerate(tuple(store.named(name))):
            if series.values:
                times, first = series.times, series.first
                last = first + len(series.values) - 1
                found.append(Known(series.labels, times[first], times[last]))
            if place % SERIES_AT_ONCE == SERIES_AT_ONCE - 1:
                yield
        yield
