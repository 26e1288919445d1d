"""The shipped rules hold what they promise, here and in Prometheus."""

import re
from pathlib import Path

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.config.ruletest import run_rule_tests
from sentinel.config.ruletestfile import read_rule_tests
from sentinel.core.alerting.rule import AlertRule, Compat
from sentinel.core.gpu.xid import XIDS
from tests.rules.promtool import check_rules, needs_promtool, passes_tests

RULES = Path(__file__).parents[2] / "rules"
FILES = sorted(RULES.glob("*.yaml"))
PRESETS = sorted((RULES / "presets").glob("*.yaml"))
TESTS = sorted((RULES / "tests").glob("*.test.yaml"))
ALERTS = [
    rule
    for group in load_rule_files([*FILES, *PRESETS])
    for rule in group.rules
    if isinstance(rule, AlertRule)
]
STABLE = {
    "target", "host", "model_name", "engine", "kind", "gpu", "uuid", "pool", "receiver",
    "integration", "severity", "alertname", "mountpoint",
}  # fmt: skip


@pytest.mark.parametrize("compat", [2, 3])
@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_the_tests_of_the_rules_pass(file: Path, compat: Compat) -> None:
    outcomes = run_rule_tests([file], compat=compat, exact=True)

    assert [says for outcome in outcomes for says in (*outcome.failures, *outcome.warnings)] == []


def _tested_by(rules: Path) -> Path:
    stem = "presets" if rules in PRESETS else rules.stem
    return RULES / "tests" / f"{stem}.test.yaml"


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_is_seen_to_fire_and_to_be_silent(alert: AlertRule) -> None:
    tests, faults = read_rule_tests(_tested_by(Path(alert.file)))
    assert tests is not None, faults
    seen = {(one.alertname, bool(one.expected)) for test in tests.tests for one in test.alert_tests}

    assert {(alert.name, True), (alert.name, False)} <= seen


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_says_how_bad_what_and_where_to_read_on(alert: AlertRule) -> None:
    assert alert.labels.keys() == {"severity"}
    assert alert.labels["severity"] in ("info", "warning", "critical")
    assert alert.annotations.keys() == {
        "summary", "description", "summary_zh", "description_zh", "runbook_url",
    }  # fmt: skip
    assert alert.annotations["runbook_url"] == f"docs/runbook.md#{alert.name.lower()}"
    for name, text in alert.annotations.items():
        assert bool(re.search("[\u4e00-\u9fff]", text)) == name.endswith("_zh")


def test_alerts_have_names_of_their_own() -> None:
    assert len({alert.name for alert in ALERTS}) == len(ALERTS)


def test_no_alert_carries_a_label_that_changes_with_the_container() -> None:
    for file in TESTS:
        tests, _ = read_rule_tests(file)
        assert tests is not None
        for test in tests.tests:
            for one in test.alert_tests:
                for expected in one.expected:
                    assert expected.labels.keys() <= STABLE


def test_the_fatal_xids_are_those_that_need_a_reset() -> None:
    (listed,) = re.findall(r'xid=~"([\d|]+)"', (RULES / "gpu.yaml").read_text())

    assert listed.split("|") == [str(n) for n, xid in XIDS.items() if xid.severity == "critical"]


@pytest.mark.slow
@needs_promtool
def test_promtool_takes_the_rules() -> None:
    assert check_rules(*FILES, *PRESETS)


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.stem)
def test_the_tests_pass_in_promtool(file: Path) -> None:
    assert passes_tests(file)


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eval_time: 45s", "eval_time: 15s"),
        ("target: llm-a, ", ""),
        ("within 10 minutes, by Docker", "within 11 minutes, by Docker"),
        ("exp_alerts: []", "exp_alerts: [{exp_labels: {host: gpu1}}]"),
        ("values: '7x40'", "values: '7x10 8x30'"),
    ],
    ids=["too early", "label", "annotation", "silence", "an event"],
)
def test_a_test_that_is_wrong_fails_here_and_in_promtool(
    tmp_path: Path, old: str, new: str
) -> None:
    text = (RULES / "tests" / "vllm.test.yaml").read_text()
    assert old in text
    file = tmp_path / "wrong.test.yaml"
    file.write_text(text.replace("../vllm.yaml", str(RULES / "vllm.yaml")).replace(old, new))

    assert not passes_tests(file)
    assert not all(outcome.passed for outcome in run_rule_tests([file], compat=2, exact=True))
