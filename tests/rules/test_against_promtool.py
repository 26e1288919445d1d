"""Random rules over random series: what fires here must fire in Prometheus, text for text."""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from sentinel.config.rulefile import load_rule_files
from sentinel.config.ruletestfile import RuleTest, read_rule_tests
from sentinel.config.seriesnotation import STALE
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.evaluate import Evaluator, Setting
from sentinel.core.alerting.rule import RuleGroup
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from tests.rules.promtool import needs_promtool, promtool

MINUTE = timedelta(minutes=1)
SPANS = ["0s", "30s", "1m", "90s", "2m", "5m"]
EXPRESSIONS = [
    "m > 2", "sum by (job) (m) > 3", "rate(c[2m30s]) > 0.05", 'absent(m{job="a"})', "m unless m > 4",
    "changes(m[3m30s]) > 1", "max_over_time(m[2m30s]) > 3", "count(m) or vector(7)", "rec > 2",
    "m > on (job) group_left () max by (job) (n)", 'ALERTS{alertstate="firing"}', "m offset 1m > 2",
    'label_replace(m, "x", "$1", "job", "(.*)") > 3', "m - m offset 2m > 1", "ALERTS_FOR_STATE > 60",
]  # fmt: skip
TEXTS = [
    "{{ $value }}", "{{ $labels }}", "{{ $labels.job }}-{{ $value | humanize }}", "{{ if gt $value 3.0 }}high{{ else }}low{{ end }}",
    '{{ with query "sum(m)" }}{{ . | first | value | printf "%.2f" }}{{ else }}none{{ end }}',
    '{{ range query "m" | sortByLabel "i" | sortByLabel "job" }}{{ .Labels.job }}{{ .Labels.i }}={{ .Value }} {{ end }}',
]  # fmt: skip


def rules(dice: random.Random) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [{"record": "rec", "expr": dice.choice(["m + 1", "sum(m)"])}]
    for number in range(8):
        rule: dict[str, Any] = {
            "alert": f"A{number % 6}",
            "expr": dice.choice(EXPRESSIONS),
            "labels": {
                "k": str(number),
                "l": dice.choice(["{{ $labels.i }}", "{{ $value }}", "x"]),
            },
            "annotations": {"a": dice.choice(TEXTS), "b": dice.choice(TEXTS)},
        }
        for key in ("for", "keep_firing_for"):
            if dice.random() < 0.6:
                rule[key] = dice.choice(SPANS)
        made.append(rule)
    return made


def values(dice: random.Random) -> str:
    return " ".join(
        dice.choices(["_", STALE, "NaN", *map(str, range(7))], [4, 2, 1, *[4] * 7], k=25)
    )


def trials(dice: random.Random) -> list[dict[str, Any]]:
    names = [
        *(f'm{{job="{j}",i="{i}"}}' for j in "ab" for i in "12"),
        'n{job="a"}',
        'n{job="b"}',
        'c{job="a"}',
    ]
    asked = [
        {"eval_time": f"{at}m", "alertname": f"A{number}"}
        for at in range(20)
        for number in range(6)
    ]
    return [
        {
            "interval": dice.choice(["1m", "30s", "45s"]),
            "input_series": [{"series": name, "values": values(dice)} for name in names],
            "alert_rule_test": [dict(one) for one in asked],
        }
        for _ in range(4)
    ]


def firing(test: RuleTest, groups: list[RuleGroup], at: timedelta) -> list[list[ActiveAlert]]:
    """The alerts that fire at each step before `at`; ends early where a rule fails."""
    store = Store()
    evaluator = Evaluator(groups, store, setting=Setting(compat=2))
    sources = [store.source(str(number), {}) for number in range(len(test.input_series))]
    step, seen = timedelta(0), []
    next_sample = [0] * len(sources)
    while step < at:
        for number, series in enumerate(test.input_series):
            labels = dict(series.labels)
            name = labels.pop("__name__")
            while next_sample[number] * test.interval <= step and next_sample[number] < len(
                series.values
            ):
                when = millis(test.start + next_sample[number] * test.interval)
                value = series.values[next_sample[number]]
                if value is not None:
                    sources[number].put(
                        [] if isinstance(value, str) else [(name, labels, value)], when
                    )
                next_sample[number] += 1
        if evaluator.evaluate(test.start + step).failures:
            break
        seen.append([alert for alert in evaluator.active if alert.state == "firing"])
        step += MINUTE
    return seen


def expected(alert: ActiveAlert) -> dict[str, dict[str, str]]:
    labels = {name: value for name, value in alert.labels.items() if name != "alertname"}
    return {"exp_labels": labels, "exp_annotations": dict(alert.annotations)}


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("seed", range(5))
def test_the_same_alerts_fire_with_the_same_texts(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    listed = rules(dice)
    groups = [{"name": "g", "rules": listed[:5]}, {"name": "h", "rules": listed[5:]}]
    (tmp_path / "r.yaml").write_text(yaml.safe_dump({"groups": groups}))
    asked_of = trials(dice)
    body = {"rule_files": ["r.yaml"], "group_eval_order": ["g", "h"], "tests": asked_of}
    file = tmp_path / "t.yaml"
    file.write_text(yaml.safe_dump(body))
    read, faults = read_rule_tests(file, compat=2)
    assert read is not None, faults
    loaded = load_rule_files(read.rule_files, compat=2)

    fired = 0
    for test, written in zip(read.tests, asked_of, strict=True):
        seen = firing(test, loaded, 20 * MINUTE)
        asked = [
            one for one in written["alert_rule_test"] if int(one["eval_time"][:-1]) < len(seen)
        ]
        for one in asked:
            there = seen[int(one["eval_time"][:-1])]
            one["exp_alerts"] = [
                expected(alert) for alert in there if alert.alertname == one["alertname"]
            ]
            fired += len(one["exp_alerts"])
        written["alert_rule_test"] = asked
    body["tests"] = [test for test in asked_of if test["alert_rule_test"]]
    file.write_text(yaml.safe_dump(body))

    code, says = promtool("test", "rules", file)
    assert code == 0, says[:3000]
    assert fired > 0
