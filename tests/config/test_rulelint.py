from pathlib import Path

from sentinel.config.rulefile import load_rule_files
from sentinel.config.rulelint import lint_rules

RULES = """\
groups:
  - name: g
    rules:
      - alert: Changing
        expr: m
        labels: {level: '{{ $value }}', shown: '{{ printf "%.0f" .Value }}', fine: '{{ $labels.value }}'}
      - alert: Twice
        expr: m > 1
        labels: {severity: page}
      - alert: Twice
        expr: m > 2
        labels: {severity: page}
      - alert: Twice
        expr: m > 3
        labels: {severity: info}
"""


def test_what_is_hardly_meant_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(RULES)

    found = [
        str(one).removeprefix(f"{file}:").split("; ")[0]
        for one in lint_rules(load_rule_files([file]))
    ]

    value = "the value in a label makes a new alert, and starts `for` anew, whenever it changes"
    assert found == [
        f'4:1: labels.level: group "g", "Changing": {value}',
        f'4:1: labels.shown: group "g", "Changing": {value}',
        f'10:1: labels: group "g", "Twice": \'Twice\' with the same labels stands in {file}:7 too',
    ]


def test_the_shipped_rules_are_clean() -> None:
    rules = Path(__file__).parents[2] / "rules"

    assert lint_rules(load_rule_files(sorted(rules.glob("*.yaml")))) == []
