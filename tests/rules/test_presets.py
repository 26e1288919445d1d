"""Presets are off until they are named, and only what there is can be named."""

from pathlib import Path

import pytest

from sentinel.config.fault import ConfigRefused
from sentinel.config.load import load_settings
from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.rule import AlertRule
from sentinel.runtime.configure import rules_of, shipped_presets, shipped_rules

PRESETS = [
    rule.name
    for group in load_rule_files(shipped_presets())
    for rule in group.rules
    if isinstance(rule, AlertRule)
]


def alerts_with(tmp_path: Path, text: str) -> set[str]:
    file = tmp_path / "sentinel.yaml"
    file.write_text(text)
    groups = rules_of(load_settings(file, env={}).settings)
    return {rule.name for group in groups for rule in group.rules if isinstance(rule, AlertRule)}


def test_none_is_on_by_itself(tmp_path: Path) -> None:
    assert not alerts_with(tmp_path, "{}") & set(PRESETS)


@pytest.mark.parametrize("name", PRESETS)
def test_each_is_on_when_it_is_named_and_no_other_with_it(tmp_path: Path, name: str) -> None:
    assert alerts_with(tmp_path, f"rules: {{enable: [{name}]}}") & set(PRESETS) == {name}


def test_one_may_be_used_without_the_shipped_rules(tmp_path: Path) -> None:
    text = "rules: {shipped: false, enable: [VllmQPSDrop]}"

    assert alerts_with(tmp_path, text) == {"VllmQPSDrop"}


def test_what_is_disabled_stays_so(tmp_path: Path) -> None:
    text = "rules: {shipped: false, enable: [VllmQPSDrop], disable: [VllmQPSDrop]}"

    assert not alerts_with(tmp_path, text)


def test_what_there_is_not_is_refused_with_all_that_there_is(tmp_path: Path) -> None:
    with pytest.raises(ConfigRefused) as refused:
        alerts_with(tmp_path, "rules:\n  enable:\n    - VllmTrafficSurge\n    - VllmNothing\n")

    (fault,) = refused.value.faults
    assert (fault.line, "rules.enable" in str(fault)) == (4, True)
    assert all(name in str(fault) for name in PRESETS)


def test_no_preset_has_the_name_of_a_shipped_alert() -> None:
    shipped = {rule.name for group in load_rule_files(shipped_rules()) for rule in group.rules}

    assert not shipped & set(PRESETS)
