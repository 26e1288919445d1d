"""Runs rule unit tests in promtool's format, with promtool's verdicts.

What decides agreement: every group is evaluated at every step of `evaluation_interval`, its
own interval does not count; samples exist only up to the last step, also for expressions
asked about later; an alert test is held against the last step not after its time, and only
firing alerts count. Values may differ in the last digits unless `exact`.

A file with `fuzzy_compare` that is not run `exact` is judged as Prometheus judges its own
suite: to six digits, and with all input there when expressions are asked about.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sentinel.config.rulefile import RuleFileError, load_rule_files
from sentinel.config.ruletestfile import (
    AlertTest,
    ExpressionTest,
    InputSeries,
    RuleTest,
    RuleTestFile,
    read_rule_tests,
)
from sentinel.config.seriesnotation import STALE
from sentinel.core.alerting.advance import show_labels
from sentinel.core.alerting.duration import show_duration
from sentinel.core.alerting.evaluate import LOOKBACK, Evaluator, Setting, vector_of
from sentinel.core.alerting.go_format import show_float
from sentinel.core.alerting.rule import Compat, RuleError, RuleGroup
from sentinel.core.model.labels import Labels, labels_of
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import EvaluationError, ExpressionError, compile_expression

TOLERANCE = 1e-9  # relative: what different versions of Prometheus differ by
FUZZY_TOLERANCE = 1e-6
Same = Callable[[float, float], bool]
Samples = Sequence[tuple[Labels, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestOutcome:
    """Of one test of a file, or of the whole file where it could not be run."""

    __test__ = False  # not a test itself

    file: Path
    name: str
    failures: Sequence[str] = ()
    warnings: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        return not self.failures


def run_rule_tests(
    paths: Sequence[Path], *, compat: Compat = 3, exact: bool = False, run: str | None = None
) -> list[TestOutcome]:
    """`run`: only tests whose name this regular expression finds."""
    wanted = re.compile(run or "")
    return [outcome for path in paths for outcome in _run_file(path, compat, wanted, exact=exact)]


def _run_file(
    path: Path, compat: Compat, wanted: re.Pattern[str], *, exact: bool
) -> Iterable[TestOutcome]:
    file, faults = read_rule_tests(path, compat=compat)
    if file is None:
        return [TestOutcome(file=path, name="", failures=[str(fault) for fault in faults])]
    try:
        groups = load_rule_files(file.rule_files, compat=compat)
    except RuleFileError as error:
        says = [str(fault) for fault in error.faults]
        return [TestOutcome(file=path, name="", failures=says, warnings=file.warnings)]
    order = {name: place for place, name in enumerate(file.group_eval_order)}
    groups.sort(key=lambda group: order.get(group.name, 0))
    same = _comparison(exact=exact, fuzzy=file.fuzzy_compare)
    return [
        TestOutcome(
            file=path,
            name=test.name,
            failures=_Trial(test, file, groups, compat, same).run(
                load_all=file.fuzzy_compare and not exact
            ),
            warnings=file.warnings,
        )
        for test in file.tests
        if wanted.search(test.name)
    ]


def _comparison(*, exact: bool, fuzzy: bool) -> Same:
    if exact and fuzzy:  # promtool's: one step apart
        return lambda one, other: one == other or math.nextafter(one, other) == other
    if exact:
        return lambda one, other: one == other
    tolerance = FUZZY_TOLERANCE if fuzzy else TOLERANCE
    return lambda one, other: (
        (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=tolerance)
    )


class _Trial:
    """One test: its own store, its own alerts, from its start to the last instant asked about."""

    def __init__(
        self,
        test: RuleTest,
        file: RuleTestFile,
        groups: Sequence[RuleGroup],
        compat: Compat,
        same: Same,
    ) -> None:
        self._test = test
        self._step = file.evaluation_interval
        self._compat = compat
        self._same = same
        self._store = Store(retention_ms=1 << 62)
        setting = Setting(
            interval=self._step,
            external_labels=test.external_labels,
            external_url=test.external_url,
            compat=compat,
        )
        self._evaluator = Evaluator(groups, self._store, setting=setting)
        self._feeds = [
            _Feed(self._store, series, number, millis(test.start), _ms(test.interval))
            for number, series in enumerate(test.input_series)
        ]

    def run(self, *, load_all: bool) -> list[str]:
        failures: list[str] = []
        due = sorted(self._test.alert_tests, key=lambda one: one.eval_time)
        at = timedelta(0)
        while at <= self._test.until:
            broken = self._evaluate(self._test.start + at, at)
            if broken:
                return failures + broken
            while due and due[0].eval_time < at + self._step:
                failures.extend(self._judge_alerts(due.pop(0)))
            at += self._step
        for feed in self._feeds if load_all else ():
            feed.up_to(None)
        for one in self._test.expression_tests:
            failures.extend(self._judge_expression(one))
        return failures

    def _evaluate(self, now: datetime, at: timedelta) -> list[str]:
        for feed in self._feeds:
            feed.up_to(millis(now))
        return [
            f"rule: {failure.rule.name}, time: {show_duration(at)}, err: {failure.because}"
            for failure in self._evaluator.evaluate(now).failures
        ]

    def _judge_alerts(self, test: AlertTest) -> list[str]:
        got = sorted(
            _show_alert(alert.labels, alert.annotations)
            for alert in self._evaluator.active
            if alert.state == "firing" and alert.alertname == test.alertname
        )
        expected = sorted(_show_alert(one.labels, one.annotations) for one in test.expected)
        if got == expected:
            return []
        what = f"alertname: {test.alertname}, time: {show_duration(test.eval_time)}"
        return [self._difference(what, _indented(expected), _indented(got))]

    def _judge_expression(self, test: ExpressionTest) -> list[str]:
        what = f'expr: "{test.expr}", time: {show_duration(test.eval_time)}'
        at = millis(self._test.start + test.eval_time)
        try:
            expr = compile_expression(test.expr, compat=self._compat)
            result = expr.at(
                self._store, at, lookback_ms=_ms(LOOKBACK), default_step_ms=_ms(self._step)
            )
            got = [(sample.labels, sample.value) for sample in vector_of(result)]
        except (ExpressionError, EvaluationError, RuleError) as error:
            return [self._named(f"{what}, err: {error}")]
        expected = [(labels_of(labels), value) for labels, value in test.expected]
        if _agree(expected, got, self._same):
            return []
        return [self._difference(what, _show_samples(expected), _show_samples(got))]

    def _difference(self, what: str, expected: str, got: str) -> str:
        return self._named(f"{what},\n    exp: {expected}\n    got: {got}")

    def _named(self, says: str) -> str:
        return f"name: {self._test.name},\n{says}" if self._test.name else says


class _Feed:
    """One input series, written into the store as far as time has come."""

    def __init__(
        self, store: Store, series: InputSeries, number: int, start_ms: int, interval_ms: int
    ) -> None:
        self._source = store.source(f"input {number}", {})
        self._series = series
        self._start_ms = start_ms
        self._interval_ms = interval_ms
        self._next = 0

    def up_to(self, now_ms: int | None) -> None:
        """All that is not after `now_ms`; all there is if None."""
        name = self._series.labels.get("__name__", "")
        labels = {key: value for key, value in self._series.labels.items() if key != "__name__"}
        while self._next < len(self._series.values):
            at_ms = self._start_ms + self._next * self._interval_ms
            if now_ms is not None and at_ms > now_ms:
                return
            value = self._series.values[self._next]
            if value == STALE:
                self._source.put((), at_ms)
            elif isinstance(value, float):
                self._source.put([(name, labels, value)], at_ms)
            self._next += 1


def _agree(expected: Samples, got: Samples, same: Same) -> bool:
    if len(expected) != len(got):
        return False
    pairs = zip(sorted(expected, key=_by_labels), sorted(got, key=_by_labels), strict=True)
    return all(one[0] == other[0] and same(one[1], other[1]) for one, other in pairs)


def _by_labels(sample: tuple[Labels, float]) -> Labels:
    return sample[0]


def _show_samples(samples: Samples) -> str:
    shown = [
        f"{_show_metric(dict(labels))} {show_float(value)}"
        for labels, value in sorted(samples, key=_by_labels)
    ]
    return ", ".join(shown) or "nil"


def _show_metric(labels: Mapping[str, str]) -> str:
    name = labels.get("__name__", "")
    rest = {key: value for key, value in labels.items() if key != "__name__"}
    return name + (show_labels(rest) if rest or not name else "")


def _show_alert(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    return f"Labels:{show_labels(labels)}\nAnnotations:{show_labels(annotations)}"


def _indented(alerts: Sequence[str]) -> str:
    if not alerts:
        return "[]"
    lines = [
        f"{number}:\n" + "\n".join(f"    {line}" for line in alert.split("\n"))
        for number, alert in enumerate(alerts)
    ]
    return (
        "[\n"
        + "\n".join("        " + line for one in lines for line in one.split("\n"))
        + "\n    ]"
    )


def _ms(span: timedelta) -> int:
    return round(span.total_seconds() * 1000)
