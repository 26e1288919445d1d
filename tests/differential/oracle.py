"""Debian's promtool as the second opinion: what it answers, not whether it agrees.

promtool prints what it got when a test fails, so every question carries a wrong expectation.
All questions of a batch go into one run.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sentinel.config.seriesnotation import STALE, parse_series, parse_values
from sentinel.core.model.labels import NAME, Labels, labels_of
from sentinel.core.model.series import Store
from sentinel.core.promql import EvaluationError, ExpressionError, Sample, compile_expression

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")

INTERVAL_MS = 15_000

# Where Prometheus 3 changed what 2.42 does. An expression that differs must be one of these.
CHANGED = {
    r"\batan2\b": "2.42 keeps the metric name over atan2; 3 drops it as over any arithmetic",
    r"\bstd(dev|var)\b": "2.42 answers 0 for a single infinity or NaN; 3 answers NaN",
}

Vector = dict[Labels, float]


def is_changed(expr: str) -> bool:
    return any(re.search(pattern, expr) for pattern in CHANGED)


@dataclass(frozen=True, slots=True)
class Question:
    expr: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Trial:
    """Some series, in promtool's notation, and what is asked about them."""

    series: Mapping[str, str]
    questions: Sequence[Question]

    @property
    def last_ms(self) -> int:
        """When the last sample is: promtool loads none that is later than all questions."""
        longest = max(len(parse_values(values)) for values in self.series.values())
        return longest * INTERVAL_MS

    def store(self) -> Store:
        store = Store(retention_ms=1 << 50)
        for series, text in self.series.items():
            labels = parse_series(series)
            name = labels.pop(NAME)
            source = store.source(series, {})
            for place, value in enumerate(parse_values(text)):
                if value == STALE:
                    source.missed(place * INTERVAL_MS)
                elif isinstance(value, float):
                    source.put([(name, labels, value)], place * INTERVAL_MS)
        return store


def promtool_answers(trials: Sequence[Trial], folder: Path) -> list[list[str]]:
    """The `got:` of each question, or its error."""
    asked = [[*trial.questions, Question("vector(0)", trial.last_ms)] for trial in trials]
    tests = [
        {
            "interval": f"{INTERVAL_MS}ms",
            "input_series": [{"series": s, "values": v} for s, v in trial.series.items()],
            "promql_expr_test": [
                {
                    "expr": one.expr,
                    "eval_time": f"{one.at_ms}ms",
                    "exp_samples": [{"labels": "bogus", "value": 1}],
                }
                for one in questions
            ],
        }
        for trial, questions in zip(trials, asked, strict=True)
    ]
    file = folder / "test.yaml"
    file.write_text(json.dumps({"evaluation_interval": f"{INTERVAL_MS}ms", "tests": tests}))
    run = subprocess.run(
        ["promtool", "test", "rules", file], capture_output=True, text=True, check=False
    )
    blocks = iter(re.split(r"(?m)^\s*expr: ", run.stdout + run.stderr)[1:])
    answers = [[next(blocks, "") for _ in questions][:-1] for questions in asked]
    assert next(blocks, None) is None
    assert all(block for each in answers for block in each), run.stderr[-2000:]
    return [[block.partition("got: ")[2].strip() or block for block in each] for each in answers]


_SAMPLE = re.compile(
    r'(?P<name>[a-zA-Z_:][\w:]*)?(?P<labels>\{(?:[^}"]|"(?:\\.|[^"\\])*")*\})? (?P<value>[-+.\w]+)'
)


def vector_in(got: str) -> Vector | None:
    """promtool's vector; None if it is an error."""
    if " err: " in got:
        return None
    vector: Vector = {}
    if got == "nil":
        return vector
    at = 0
    while at < len(got):
        found = _SAMPLE.match(got, at)
        assert found is not None, got[at:]
        labels = labels_of(parse_series(f"{found['name'] or ''}{found['labels'] or '{}'}"))
        vector[labels] = float(found["value"])
        at = found.end() + len(", ")
    return vector


def our_answer(store: Store, question: Question) -> Vector | None:
    try:
        value = compile_expression(question.expr, compat=2).at(
            store, question.at_ms, default_step_ms=INTERVAL_MS
        )
    except (EvaluationError, ExpressionError):
        return None
    if isinstance(value, float):
        return {(): value}
    samples = [] if isinstance(value, str) else [one for one in value if isinstance(one, Sample)]
    if isinstance(value, str) or len(samples) < len(value):
        return None  # promtool answers no question for a string or a matrix
    return {one.labels: one.value for one in samples}


def agree(mine: Vector | None, theirs: Vector | None, *, tolerance: float = 1e-9) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    if mine.keys() != theirs.keys():
        mine, theirs = _rounded(mine), _rounded(theirs)
    return mine.keys() == theirs.keys() and all(
        mine[labels] == pytest.approx(value, rel=tolerance, abs=1e-12, nan_ok=True)
        for labels, value in theirs.items()
    )


def _rounded(vector: Vector) -> Vector:
    """With numbers in labels (of count_values) cut to nine digits, for libraries differ."""
    return {
        tuple((name, _LONG.sub(_cut, value)) for name, value in labels): number
        for labels, number in vector.items()
    }


_LONG = re.compile(r"-?\d*\.\d{8,}")


def _cut(found: re.Match[str]) -> str:
    return f"{float(found[0]):.9g}"
