"""Rule unit-test files in promtool's format, as values. Unknown fields are faults, as there."""

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sentinel.config.document import Place, Scalar, compose
from sentinel.config.fault import Fault
from sentinel.config.fields import Field, Reader
from sentinel.config.seriesnotation import Value, parse_series, parse_values
from sentinel.core.alerting.rule import Compat
from sentinel.core.model.moment import moment

_FILE_KEYS = ("rule_files", "evaluation_interval", "group_eval_order", "tests")
_TEST_KEYS = (
    "name",
    "interval",
    "input_series",
    "alert_rule_test",
    "promql_expr_test",
    "external_labels",
    "external_url",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSeries:
    labels: Mapping[str, str]
    values: Sequence[Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedAlert:
    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTest:
    eval_time: timedelta
    alertname: str
    expected: Sequence[ExpectedAlert]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionTest:
    expr: str
    eval_time: timedelta
    expected: Sequence[tuple[Mapping[str, str], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTest:
    name: str
    interval: timedelta
    start: datetime
    input_series: Sequence[InputSeries]
    alert_tests: Sequence[AlertTest]
    expression_tests: Sequence[ExpressionTest]
    external_labels: Mapping[str, str]
    external_url: str

    @property
    def until(self) -> timedelta:
        """The last instant that anything is asked about."""
        alerts = [one.eval_time for one in self.alert_tests]
        expressions = [one.eval_time for one in self.expression_tests]
        return max([*alerts, *expressions], default=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTestFile:
    path: Path
    rule_files: Sequence[Path]
    warnings: Sequence[str]
    evaluation_interval: timedelta
    group_eval_order: Sequence[str]
    fuzzy_compare: bool
    tests: Sequence[RuleTest]


def read_rule_tests(path: Path, *, compat: Compat = 3) -> tuple[RuleTestFile | None, list[Fault]]:
    """The file, or None and what is wrong with it."""
    start = Place(path, 1, 1)
    try:
        content = path.read_bytes()
    except OSError as error:
        says = f"cannot be read: {error.strerror or error}"
        return None, [start.fault((), says, "a file that Sentinel may read")]
    root, faults = compose(content, path)
    if not root.keys and not faults:
        faults = [start.fault((), "the file is empty", "a mapping with key tests")]
    reader = Reader()
    read = _TestFile(reader, path, compat).read(Field((), root))
    faults.extend(reader.faults)
    return (None, faults) if faults else (read, [])


class _TestFile:
    def __init__(self, reader: Reader, path: Path, compat: Compat) -> None:
        self._reader = reader
        self._path = path
        self._compat = compat

    def read(self, root: Field) -> RuleTestFile:
        read = self._reader
        keys = read.mapping(
            root, (*_FILE_KEYS, "fuzzy_compare") if self._compat > 2 else _FILE_KEYS
        )
        interval = read.duration(keys.get("evaluation_interval")) or timedelta(minutes=1)
        order = [read.text(one) for one in read.items(keys.get("group_eval_order"))]
        for name in sorted({name for name in order if order.count(name) > 1}):
            says = f"group name repeated in evaluation order: {name}"
            read.fault(keys["group_eval_order"], says, "each group once")
        files, warnings = self._rule_files(read.items(keys.get("rule_files")))
        return RuleTestFile(
            path=self._path,
            rule_files=files,
            warnings=warnings,
            evaluation_interval=interval,
            group_eval_order=order,
            fuzzy_compare=read.flag(keys.get("fuzzy_compare")),
            tests=[self._test(one, interval) for one in read.items(keys.get("tests"))],
        )

    def _rule_files(self, patterns: Sequence[Field]) -> tuple[list[Path], list[str]]:
        files: list[Path] = []
        warnings: list[str] = []
        for field in patterns:
            pattern = str(self._path.parent / self._reader.text(field))
            found = sorted(glob.glob(pattern))  # noqa: PTH207 - the pattern may be absolute
            if not found:
                warnings.append(f"no file matches {pattern}")
            files.extend(Path(one) for one in found)
        return files, warnings

    def _test(self, field: Field, interval: timedelta) -> RuleTest:
        read = self._reader
        keys = read.mapping(
            field, (*_TEST_KEYS, "start_timestamp") if self._compat > 2 else _TEST_KEYS
        )
        name = read.text(keys.get("name"))
        labels = read.texts(keys.get("external_labels"))
        return RuleTest(
            name=name,
            interval=read.duration(keys.get("interval")) or interval,
            start=self._start(keys.get("start_timestamp")),
            input_series=self._input_series(keys.get("input_series")),
            alert_tests=[self._alert_test(one) for one in read.items(keys.get("alert_rule_test"))],
            expression_tests=[
                test
                for one in read.items(keys.get("promql_expr_test"))
                if (test := self._expression_test(one)) is not None
            ],
            external_labels={key: read.text(value) for key, value in labels.items()},
            external_url=read.text(keys.get("external_url")),
        )

    def _start(self, field: Field | None) -> datetime:
        text = self._reader.text(field)
        if field is None or not text:
            return _EPOCH
        try:
            return _EPOCH + timedelta(seconds=float(text))
        except (ValueError, OverflowError):
            pass
        try:
            return moment(text)
        except ValueError:
            self._reader.fault(field, f"{text!r} is no instant", "Unix seconds or RFC 3339")
            return _EPOCH

    def _input_series(self, field: Field | None) -> list[InputSeries]:
        """Of a series given twice the last counts."""
        read = self._reader
        found: dict[tuple[tuple[str, str], ...], InputSeries] = {}
        for one in read.items(field):
            keys = read.mapping(one, ("series", "values"))
            labels, values = self._series(keys.get("series", one)), self._values(keys.get("values"))
            found[tuple(sorted(labels.items()))] = InputSeries(labels=labels, values=values)
        return list(found.values())

    def _series(self, field: Field) -> dict[str, str]:
        text = self._reader.text(field) if isinstance(field.node, Scalar) else ""
        try:
            return parse_series(text)
        except ValueError as error:
            self._reader.fault(field, str(error), 'a series like metric{label="value"}')
            return {}

    def _values(self, field: Field | None) -> list[Value]:
        text = self._reader.text(field)
        try:
            return parse_values(text)
        except ValueError as error:
            if field is not None:
                self._reader.fault(field, str(error), "values like 1 2 _ stale 0+1x10")
            return []

    def _alert_test(self, field: Field) -> AlertTest:
        read = self._reader
        keys = read.mapping(field, ("eval_time", "alertname", "exp_alerts"))
        name = read.text(keys.get("alertname"))
        if not name:
            says = "an item under alert_rule_test misses required attribute alertname"
            read.fault(keys.get("alertname", field), says, "the name of an alert")
        return AlertTest(
            eval_time=read.duration(keys.get("eval_time")),
            alertname=name,
            expected=[self._expected(one, name) for one in read.items(keys.get("exp_alerts"))],
        )

    def _expected(self, field: Field, alertname: str) -> ExpectedAlert:
        read = self._reader
        keys = read.mapping(field, ("exp_labels", "exp_annotations"))
        labels, annotations = (
            read.texts(keys.get("exp_labels")),
            read.texts(keys.get("exp_annotations")),
        )
        return ExpectedAlert(
            labels={**{k: read.text(v) for k, v in labels.items()}, "alertname": alertname},
            annotations={k: read.text(v) for k, v in annotations.items()},
        )

    def _expression_test(self, field: Field) -> ExpressionTest | None:
        read = self._reader
        keys = read.mapping(field, ("expr", "eval_time", "exp_samples"))
        expected: list[tuple[Mapping[str, str], float]] = []
        for one in read.items(keys.get("exp_samples")):
            sample = read.mapping(one, ("labels", "value", "histogram"))
            if read.text(sample.get("histogram")):
                read.fault(sample["histogram"], "native histograms are not supported", "a value")
            text = read.text(sample.get("labels")) or "{}"
            labels = self._series(sample["labels"]) if text != "{}" else {}
            expected.append((labels, read.number(sample.get("value"))))
        return ExpressionTest(
            expr=read.text(keys.get("expr")),
            eval_time=read.duration(keys.get("eval_time")),
            expected=expected,
        )
