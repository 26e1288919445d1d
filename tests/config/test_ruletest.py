import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent

import pytest

from sentinel.config.ruletest import TestOutcome, run_rule_tests
from tests.rules.promtool import needs_promtool, passes_tests

RULES = """\
groups:
  - name: one
    interval: 10m
    rules:
      - alert: Waiting
        expr: m > 0
        for: 2m
        labels: {severity: page}
        annotations: {summary: "{{ $labels.job }} has {{ $value }}"}
      - alert: Kept
        expr: m > 0
        keep_firing_for: 2m
      - record: twice
        expr: m * 2
  - name: two
    rules:
      - record: four_times
        expr: twice * 2
      - alert: Kept
        expr: m > 5
        labels: {from: two}
"""


@dataclass(frozen=True)
class Case:
    """One test, and whether promtool lets it pass."""

    passes: bool
    series: str = ""
    alerts: str = ""
    exprs: str = ""
    head: str = ""
    interval: str = "1m"

    def write(self, folder: Path) -> Path:
        (folder / "rules.yaml").write_text(RULES)
        file = folder / "case.test.yaml"
        parts = {
            "input_series": self.series,
            "alert_rule_test": self.alerts,
            "promql_expr_test": self.exprs,
        }
        body = "".join(
            f"{key}:\n{indent(dedent(text), '  ')}\n" for key, text in parts.items() if text
        )
        test = indent(f"interval: {self.interval}\n{body}", "    ")
        file.write_text(f"rule_files: [rules.yaml]\n{dedent(self.head)}\ntests:\n  -\n{test}")
        return file


def m(values: str, labels: str = "") -> str:
    return f"- {{series: 'm{labels}', values: '{values}'}}\n"


def expr(text: str, at: str, *samples: str) -> str:
    return f"- {{expr: '{text}', eval_time: {at}, exp_samples: [{', '.join(samples)}]}}\n"


def value(number: float | str, labels: str = "{}") -> str:
    return f"{{labels: '{labels}', value: {number}}}"


def silent(alert: str, at: str) -> str:
    return f"- {{eval_time: {at}, alertname: {alert}, exp_alerts: []}}\n"


def fires(alert: str, at: str, *labels: str, says: str = "") -> str:
    listed = ", ".join(f"{{exp_labels: {{{one}}}, exp_annotations: {{{says}}}}}" for one in labels)
    return f"- {{eval_time: {at}, alertname: {alert}, exp_alerts: [{listed}]}}\n"


WAITING = {"says": 'summary: "a has 1"'}
JOB = m("1x10", '{job="a"}')

CASES = {
    "nothing asked": Case(True, series=m("1")),
    "a result": Case(True, series=m("1 2 3"), exprs=expr("m", "2m", value(3, "m"))),
    "a wrong value": Case(False, series=m("1 2 3"), exprs=expr("m", "2m", value(4, "m"))),
    "a wrong label": Case(False, series=m("1 2 3"), exprs=expr("m", "2m", value(3, 'm{a="b"}'))),
    "a sample too many": Case(False, series=m("1 2 3"), exprs=expr("m > 5", "2m", value(3, "m"))),
    "nothing expected": Case(True, series=m("1 2 3"), exprs=expr("m > 5", "2m")),
    "a result where nothing is expected": Case(False, series=m("1 2 3"), exprs=expr("m", "2m")),
    "a number has no labels": Case(True, exprs=expr("1 + 1", "0", "{value: 2}")),
    "a text is no result": Case(False, exprs=expr('"text"', "0", "{value: 2}")),
    "a matrix is no result": Case(False, series=m("1"), exprs=expr("m[5m]", "0", value(1, "m"))),
    "an expression that does not parse": Case(False, exprs=expr("m +", "0")),
    "an expression that fails": Case(
        False, series=m("1", '{a="1",b="1"}') + m("1", '{a="1",b="2"}'), exprs=expr("m * on (a) m", "0")
    ),
    "order does not matter": Case(
        True, series=m("1", '{a="1"}') + m("2", '{a="2"}'), exprs=expr("sort_desc(m)", "0", value(1, 'm{a="1"}'), value(2, 'm{a="2"}'))
    ),
    "values compare exactly": Case(False, exprs=expr("0.1 + 0.2", "0", "{value: 0.3}")),
    "the last of a repeated series counts": Case(True, series=m("1 1") + m("2 2"), exprs=expr("m", "1m", value(2, "m"))),
    "a gap is looked over": Case(True, series=m("1 _ _"), exprs=expr("m", "2m", value(1, "m"))),
    "stale ends a series": Case(True, series=m("1 stale _"), exprs=expr("m", "2m")),
    "samples between steps": Case(True, series=m("1+1x20"), interval="15s", exprs=expr("m", "2m", value(9, "m"))),
    "no sample after the last step": Case(True, series=m("1 2 3 4 5 6 7 8"), interval="30s", exprs=expr("m", "1m30s", value(3, "m"))),
    "a later question brings it": Case(
        True, series=m("1 2 3 4 5 6 7 8"), interval="30s", exprs=expr("m", "1m30s", value(4, "m")) + expr("m", "2m", value(5, "m"))
    ),
    "a pending alert is none": Case(True, series=JOB, alerts=silent("Waiting", "1m")),
    "it fires when `for` has passed": Case(True, series=JOB, alerts=fires("Waiting", "2m", "job: a, severity: page", **WAITING)),
    "the group's own interval does not count": Case(True, series=JOB, alerts=fires("Waiting", "3m", "job: a, severity: page", **WAITING)),
    "labels must be complete": Case(False, series=JOB, alerts=fires("Waiting", "2m", "job: a", **WAITING)),
    "annotations must be complete": Case(False, series=JOB, alerts=fires("Waiting", "2m", "job: a, severity: page")),
    "an alert where none is expected": Case(False, series=JOB, alerts=silent("Waiting", "2m")),
    "none where one is expected": Case(False, series=JOB, alerts=fires("Waiting", "1m", "job: a, severity: page", **WAITING)),
    "between steps the last one counts": Case(True, series=JOB, alerts=silent("Waiting", "1m59s") + fires("Waiting", "2m59s", "job: a, severity: page", **WAITING)),
    "an alert nobody knows is silent": Case(True, series=JOB, alerts=silent("Unknown", "5m")),
    "an alert nobody knows does not fire": Case(False, series=JOB, alerts=fires("Unknown", "5m", "job: a")),
    "rules of one name count together": Case(True, series=m("6x5"), alerts=fires("Kept", "1m", "", "from: two")),
    "kept after its cause": Case(True, series=m("1 1 0 0 0 0"), alerts=fires("Kept", "3m", "") + silent("Kept", "4m")),
    "recorded series can be asked about": Case(True, series=m("1 2"), exprs=expr("twice", "1m", value(4, "twice"))),
    "groups follow the order given": Case(
        True, series=m("1 2"), head="group_eval_order: [one, two]", exprs=expr("four_times", "1m", value(8, "four_times"))
    ),
    "the order given may be the other one": Case(
        True, series=m("1 2"), head="group_eval_order: [two, one]", exprs=expr("four_times", "1m", value(4, "four_times"))
    ),
    "alerts are series": Case(
        True,
        series=m("_ 1x5"),
        exprs=expr('ALERTS{alertname="Waiting"}', "2m", value(1, 'ALERTS{alertname="Waiting",alertstate="pending",severity="page"}'))
        + expr('ALERTS_FOR_STATE{alertname="Waiting"}', "2m", value(60, 'ALERTS_FOR_STATE{alertname="Waiting",severity="page"}')),
    ),
    "another step": Case(
        True, series=JOB, head="evaluation_interval: 30s", alerts=silent("Waiting", "1m30s") + fires("Waiting", "2m", "job: a, severity: page", **WAITING)
    ),
    "the step of a subquery is that of the test": Case(
        True, series=m("1+1x20"), interval="10s", head="evaluation_interval: 30s", exprs=expr("count_over_time(m[95s:])", "2m10s", value(3))
    ),
    "an unknown field": Case(False, head="evaluation_intervall: 1m"),
    "an alert test without a name": Case(False, series=JOB, alerts="- {eval_time: 1m, exp_alerts: []}"),
    "a group named twice in the order": Case(False, head="group_eval_order: [one, one]"),
    "bad values": Case(False, series=m("1+1"), exprs=expr("1", "0", "{value: 1}")),
    "bad series": Case(False, series="- {series: 'm{', values: '1'}", exprs=expr("1", "0", "{value: 1}")),
    "bad expected labels": Case(False, exprs=expr("1", "0", value(1, "{a}"))),
    "bad time": Case(False, exprs=expr("1", "1 minute", "{value: 1}")),
}  # fmt: skip


def verdict(outcomes: list[TestOutcome]) -> bool:
    return all(outcome.passed for outcome in outcomes)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_verdicts_are_those_of_promtool(tmp_path: Path, case: Case) -> None:
    assert verdict(run_rule_tests([case.write(tmp_path)], compat=2, exact=True)) is case.passes


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_promtool_says_so_itself(tmp_path: Path, case: Case) -> None:
    assert passes_tests(case.write(tmp_path)) is case.passes


def failures(tmp_path: Path, case: Case) -> list[str]:
    return [says for outcome in run_rule_tests([case.write(tmp_path)]) for says in outcome.failures]


def test_a_difference_between_alerts_can_be_read(tmp_path: Path) -> None:
    [says] = failures(tmp_path, Case(False, series=JOB, alerts=silent("Waiting", "2m")))

    assert says == dedent("""\
        alertname: Waiting, time: 2m,
            exp: []
            got: [
                0:
                    Labels:{alertname="Waiting", job="a", severity="page"}
                    Annotations:{summary="a has 1"}
            ]""")


def test_a_difference_between_samples_can_be_read(tmp_path: Path) -> None:
    case = Case(
        False,
        series=m("1 2", '{a="b"}'),
        exprs=expr("m", "1m", value(3, "m")) + expr("sum(m)", "1m"),
    )

    assert failures(tmp_path, case) == [
        'expr: "m", time: 1m,\n    exp: m 3\n    got: m{a="b"} 2',
        'expr: "sum(m)", time: 1m,\n    exp: nil\n    got: {} 2',
    ]


def test_a_rule_that_fails_ends_its_test(tmp_path: Path) -> None:
    case = Case(
        False,
        series=m("1", '{a="1"}') + m("1", '{a="2"}'),
        alerts=silent("Broken", "1m"),
        exprs=expr("m", "0"),
    )
    file = case.write(tmp_path)
    (tmp_path / "rules.yaml").write_text(
        "groups: [{name: g, rules: [{alert: Broken, expr: m * on () m}]}]"
    )

    [outcome] = run_rule_tests([file])

    [says] = outcome.failures
    assert re.match(r"rule: Broken, time: 0s, err: .*many-to-many", says)


def test_rule_files_with_faults_fail_the_file_and_say_why(tmp_path: Path) -> None:
    file = CASES["a result"].write(tmp_path)
    (tmp_path / "rules.yaml").write_text("groups: [{name: g, rules: [{alert: A}]}]")

    [outcome] = run_rule_tests([file])

    assert outcome.failures[0].startswith(f"{tmp_path}/rules.yaml:1:28: groups[0].rules[0]: ")


def test_a_pattern_that_matches_no_file_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("rule_files: [none*.yaml]\ntests: [{name: t}]")

    [outcome] = run_rule_tests([file])

    assert outcome.passed
    assert outcome.warnings == [f"no file matches {tmp_path}/none*.yaml"]


def test_a_file_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    [outcome] = run_rule_tests([tmp_path / "none.yaml"])

    assert not outcome.passed


THREE = """\
fuzzy_compare: {fuzzy}
tests:
  - name: first
    start_timestamp: 2024-01-02T03:04:05Z
    interval: 1m
    input_series: [{{series: m, values: '0+1x10'}}]
    promql_expr_test:
      - {{expr: timestamp(m), eval_time: 1m, exp_samples: [{{value: 1704164705}}]}}
      - {{expr: 'count_over_time(m[5m])', eval_time: 8m, exp_samples: [{{value: 5}}]}}
  - name: second
    promql_expr_test:
      - {{expr: 0.1 + 0.2, eval_time: 0s, exp_samples: [{{value: {value}}}]}}
"""


@pytest.mark.parametrize(
    ("fuzzy", "value", "exact", "passes"),
    [
        ("false", "0.3", False, True),
        ("false", "0.3000001", False, False),
        ("false", "0.3", True, False),
        ("true", "0.3", True, True),
        ("true", "0.30000000000000016", True, False),
        ("true", "0.3000001", False, True),
        ("true", "0.301", False, False),
    ],
)
def test_how_close_is_close_enough(
    tmp_path: Path, fuzzy: str, value: str, exact: bool, passes: bool
) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(THREE.format(fuzzy=fuzzy, value=value))

    first, second = run_rule_tests([file], exact=exact)

    assert (first.name, first.passed) == ("first", True)
    assert (second.name, second.passed) == ("second", passes)


def test_only_tests_of_that_name_are_run(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(THREE.format(fuzzy="true", value="0.3"))

    assert [outcome.name for outcome in run_rule_tests([file], run="^sec")] == ["second"]


def test_prometheus_2_does_not_know_the_fields_of_3(tmp_path: Path) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(THREE.format(fuzzy="true", value="0.3"))

    [outcome] = run_rule_tests([file], compat=2)

    assert [says.split(": ")[1] for says in outcome.failures] == [
        "fuzzy_compare",
        "tests[0].start_timestamp",
    ]


def test_windows_are_those_of_the_chosen_prometheus(tmp_path: Path) -> None:
    case = Case(True, series=m("1x10"), exprs=expr("count_over_time(m[5m])", "8m", value(6)))
    file = case.write(tmp_path)

    assert verdict(run_rule_tests([file], compat=2))
    assert not verdict(run_rule_tests([file], compat=3))
