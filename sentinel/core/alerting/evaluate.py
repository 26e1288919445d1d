"""Evaluates rule groups over the series store, and holds the alerts that are active.

Rules of a group run in order, each seeing what those before it wrote: recorded series,
`ALERTS` and `ALERTS_FOR_STATE`. One broken rule never stops the others: it becomes a
failure with a sentence, and its alerts stand as they were.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sentinel.core.alerting.advance import ActiveAlert, Transition, advance
from sentinel.core.alerting.needs import windows_of
from sentinel.core.alerting.outside import NOTHING, FromOutside, Reading
from sentinel.core.alerting.rule import AlertRule, Compat, RecordingRule, Rule, RuleError, RuleGroup
from sentinel.core.alerting.template import Row, Scene, TemplateError, expand
from sentinel.core.model.labels import NAME, Labels, labels_of, without
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import (
    EvaluationError,
    Expression,
    ExpressionError,
    Sample,
    Value,
    compile_expression,
)

LOOKBACK = timedelta(minutes=5)
MOST_QUERIES = 1000
_Written = tuple[str, Mapping[str, str], float]


@dataclass(frozen=True, slots=True)
class Failure:
    rule: Rule
    because: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    transitions: tuple[Transition, ...]
    active: tuple[ActiveAlert, ...]  # of all groups, resolved ones for a quarter of an hour
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What rules are evaluated under."""

    lookback: timedelta = LOOKBACK
    interval: timedelta = timedelta(minutes=1)  # the default step of a subquery
    external_labels: Mapping[str, str] = field(default_factory=dict)
    external_url: str = ""
    compat: Compat = 3


class Evaluator:
    """`seed` are alerts from before: of the last configuration, or `restore`d from disk.

    `observed_since`: since when the store has been fed, if it does not reach back further;
    until a rule's windows are full again, an alert that is not there proves nothing.
    `blind_until`: until then not everything has been looked at even once, with the same effect.
    """

    def __init__(
        self,
        groups: Sequence[RuleGroup],
        store: Store,
        *,
        setting: Setting | None = None,
        seed: Iterable[ActiveAlert] = (),
        observed_since: datetime | None = None,
        blind_until: datetime | None = None,
    ) -> None:
        self.groups = tuple(groups)
        self._store = store
        self._setting = setting or Setting()
        self._lookback_ms, self._step_ms = _ms(self._setting.lookback), _ms(self._setting.interval)
        self._observed_since = observed_since
        self._blind_until = blind_until
        self._windows = windows_of(self.groups, LOOKBACK)
        self._queries: dict[str, Expression] = {}
        self._writers: dict[Labels, str] = {}
        self._series_of: dict[str, frozenset[Labels]] = {}
        self._ended: dict[str, datetime] = {}  # when rules that write nothing first wrote nothing
        self._active: dict[str, dict[str, ActiveAlert]] = {}
        for alert in seed:
            self._active.setdefault(alert.rule, {})[alert.key] = alert
        known = {rule.id for group in self.groups for rule in group.rules}
        self._orphans = [
            alert
            for rule in self._active.keys() - known
            for alert in self._active.pop(rule).values()
        ]

    def successor(self, groups: Sequence[RuleGroup], setting: Setting | None = None) -> "Evaluator":
        """The same alerts under other rules; the series of rules that are gone end here."""
        made = Evaluator(
            groups,
            self._store,
            setting=setting or self._setting,
            seed=(*self.active, *self._orphans),
            observed_since=self._observed_since,
            blind_until=self._blind_until,
        )
        kept = {rule.id for group in groups for rule in group.rules}
        for rule_id in self._series_of.keys() - kept:
            self._store.drop(_source_name(rule_id))
        made._series_of = {key: self._series_of[key] for key in self._series_of.keys() & kept}
        made._writers = {series: key for series, key in self._writers.items() if key in kept}
        return made

    @property
    def active(self) -> tuple[ActiveAlert, ...]:
        return tuple(alert for alerts in self._active.values() for alert in alerts.values())

    def evaluate(
        self,
        now: datetime,
        due: Collection[RuleGroup] | None = None,
        *,
        outside: FromOutside = NOTHING,
    ) -> Evaluation:
        """Evaluate the groups that are `due`, all by default, in their order."""
        wanted = None if due is None else {(group.file, group.name) for group in due}
        transitions = self._end_orphans(now)
        failures: list[Failure] = []
        for group in self.groups:
            if wanted is not None and (group.file, group.name) not in wanted:
                continue
            for rule in group.rules:
                try:
                    transitions.extend(self._rule(rule, group, now, outside))
                except (RuleError, EvaluationError) as error:
                    failures.append(Failure(rule, str(error)))
                except Exception as error:  # noqa: BLE001 - one rule's turn; the others go on
                    failures.append(Failure(rule, f"{type(error).__name__}: {error}"))
        return Evaluation(tuple(transitions), self.active, tuple(failures))

    def _rule(
        self, rule: Rule, group: RuleGroup, now: datetime, outside: FromOutside
    ) -> list[Transition]:
        if rule.id not in outside.readings:
            vector = self._vector(rule.expr, now - group.query_offset)
            unproven = rule.id in outside.unproven or self._is_unsettled(rule, now)
            return self._judge(rule, group, Reading(vector, now, unproven))
        reading = outside.readings[rule.id]
        if isinstance(reading, str):
            raise RuleError(reading)
        return [] if reading is None else self._judge(rule, group, reading)

    def _judge(self, rule: Rule, group: RuleGroup, reading: Reading) -> list[Transition]:
        now, at = reading.at, reading.at - group.query_offset
        if not reading.vector and self._is_silent(rule, at):
            return []
        if isinstance(rule, RecordingRule):
            self._record(rule, reading.vector, group.limit, at)
            return []
        after, transitions = advance(
            rule,
            self._active.get(rule.id, {}),
            reading.vector,
            now,
            expand=lambda text, labels, value: self._expand(rule, text, labels, value, at),
            unsettled=reading.is_partial,
        )
        standing = sum(alert.state != "resolved" for alert in after.values())
        if 0 < group.limit < standing:
            raise RuleError(f"exceeded limit of {group.limit} with {standing} alerts")
        self._write(rule, _alert_series(after.values()), at)
        self._active[rule.id] = after
        return transitions

    def _vector(self, expr: Expression, at: datetime) -> list[Sample]:
        result = expr.at(
            self._store,
            millis(at),
            lookback_ms=self._lookback_ms,
            default_step_ms=self._step_ms,
        )
        return vector_of(result)

    def _record(
        self, rule: RecordingRule, vector: Sequence[Sample], limit: int, at: datetime
    ) -> None:
        written: dict[Labels, float] = {}
        for sample in vector:
            labels = labels_of({**dict(without(sample.labels, NAME)), **rule.labels})
            if labels in written:
                raise RuleError(
                    "vector contains metrics with the same labelset after applying rule labels"
                )
            written[labels] = sample.value
        if 0 < limit < len(written):
            raise RuleError(f"exceeded limit of {limit} with {len(written)} series")
        self._write(rule, [(rule.name, dict(labels), v) for labels, v in written.items()], at)

    def _write(self, rule: Rule, look: Iterable[_Written], at: datetime) -> None:
        """A series belongs to the rule that wrote it first, for as long as it writes it."""
        mine: dict[Labels, _Written] = {}
        for written in look:
            series = labels_of({**written[1], NAME: written[0]})
            if self._writers.setdefault(series, rule.id) == rule.id:
                mine[series] = written
        for series in self._series_of.get(rule.id, frozenset()) - mine.keys():
            del self._writers[series]
        self._series_of[rule.id] = frozenset(mine)
        if mine:
            self._ended.pop(rule.id, None)
        else:
            self._ended[rule.id] = at
        self._store.source(_source_name(rule.id), {}).put(mine.values(), millis(at))

    def _is_silent(self, rule: Rule, at: datetime) -> bool:
        """It has nothing active, and the store says already that nothing of it goes on."""
        ended_at = self._ended.get(rule.id)
        return ended_at is not None and ended_at < at and not self._active.get(rule.id)

    def _expand(
        self, rule: AlertRule, text: str, labels: Mapping[str, str], value: float, at: datetime
    ) -> str:
        scene = Scene(at, lambda query: self._rows(query, at), self._setting.external_url)
        try:
            return expand(text, labels, value, scene, self._setting.external_labels)
        except TemplateError as error:
            name = f"__alert_{rule.name}"
            return f"<error expanding template: error executing template {name}: {error}>"

    def _rows(self, query: str, at: datetime) -> list[Row]:
        try:
            vector = self._vector(self._compiled(query), at)
        except (ExpressionError, EvaluationError, RuleError) as error:
            raise TemplateError(str(error)) from error
        return [Row(dict(sample.labels), sample.value) for sample in vector]

    def _compiled(self, query: str) -> Expression:
        """Queries of templates are the same at every evaluation, so they are kept."""
        if query not in self._queries:
            if len(self._queries) >= MOST_QUERIES:
                self._queries.clear()
            self._queries[query] = compile_expression(query, compat=self._setting.compat)
        return self._queries[query]

    def _is_unsettled(self, rule: Rule, now: datetime) -> bool:
        if self._blind_until is not None and now < self._blind_until:
            return True
        if self._observed_since is None:
            return False
        return now - self._observed_since < self._windows[rule.id]

    def _end_orphans(self, now: datetime) -> list[Transition]:
        """Alerts whose rule is gone have ended with it."""
        orphans, self._orphans = self._orphans, []
        ended: list[Transition] = []
        for alert in orphans:
            if alert.state == "pending":
                ended.append(Transition("dropped", alert))
            elif alert.state == "firing":
                resolved = replace(alert, state="resolved", resolved_at=now, last_seen_at=now)
                ended.append(Transition("resolved", resolved))
        return ended


def vector_of(result: Value) -> list[Sample]:
    """A rule's or a template's result; raises `RuleError` for what is no vector."""
    if isinstance(result, float):
        return [Sample((), result)]
    samples = [] if isinstance(result, str) else [one for one in result if isinstance(one, Sample)]
    if isinstance(result, str) or len(samples) < len(result):
        raise RuleError("rule result is not a vector or scalar")
    return samples


def _alert_series(alerts: Iterable[ActiveAlert]) -> list[_Written]:
    written: list[_Written] = []
    for alert in alerts:
        if alert.state != "resolved":
            labels = {**alert.labels, "alertstate": alert.state}
            written.append(("ALERTS", labels, 1.0))
            since = float(millis(alert.active_at) // 1000)
            written.append(("ALERTS_FOR_STATE", alert.labels, since))
    return written


def _source_name(rule_id: str) -> str:
    return f"rule {rule_id}"


def _ms(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)
