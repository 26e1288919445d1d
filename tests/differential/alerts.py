"""Rules at random over random series, and what each of the two engines makes of them."""

import json
import random
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from sentinel.config.rulefile import load_rule_files
from sentinel.config.ruletestfile import RuleTest, read_rule_tests
from sentinel.config.seriesnotation import STALE
from sentinel.core.alerting.duration import parse_duration
from sentinel.core.alerting.evaluate import Evaluator, Setting
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import Sample, compile_expression
from tests.differential.oracle import Vector, is_changed, vector_in
from tests.differential.series import WORDS, random_series
from tests.fuzz.author import Author

STEPS = 22
STEP = timedelta(minutes=1)
ASKED = ("ALERTS", "ALERTS_FOR_STATE", '{__name__=~"rec.*"}')
_SPANS = ("0s", "30s", "1m", "90s", "2m", "5m")
# No label that may come out empty: Prometheus then leaves its template in `ALERTS`.
_LABELS = ("{{ $labels.i }}-", "{{ $value }}", "x", "{{ $labels.job }}!")


@dataclass(frozen=True, slots=True)
class Story:
    """What the rules did over time: an answer to `ASKED` at each step, or how it broke off."""

    answers: Sequence[Vector | None]
    broken: frozenset[tuple[str, timedelta]]  # rule, time


def write_trial(dice: random.Random, folder: Path) -> Path:
    """A rule file and a rule test file that asks for everything; its path."""
    order = ["one", "two"]
    groups = [_group(dice, name, number) for number, name in enumerate(order)]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}, sort_keys=False))
    series = random_series(dice)
    test = {
        "interval": dice.choice(("15s", "30s", "45s", "1m")),
        "input_series": [{"series": s, "values": v} for s, v in series.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": f"{step}m",
                "exp_samples": [{"labels": "bogus", "value": 1}],
            }
            for step in range(STEPS)
            for expr in ASKED
        ],
    }
    file = folder / "test.yaml"
    file.write_text(
        json.dumps({"rule_files": ["rules.yaml"], "group_eval_order": order, "tests": [test]})
    )
    return file


def _group(dice: random.Random, name: str, number: int) -> dict[str, Any]:
    rules: list[dict[str, Any]] = [_alert(dice, f"{name}{n}") for n in range(4)]
    record = {"record": f"rec{number}", "expr": f"sum by (job) ({_vector(dice, 1)})"}
    rules.insert(dice.randrange(4), record)
    group: dict[str, Any] = {"name": name, "rules": rules}
    if dice.random() < 0.25:
        group["limit"] = dice.randint(1, 3)
    return group


def _alert(dice: random.Random, name: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": name, "expr": _condition(dice)}
    rule["labels"] = {f"l{n}": dice.choice(_LABELS) for n in range(dice.randrange(3))}
    if dice.random() < 0.1:
        rule["labels"]["job"] = dice.choice(_LABELS)
    for key in ("for", "keep_firing_for"):
        if dice.random() < 0.6:
            rule[key] = dice.choice(_SPANS)
    return rule


def _condition(dice: random.Random) -> str:
    return dice.choice(
        (
            lambda: f"{_vector(dice, 0)} {dice.choice('<>')} {dice.choice((0, 2, 5, 20))}",
            lambda: f"rate({dice.choice('cn')}[2m30s]) > {dice.choice((0, 0.02, 0.1))}",
            lambda: _vector(dice, 2),
            lambda: f"rec0 > {dice.choice((1, 10))}",
            lambda: 'count by (job) (ALERTS{alertstate="firing"}) > 1',
            lambda: f"absent({_vector(dice, 0)})",
        )
    )()


def _vector(dice: random.Random, depth: int) -> str:
    while is_changed(expr := Author(dice, WORDS).vector(depth)):
        pass
    return expr


def promtool_story(file: Path) -> Story:
    run = subprocess.run(
        ["promtool", "test", "rules", file], capture_output=True, text=True, check=False
    )
    says = run.stdout + run.stderr
    broken = re.findall(r"(?m)^\s*rule: (\S+), time: (\S+), err: ", says)
    if broken:
        return Story((), frozenset((rule, _span(time)) for rule, time in broken))
    blocks = re.split(r"(?m)^\s*expr: ", says)[1:]
    assert len(blocks) == STEPS * len(ASKED), says[-2000:]
    got = [block.partition("got: ")[2].strip() or block for block in blocks]
    return Story([vector_in(one) for one in got], frozenset())


def our_story(file: Path) -> Story:
    read, faults = read_rule_tests(file, compat=2)
    assert read is not None, faults
    (test,) = read.tests
    store = Store(retention_ms=1 << 50)
    evaluator = Evaluator(
        load_rule_files(read.rule_files, compat=2), store, setting=Setting(compat=2)
    )
    fed: dict[int, int] = {}
    for step in range(STEPS):
        at = step * STEP
        _feed(store, test, fed, at)
        failures = evaluator.evaluate(test.start + at).failures
        if failures:
            return Story((), frozenset((one.rule.name, at) for one in failures))
    asked = [compile_expression(expr, compat=2) for expr in ASKED]
    answers = [
        _vector_of(expr.at(store, millis(test.start + step * STEP)))
        for step in range(STEPS)
        for expr in asked
    ]
    return Story(answers, frozenset())


def _span(text: str) -> timedelta:
    """Go writes `1h0m0s` where Prometheus reads `1h`."""
    return parse_duration(re.sub(r"(?<=[hm])0[ms]", "", text))


def _vector_of(value: object) -> Vector:
    assert isinstance(value, list)
    return {one.labels: one.value for one in value if isinstance(one, Sample)}


def _feed(store: Store, test: RuleTest, fed: dict[int, int], until: timedelta) -> None:
    for number, series in enumerate(test.input_series):
        source = store.source(f"input {number}", {})
        while fed.get(number, 0) * test.interval <= until and fed.get(number, 0) < len(
            series.values
        ):
            place = fed[number] = fed.get(number, 0) + 1
            value = series.values[place - 1]
            at_ms = millis(test.start + (place - 1) * test.interval)
            if value == STALE:
                source.missed(at_ms)
            elif isinstance(value, float):
                source.put([_named(series.labels, value)], at_ms)


def _named(labels: Mapping[str, str], value: float) -> tuple[str, dict[str, str], float]:
    return labels["__name__"], {k: v for k, v in labels.items() if k != "__name__"}, value
