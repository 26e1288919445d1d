from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.config.rulefile import RuleFileError, load_rule_files
from sentinel.core.alerting.rule import AlertRule, Compat, RecordingRule
from tests.rules.promtool import check_rules, needs_promtool

GOOD = """\
groups:
  - name: g
    interval: 30s
    limit: 10
    rules:
      - record: job:m:sum
        expr: sum by (job) (m)
        labels: {team: infra, number: 5}
      - alert: A
        expr: |
          job:m:sum
            > 1
        for: 1h30m
        keep_firing_for: 5m
        labels: {severity: "{{ $labels.job }}"}
        annotations: {summary: "{{ $value | humanize }}"}
"""


def written(tmp_path: Path, text: str, name: str = "r.yaml") -> Path:
    file = tmp_path / name
    file.write_text(dedent(text), encoding="utf-8")
    return file


def faults(tmp_path: Path, text: str, compat: Compat = 3) -> list[str]:
    file = written(tmp_path, text)
    with pytest.raises(RuleFileError) as caught:
        load_rule_files([file], compat=compat)
    return [str(fault).removeprefix(f"{file}:") for fault in caught.value.faults]


def test_a_file_becomes_groups_of_rules(tmp_path: Path) -> None:
    file = written(tmp_path, GOOD)

    [group] = load_rule_files([file])

    assert (group.name, group.file, group.limit) == ("g", str(file), 10)
    assert group.interval is not None
    assert group.interval.total_seconds() == 30
    record, alert = group.rules
    assert isinstance(record, RecordingRule)
    assert (record.name, record.labels) == ("job:m:sum", {"team": "infra", "number": "5"})
    assert record.expr.metric_names == {"m"}
    assert isinstance(alert, AlertRule)
    assert (alert.for_.total_seconds(), alert.keep_firing_for.total_seconds()) == (5400, 300)
    assert alert.annotations == {"summary": "{{ $value | humanize }}"}
    assert (alert.group, alert.file, alert.line, alert.id) == ("g", str(file), 9, "g/A")


def test_rules_of_one_name_are_told_apart(tmp_path: Path) -> None:
    rules = "groups: [{name: g, rules: [{alert: A, expr: m}, {alert: A, expr: n}, {alert: B, expr: m}]}]"
    first, second = written(tmp_path, rules, "1.yaml"), written(tmp_path, rules, "2.yaml")

    loaded = load_rule_files([first, second])

    assert [rule.id for group in loaded for rule in group.rules] == [
        "g/A", "g/A#2", "g/B", "g/A#3", "g/A#4", "g/B#2",
    ]  # fmt: skip


def test_group_labels_are_the_rules_own_unless_it_says_otherwise(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "groups: [{name: g, query_offset: 30s, labels: {team: a, tier: x}, rules: [{alert: A, expr: m, labels: {team: b}}]}]",
    )

    [group] = load_rule_files([file])

    assert group.query_offset.total_seconds() == 30
    assert group.rules[0].labels == {"team": "b", "tier": "x"}


@pytest.mark.parametrize(
    "text",
    ["groups: []", "groups:", "groups: [{name: g, rules: []}]", "groups: [{name: g}]", "---\ngroups: []\n",
     "groups:\n- name: g\n  rules:\n  - &r {alert: A, expr: m, for: 0}\n  - {<<: *r, alert: B}\n"],
    ids=["no groups", "null groups", "no rules", "rules left out", "document marker", "merge key"],
)  # fmt: skip
def test_what_prometheus_takes_is_taken(tmp_path: Path, text: str) -> None:
    load_rule_files([written(tmp_path, text)])


RULE = "groups: [{name: g, rules: [{%s}]}]"
G = 'group "g", rule 1, "A": '

# ¦ marks the place that the fault names.
FAULTS: dict[str, tuple[str, str]] = {
    "unknown top-level field": ("¦group: []", "group: unknown field 'group'; allowed: groups"),
    "unknown group field": (
        "groups: [{name: g, ¦rulez: []}]",
        "groups[0].rulez: unknown field 'rulez'; allowed: name, interval, query_offset, limit, labels, rules",
    ),
    "unknown rule field": (
        RULE % "alert: A, expr: m, ¦fro: 5m",
        f"groups[0].rules[0].fro: {G}unknown field 'fro'; allowed: record, alert, expr, for, keep_firing_for, labels, annotations",
    ),
    "no name": (
        "groups: [¦{rules: []}]",
        "groups[0]: Groupname must not be empty; allowed: a name",
    ),
    "group twice": (
        "groups: [{name: g}, ¦{name: g}]",
        'groups[1]: groupname: "g" is repeated in the same file; allowed: each group name once in a file',
    ),
    "neither alert nor record": (
        RULE.replace("{%", "¦{%") % "expr: m",
        "groups[0].rules[0]: group \"g\", rule 1, \"\": one of 'record' or 'alert' must be set; allowed: record or alert",
    ),
    "alert and record": (
        RULE % "alert: ¦A, record: r, expr: m",
        f"groups[0].rules[0].alert: {G}only one of 'record' and 'alert' must be set; allowed: record or alert",
    ),
    "no expression": (
        RULE.replace("{%", "¦{%") % "alert: A",
        f"groups[0].rules[0]: {G}field 'expr' must be set in rule; allowed: a PromQL expression that gives an instant vector or a scalar",
    ),
    "expression of a kind no rule can use": (
        RULE % "alert: A, expr: ¦'m[5m]'",
        f"groups[0].rules[0].expr: {G}expression gives a matrix, which no rule can use; allowed: a PromQL expression that gives an instant vector or a scalar",
    ),
    "bad duration": (
        RULE % "alert: A, expr: m, for: ¦5minutes",
        f'groups[0].rules[0].for: {G}not a valid duration string: "5minutes"; allowed: a duration like 30s, 5m, 1h30m or 1d (units y w d h m s ms, large ones first)',
    ),
    "bad interval": (
        "groups: [{name: g, interval: ¦-1m}]",
        'groups[0].interval: not a valid duration string: "-1m"; allowed: a duration like 30s, 5m, 1h30m or 1d (units y w d h m s ms, large ones first)',
    ),
    "bad limit": (
        "groups: [{name: g, limit: ¦many}]",
        "groups[0].limit: 'many' is not a whole number; allowed: a whole number",
    ),
    "annotation of a recording rule": (
        RULE % "record: r, expr: m, annotations: ¦{a: b}",
        'groups[0].rules[0].annotations: group "g", rule 1, "r": invalid field \'annotations\' in recording rule; allowed: record, expr, labels',
    ),
    "bad recording name": (
        RULE % "record: ¦a-b, expr: m",
        'groups[0].rules[0].record: group "g", rule 1, "a-b": invalid recording rule name: a-b; allowed: a metric name: letters, digits, _ and :',
    ),
    "bad label name": (
        RULE % "alert: A, expr: m, labels: {a-b: ¦c}",
        f"groups[0].rules[0].labels.a-b: {G}invalid label name: a-b; allowed: letters, digits and _, no digit first",
    ),
    "metric name as a label": (
        RULE % "alert: A, expr: m, labels: {__name__: ¦c}",
        f"groups[0].rules[0].labels.__name__: {G}invalid label name: __name__; allowed: letters, digits and _, no digit first",
    ),
    "unknown template function": (
        RULE % "alert: A, expr: m, annotations: {a: ¦'{{ nosuch 1 }}'}",
        f'groups[0].rules[0].annotations.a: {G}annotation "a": template: line 1: function "nosuch" not defined; allowed: a Go template with Prometheus\'s functions',
    ),
    "unclosed template in a label": (
        RULE % "alert: A, expr: m, labels: {a: ¦'{{ $value'}",
        f'groups[0].rules[0].labels.a: {G}label "a": template: line 1: unclosed action; allowed: a Go template with Prometheus\'s functions',
    ),
    "label that is a list": (
        RULE % "alert: A, expr: m, labels: {a: ¦[b]}",
        f"groups[0].rules[0].labels.a: {G}is not a single value; allowed: a text",
    ),
    "rule that is a text": (
        "groups: [{name: g, rules: [¦oops]}]",
        'groups[0].rules[0]: group "g", rule 1: is not a mapping; allowed: a mapping with alert or record, and expr',
    ),
    "groups that are a mapping": (
        "groups: ¦{name: g}",
        "groups: is not a list; allowed: a list, each item after a dash",
    ),
    "key twice": (
        RULE % "alert: A, expr: m, ¦expr: n",
        "groups[0].rules[0].expr: is given twice, first in line 1; allowed: each key once",
    ),
    "a list": ("¦- a", "(file): the file holds a list; allowed: a mapping of keys"),
    "empty": ("¦", "(file): the file is empty; allowed: a mapping with key groups"),
}


@pytest.mark.parametrize(("text", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_says_where_it_is_and_what_is_wrong(tmp_path: Path, text: str, says: str) -> None:
    column = text.index("¦") + 1

    assert faults(tmp_path, text.replace("¦", "")) == [f"1:{column}: {says}"]


def test_a_bad_expression_is_named_with_its_rule_and_its_place(tmp_path: Path) -> None:
    [says] = faults(tmp_path, GOOD.replace("> 1", "> > 1"))

    assert says.startswith(
        '10:15: groups[0].rules[1].expr: group "g", rule 2, "A": could not parse expression: '
    )


def test_what_is_not_evaluated_is_refused_when_it_is_loaded(tmp_path: Path) -> None:
    [says] = faults(tmp_path, RULE % "alert: A, expr: 'histogram_count(m)'")

    assert "could not parse expression: " in says
    assert "histogram" in says


def test_every_fault_of_every_file_is_found_in_one_go(tmp_path: Path) -> None:
    first = written(
        tmp_path,
        "groups: [{name: g, rules: [{alert: A, for: x}, {record: a-b, expr: m}]}]",
        "1.yaml",
    )
    second = written(tmp_path, "nonsense: 1", "2.yaml")

    with pytest.raises(RuleFileError) as caught:
        load_rule_files([first, second, tmp_path / "none.yaml"])

    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "groups[0].rules[0]", "groups[0].rules[0].for", "groups[0].rules[1].record", "nonsense", "(file)",
    ]  # fmt: skip
    assert (
        lines[-1]
        == f"{tmp_path}/none.yaml:1:1: (file): cannot be read: No such file or directory; allowed: a file that Sentinel may read"
    )


@pytest.mark.parametrize(
    ("content", "where"),
    [(b"groups: [\n", "2:1"), (b"groups:\n\t- a", "2:1"), (b"a: \xff", "1:4"), (b"groups: *none", "1:9"), (b"a: b: c", "1:5")],
    ids=["unclosed", "tab", "not UTF-8", "unknown anchor", "colon"],
)  # fmt: skip
def test_what_is_no_yaml_is_one_fault(tmp_path: Path, content: bytes, where: str) -> None:
    file = tmp_path / "r.yaml"
    file.write_bytes(content)

    with pytest.raises(RuleFileError) as caught:
        load_rule_files([file])

    [fault] = caught.value.faults
    assert f"{fault.line}:{fault.column}" == where
    assert "\n" not in str(fault)


def test_prometheus_2_does_not_know_the_fields_of_3(tmp_path: Path) -> None:
    [says] = faults(tmp_path, "groups: [{name: g, query_offset: 1m}]", compat=2)

    assert "unknown field 'query_offset'" in says


@given(st.binary(max_size=200))
def test_any_bytes_are_rules_or_faults(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_bytes(content)
    with suppress(RuleFileError):
        load_rule_files([file])


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize(("text", "says"), FAULTS.values(), ids=FAULTS)
def test_promtool_refuses_it_too(tmp_path: Path, text: str, says: str) -> None:
    stricter = ("the file is empty", "which no rule can use")

    assert check_rules(written(tmp_path, text.replace("¦", ""))) is any(
        one in says for one in stricter
    )
