"""Looks whether each target tells what the rules read, and is the one it is taken for.

Looked at when a launch first answers, and now and then: some metrics come with the first request,
and a port may become another's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.alerting.blind import is_another, missing_from, readers_of, told_in
from sentinel.core.endpoint import served_model_of, words_of
from sentinel.core.model import series_names as series
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target

_AGAIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sight:
    launch: object
    rules: object  # that it was looked at for
    at: datetime
    missing: Mapping[str, tuple[str, ...]]  # who reads it, by metric
    is_another: bool

    def holds(self, plan: Plan, now: datetime) -> bool:
        return self.rules is plan.rules and timedelta(0) <= now - self.at < _AGAIN


class SightCheck:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._sights: dict[str, _Sight] = {}
        self._readers: tuple[object, dict[str, tuple[str, ...]]] = (None, {})
        self.published: list[WrittenSample] = []

    def look(self, targets: Mapping[str, Target], plan: Plan, now: datetime) -> None:
        """Once a turn."""
        launches = {name: target.key for name, target in targets.items()}
        self._sights = {n: s for n, s in self._sights.items() if s.launch == launches.get(n)}
        for target in targets.values():
            if target.scrape is not None and target.scrape.ok:
                self._look_at(target, plan, now)
            known = self._sights.get(target.name)
            target.answers_as_another = known is not None and known.is_another
        self.published = [
            sample for name, sight in self._sights.items() for sample in _samples(name, sight, plan)
        ]
        self._store.source("sight", {}).put(self.published, millis(now))

    def _look_at(self, target: Target, plan: Plan, now: datetime) -> None:
        known = self._sights.get(target.name)
        if known is not None and known.holds(plan, now):
            return
        told = told_in(target.last_body.decode("utf-8", "replace"))
        expected = _expected(target)
        self._sights[target.name] = _Sight(
            launch=target.key,
            rules=plan.rules,
            at=now,
            missing=missing_from(told, self._readers_of(plan)),
            is_another=expected is not None and is_another(expected, told),
        )

    def _readers_of(self, plan: Plan) -> dict[str, tuple[str, ...]]:
        if self._readers[0] is not plan.rules:
            self._readers = (plan.rules, readers_of(plan.rules))
        return self._readers[1]


def _expected(target: Target) -> str | None:
    """The model that its command line names; None if a file may name another."""
    argv = target.container.argv
    from_file = any(f"{word}=".startswith("--config=") for word in words_of(argv))
    return None if from_file else served_model_of(argv)


def _samples(name: str, sight: _Sight, plan: Plan) -> Iterator[WrittenSample]:
    own = {"target": name, "host": plan.host}
    for metric, readers in sight.missing.items():
        labels = {**own, "metric": metric, "rules": ", ".join(readers)}
        yield series.METRIC_MISSING, labels, 1.0
    yield series.MODEL_MISMATCH, own, float(sight.is_another)
