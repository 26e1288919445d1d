"""What keeps an alert quiet: alerts that explain it, silences, and the time of day."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.inhibit import Inhibitor, InhibitRule
from sentinel.core.dispatch.interval import Interval, contains
from sentinel.core.dispatch.route import Route
from sentinel.core.dispatch.silence import Silence


class Mutes:
    def __init__(self, silences: Iterable[Silence]) -> None:
        self.silences = {silence.id: silence for silence in silences}
        self.inhibitor = Inhibitor(())
        self._intervals: Mapping[str, Interval] = {}
        self._active: tuple[datetime, _Active] | None = None

    def use(
        self,
        rules: Iterable[InhibitRule],
        intervals: Mapping[str, Interval],
        alerts: Iterable[Alert],
    ) -> None:
        self.inhibitor = Inhibitor(rules, alerts)
        self._intervals = intervals

    def set_silences(self, changed: Iterable[Silence]) -> None:
        self.silences.update((silence.id, silence) for silence in changed)
        self._active = None

    def are_on(self, alert: Alert, now: datetime) -> bool:
        labels = alert.matched
        found = chain(self.inhibitor.of(labels, now), self._active_at(now).ids(labels))
        return next(found, None) is not None

    def inhibited_by(self, alert: Alert, now: datetime) -> tuple[str, ...]:
        return tuple(sorted(set(self.inhibitor.of(alert.matched, now))))

    def silenced_by(self, alert: Alert, now: datetime) -> tuple[str, ...]:
        return tuple(sorted(self._active_at(now).ids(alert.matched)))

    def muted_by(self, route: Route, now: datetime) -> tuple[str, ...]:
        """Names of the intervals in which, or outside of which, the route is quiet now."""
        muting = tuple(name for name in route.mute_time_intervals if self._is_in(name, now))
        allowing = route.active_time_intervals
        is_quiet = allowing and not any(self._is_in(name, now) for name in allowing)
        return muting + allowing if is_quiet else muting

    def _is_in(self, name: str, now: datetime) -> bool:
        interval = self._intervals.get(name)
        return interval is not None and contains(interval, now)

    def _active_at(self, now: datetime) -> "_Active":
        if self._active is None or self._active[0] != now:
            active = (one for one in self.silences.values() if one.state(now) == "active")
            self._active = now, _Active(active)
        return self._active[1]


class _Active:
    """Silences by a label that they ask for, so that few of many are looked at."""

    def __init__(self, silences: Iterable[Silence]) -> None:
        self._by_pair: dict[tuple[str, str], list[Silence]] = {}
        self._others: list[Silence] = []
        for silence in silences:
            pairs = [(m.name, m.value) for m in silence.matchers if m.op == "=" and m.value]
            likely = self._by_pair.setdefault(pairs[0], []) if pairs else self._others
            likely.append(silence)

    def ids(self, labels: Mapping[str, str]) -> Iterator[str]:
        found = chain(self._others, *(self._by_pair.get(pair, ()) for pair in labels.items()))
        return (silence.id for silence in found if silence.matches(labels))
