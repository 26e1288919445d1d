import json
from pathlib import Path

import pytest

from tests.cli.conftest import Sentinel

GOOD = """
mode: act
receivers: [{name: test, webhook_configs: [{url: "http://127.0.0.1:18080/hook?key=sesame"}]}]
"""
RULES = """
groups:
  - name: mine
    rules:
      - {alert: Broken, expr: "rate(vllm:num_requests_running)"}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sentinel.yaml"


def test_a_good_file_is_0_with_its_warnings_on_standard_error(alone: Sentinel, file: Path) -> None:
    file.write_text(GOOD)

    result = alone("config", "check", str(file))

    assert result.exit_code == 0
    assert str(file) in result.stdout
    assert "secret" in result.stderr
    assert "sesame" not in result.output
    assert json.loads(alone("config", "check", str(file), "--json").stdout)["ok"] is True


def test_each_fault_is_one_line_on_standard_output(alone: Sentinel, file: Path) -> None:
    file.write_text("colour: act\nguards: {cooldown: soon}\n")

    result = alone("config", "check", str(file))

    assert result.exit_code == 2
    first, second = result.stdout.splitlines()
    assert first.startswith(f"{file}:1:")
    assert "colour" in first
    assert second.startswith(f"{file}:2:")
    assert "guards.cooldown" in second
    assert "; allowed: " in second
    faults = json.loads(alone("config", "check", str(file), "--json").stdout)["faults"]
    assert [fault["line"] for fault in faults] == [1, 2]


def test_the_file_is_that_of_the_environment_if_none_is_named(alone: Sentinel, file: Path) -> None:
    file.write_text("colour: act\n")

    assert alone("config", "check").exit_code == 2
    assert alone("config", "check", SENTINEL_CONFIG=str(file)).exit_code == 2
    assert alone("config", "check", str(file.with_name("none.yaml"))).exit_code == 2


def test_the_rules_a_configuration_names_are_checked_too(alone: Sentinel, file: Path) -> None:
    file.write_text('rules: {files: ["rules.d/*.yaml"]}\n')
    assert alone("config", "check", str(file)).exit_code == 0
    (file.parent / "rules.d").mkdir()
    (file.parent / "rules.d" / "mine.yaml").write_text(RULES)

    result = alone("config", "check", str(file))

    assert result.exit_code == 2
    assert "mine.yaml:5:" in result.stdout


def test_so_are_the_patterns(alone: Sentinel, file: Path) -> None:
    file.write_text("mode: watch\n")
    assert alone("config", "check", str(file)).exit_code == 0
    (file.parent / "patterns.d").mkdir()
    (file.parent / "patterns.d" / "mine.yaml").write_text("patterns:\n  - {cause: x, match: a}\n")

    result = alone("config", "check", str(file))

    assert result.exit_code == 2
    assert "mine.yaml:2:" in result.stdout


def test_a_secret_that_cannot_be_read_is_refused_here(alone: Sentinel, file: Path) -> None:
    file.write_text("receivers: [{name: t, wecom_configs: [{url_file: /no/such/file}]}]\n")

    result = alone("config", "check", str(file))

    assert result.exit_code == 2
    assert "url_file" in result.stdout


def test_export_shows_every_default_and_no_secret(alone: Sentinel, file: Path) -> None:
    file.write_text(GOOD)

    result = alone("config", "export", str(file))
    machine = json.loads(alone("config", "export", str(file), "--json").stdout)

    assert result.exit_code == 0
    assert "sesame" not in result.output
    assert machine["receivers"][0]["webhook_configs"][0]["url"] == "<secret>"
    assert machine["mode"] == "act"
    assert machine["guards"]["cooldown"] == "15m"
    assert "global" in machine


def test_init_writes_a_file_that_check_takes_and_never_overwrites(
    alone: Sentinel, file: Path
) -> None:
    assert alone("config", "init", str(file)).exit_code == 0
    written = file.read_text()
    again = alone("config", "init", str(file))

    assert again.exit_code == 2
    assert file.read_text() == written
    assert alone("config", "init").stdout.strip() == written.strip()
    assert alone("config", "check", str(file)).exit_code == 0


def test_reference_is_the_manual_of_every_key(alone: Sentinel) -> None:
    result = alone("config", "reference")

    assert result.exit_code == 0
    for key in ("mode", "guards", "cooldown", "wecom_configs", "hung_after"):
        assert key in result.stdout


def test_rules_check(alone: Sentinel, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(RULES.replace("running)", "running[5m])"))
    bad.write_text(RULES)

    assert alone("rules", "check", str(good)).stdout == f"{good}: 1 rules\n"
    refused = alone("rules", "check", str(good), str(bad))

    assert refused.exit_code == 2
    assert refused.stdout.startswith(f"{bad}:5:")
    assert alone("rules", "check", str(tmp_path / "none.yaml")).exit_code == 2
    assert alone("rules", "check").exit_code == 2
    assert json.loads(alone("rules", "check", "--json", str(good)).stdout)["rules"] == {
        str(good): 1
    }


TESTS = """
rule_files: [rules.yaml]
evaluation_interval: 1m
tests:
  - name: fires
    interval: 1m
    input_series: [{series: 'up{target="a"}', values: "0 0 0"}]
    alert_rule_test:
      - eval_time: 1m
        alertname: Down
        exp_alerts: [{exp_labels: {target: a}}]
  - name: stays quiet
    interval: 1m
    input_series: [{series: 'up{target="a"}', values: "0 0 0"}]
    alert_rule_test: [{eval_time: 1m, alertname: Down, exp_alerts: []}]
"""


def test_rules_test_has_promtools_verdicts(alone: Sentinel, tmp_path: Path) -> None:
    file = tmp_path / "tests.yaml"
    file.write_text(TESTS)
    (tmp_path / "rules.yaml").write_text(
        "groups: [{name: g, rules: [{alert: Down, expr: up == 0}]}]\n"
    )

    both = alone("rules", "test", str(file))
    one = alone("rules", "test", str(file), "--run", "fires")

    assert both.exit_code == 1
    assert f"passed  {file}: fires" in both.stdout
    assert f"FAILED  {file}: stays quiet" in both.stdout
    assert "1 passed, 1 failed" in both.stdout
    assert one.exit_code == 0
    machine = json.loads(alone("rules", "test", "--json", str(file)).stdout)
    assert [test["passed"] for test in machine["tests"]] == [True, False]
    assert machine["ok"] is False


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        pytest.param(None, "groups: []", id="no such file"),
        pytest.param("tests: [", "groups: []", id="not YAML"),
        pytest.param("", "groups: []", id="empty"),
        pytest.param(TESTS, "groups: [{nme: g}]", id="its rules are refused"),
    ],
)
def test_a_test_that_cannot_be_run_is_2(
    alone: Sentinel, tmp_path: Path, text: str | None, rules: str
) -> None:
    file = tmp_path / "tests.yaml"
    (tmp_path / "rules.yaml").write_text(rules)
    if text is not None:
        file.write_text(text)

    result = alone("rules", "test", str(file))

    assert result.exit_code == 2
    assert result.stdout.startswith(str(tmp_path))
    assert "passed" not in result.stdout


@pytest.mark.parametrize("run", ["(", "no such test"])
def test_a_choice_of_nothing_is_2(alone: Sentinel, tmp_path: Path, run: str) -> None:
    (tmp_path / "tests.yaml").write_text(TESTS)
    (tmp_path / "rules.yaml").write_text("groups: []\n")

    result = alone("rules", "test", str(tmp_path / "tests.yaml"), "--run", run)

    assert result.exit_code == 2
    assert "--run" in result.stderr
