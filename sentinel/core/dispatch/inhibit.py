"""Inhibition: an alert that fires keeps quiet those that only follow from it.

An alert that looks like cause and consequence at once is not kept quiet by another of its
kind: otherwise two of them would silence each other for good.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sentinel.core.dispatch.alert import Alert
from sentinel.core.model.labels import Matcher

_Equal = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InhibitRule:
    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...] = ()
    name: str = ""


@dataclass(slots=True)
class _Sources:
    """The alerts that could keep others quiet by one rule, by what must be equal."""

    rule: InhibitRule
    by_equal: dict[_Equal, dict[str, tuple[Alert, bool]]] = field(default_factory=dict)

    def put(self, alert: Alert) -> None:
        labels = alert.matched
        if _all_match(self.rule.source, labels):
            like = self.by_equal.setdefault(self._equal(labels), {})
            like[alert.fingerprint] = (alert, _all_match(self.rule.target, labels))

    def forget(self, alert: Alert) -> None:
        self.by_equal.get(self._equal(alert.matched), {}).pop(alert.fingerprint, None)

    def of(self, labels: Mapping[str, str], now: datetime) -> Iterator[str]:
        if not self.by_equal or not _all_match(self.rule.target, labels):
            return
        is_source = _all_match(self.rule.source, labels)
        for print_, (alert, is_target) in self.by_equal.get(self._equal(labels), {}).items():
            if not (is_source and is_target) and not alert.is_resolved(now):
                yield print_

    def _equal(self, labels: Mapping[str, str]) -> _Equal:
        return tuple(labels.get(name, "") for name in self.rule.equal)


class Inhibitor:
    """Knows the alerts that stand, so that asking about one is not asking all of them."""

    def __init__(self, rules: Iterable[InhibitRule], alerts: Iterable[Alert] = ()) -> None:
        self._sources = [_Sources(rule) for rule in rules]
        for alert in alerts:
            self.put(alert)

    def put(self, alert: Alert) -> None:
        for sources in self._sources:
            sources.put(alert)

    def forget(self, alert: Alert) -> None:
        for sources in self._sources:
            sources.forget(alert)

    def of(self, labels: Mapping[str, str], now: datetime) -> Iterator[str]:
        """Fingerprints of those that keep `labels` quiet; one may come twice."""
        for sources in self._sources:
            yield from sources.of(labels, now)


def _all_match(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    for matcher in matchers:  # noqa: SIM110 - asked of every alert at every tick
        if not matcher.matches(labels.get(matcher.name, "")):
            return False
    return True
