"""Rule files and rule test files: loaded, or refused with every fault and its place.

Whatever loads is also evaluated over a small store: a rule may fail, an evaluation never.
"""

import random
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sentinel.config.rulefile import RuleFileError, load_rule_files
from sentinel.config.rulelint import lint_rules
from sentinel.config.ruletest import run_rule_tests
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.alerting.needs import needs_of
from sentinel.core.alerting.rule import Compat
from tests.fuzz.author import Author
from tests.fuzz.expressions import WORDS, store_of
from tests.fuzz.mutation import mutated

BEGIN = datetime(1970, 1, 1, 0, 4, tzinfo=UTC)

_TEXTS = (
    "", "x", "{{ $value }}", "{{ $labels.job }}", "{{ .Value | humanize }}", "{{ $value",
    '{{ range query "m" }}{{ .Value }}{{ end }}', '{{ query "m" | first | value }}',
    "{{ if gt $value 1.0 }}y{{ else }}n{{ end }}", '{{ printf "%.3f %d %s %q" $value 1 "a" "b" }}',
    "{{ nonsense }}", '{{ template "x" }}', "{{ $labels }}", "{{ $externalLabels.x }}", "}}{{",
    '{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}', "{{/* c */}}", "{{- $value -}}",
    '{{ reReplaceAll "(a*)*b" "x" $labels.job }}', '{{ match "[" "a" }}', "{{ $x := 1 }}{{ $x }}",
    '{{ printf "%999999999d" 1 }}', "{{ humanizeTimestamp 1e300 }}", "{{ humanizeDuration $value }}",
    '{{ parseDuration "1h" }}', "{{ with $x := query `m` }}{{ len $x }}{{ end }}", "é中\u2028",
    "{{ index (query `m`) 99 }}", "{{ (query `m`).x }}", "{{ sortByLabel `job` (query `g`) }}",
    "{{" * 300, "{{ (" * 300 + "1" + ") }}" * 300, "{{ if 1 }}" * 300, "{{ 1e999 }}", "{{ 0x }}",
    '{{ printf "%*d" 1000000000 1 }}', '{{ printf "%.1000000000f" $value }}', "{{ $value.x }}",
)  # fmt: skip
_NAMES = ("A", "B", "a:b", "", "1x", "a b", "__name__", "m", "ALERTS", "é")
_SPANS = ("0s", "30s", "1m", "1h30m", "5", "", "1.5h", "-1m", "99999999999y", "1m1h", "x", None)
_ODD: tuple[Any, ...] = (None, [], {}, "", 0, -1, 1e400, True, [[]], {"a": {"b": []}}, "x", "~",
                         float("nan"), 10**40, "0x10", "1_000", [None], {"": ""})  # fmt: skip
_YAML_SNIPPETS = (
    b"&a", b"*a", b"<<: *a\n", b"!!python/object:os.system", b"!!binary x", b"---\n", b"...\n",
    b"? ", b"- ", b": ", b"\t", b"|\n", b">\n", b"%YAML 1.1\n", b"[" * 200, b"{" * 200, b"'", b'"',
    b"&a [*a]", b"#", b"\xef\xbb\xbf", b"\x00", b"{{", b"2026-01-01", b"!!set {}", b"=",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Files:
    rules: bytes
    tests: bytes | None
    compat: Compat


def make(dice: random.Random) -> Files:
    rules = _dumped(_rule_document(dice), dice)
    tests = _dumped(_test_document(dice), dice) if dice.random() < 0.4 else None
    return Files(rules, tests, dice.choice((2, 3)))


def _dumped(document: Any, dice: random.Random) -> bytes:
    kind = dice.randrange(4)
    if kind == 0:
        document = _spoilt(document, dice)
    raw = yaml.safe_dump(document, allow_unicode=dice.random() < 0.5, sort_keys=False).encode()
    if kind == 1:
        return mutated(raw, dice)
    if kind == 2 and dice.random() < 0.5:
        at = dice.randrange(len(raw) + 1)
        return raw[:at] + dice.choice(_YAML_SNIPPETS) + raw[at:]
    return raw


def _spoilt(value: Any, dice: random.Random) -> Any:
    if isinstance(value, list) and value and dice.random() < 0.9:
        at = dice.randrange(len(value))
        return [*value[:at], _spoilt(value[at], dice), *value[at + 1 :]]
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(list(value))
        return {**value, dice.choice((key, key, key, "other")): _spoilt(value[key], dice)}
    return dice.choice(_ODD)


def _rule_document(dice: random.Random) -> Any:
    return {"groups": [_group(dice, n) for n in range(dice.randrange(3))]}


def _group(dice: random.Random, number: int) -> Any:
    group: dict[str, Any] = {"name": f"g{number}", "rules": [_rule(dice) for _ in range(3)]}
    if dice.random() < 0.2:
        group["interval"] = dice.choice(_SPANS)
    if dice.random() < 0.1:
        group["limit"] = dice.choice((0, 1, -1, 10**30, "x"))
    if dice.random() < 0.1:
        group["query_offset"] = dice.choice(_SPANS)
    if dice.random() < 0.1:
        group["labels"] = {dice.choice(("a", "b", "1")): dice.choice(_TEXTS)}
    return group


def _rule(dice: random.Random) -> Any:
    expr = Author(dice, WORDS, wild=dice.random() < 0.1).write(dice.randrange(3))
    rule: dict[str, Any] = {
        dice.choice(("alert", "alert", "record")): dice.choice(_NAMES),
        "expr": expr.encode("utf-8", "replace").decode(),
    }
    if dice.random() < 0.4:
        rule["labels"] = {dice.choice(("a", "job", "severity")): dice.choice(_TEXTS)}
    if "alert" in rule:
        rule["annotations"] = {"summary": dice.choice(_TEXTS), "b": dice.choice(_TEXTS)}
        for key in ("for", "keep_firing_for"):
            if dice.random() < 0.3:
                rule[key] = dice.choice(_SPANS)
    return rule


def _test_document(dice: random.Random) -> Any:
    tests = []
    for _ in range(dice.randrange(1, 3)):
        values = " ".join(
            dice.choice(
                ("1", "_", "stale", "0+1x5", "_x3", "NaN", "-Inf", "1e3", "0x3", "1x", "07")
            )
            for _ in range(5)
        )
        tests.append(
            {
                "interval": dice.choice(("1m", "15s", "1h")),
                "input_series": [{"series": 'm{job="a"}', "values": values}],
                "alert_rule_test": [
                    {"eval_time": "5m", "alertname": dice.choice("AB"), "exp_alerts": []}
                ],
                "promql_expr_test": [
                    {
                        "expr": Author(dice, WORDS).write(2),
                        "eval_time": dice.choice(("5m", "0s", "90s")),
                        "exp_samples": [
                            {"labels": dice.choice(("m", "{}", "{a=1}", "x{")), "value": 1}
                        ],
                    }
                ],
                "external_labels": {"x": "y"},
            }
        )
    return {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}


@cache
def _folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="sentinel-fuzz-")
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _check_faults(refused: RuleFileError) -> None:
    assert refused.faults, "refused without a fault"
    assert all(fault.line >= 1 and fault.column >= 1 and str(fault) for fault in refused.faults)


def check(files: Files) -> None:
    rules = _folder() / "rules.yaml"
    rules.write_bytes(files.rules)
    if files.tests is not None:
        tests = _folder() / "tests.yaml"
        tests.write_bytes(files.tests)
        for outcome in run_rule_tests([tests], compat=files.compat):
            assert all(isinstance(one, str) for one in (*outcome.failures, *outcome.warnings))
    try:
        groups = load_rule_files([rules], compat=files.compat)
    except RuleFileError as error:
        _check_faults(error)
        return
    lint_rules(groups)
    assert needs_of(groups).reach_ms >= 0
    store = store_of(3).cut(None, 0)
    evaluator = Evaluator(groups, store)
    for minute in range(3):
        evaluated = evaluator.evaluate(BEGIN + timedelta(minutes=minute))
        for failure in evaluated.failures:
            assert not failure.because.startswith(("TypeError", "KeyError", "ValueError", "Index",
                "Attribute", "Assertion", "Overflow", "Recursion", "Memory", "Unicode", "re.", "Zero")), failure.because  # fmt: skip
