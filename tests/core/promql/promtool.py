"""Reads unit tests in promtool's notation, as far as expression tests need."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sentinel.config.seriesnotation import STALE, parse_series, parse_values
from sentinel.core.model.labels import NAME, Labels, labels_of
from sentinel.core.model.series import Store
from sentinel.core.promql import compile_expression

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text: str) -> int:
    return round(sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"([\d.]+)([a-z]+)", text)))


def labels_in(text: str) -> Labels:
    return labels_of(parse_series(text)) if text.strip() else ()


@dataclass(frozen=True)
class Case:
    name: str
    interval: int
    inputs: dict[str, str]
    expr: str
    at: int
    expected: dict[Labels, float] = field(hash=False)

    def store(self) -> Store:
        store = Store(retention_ms=1 << 50)
        for series, text in self.inputs.items():
            labels = dict(labels_in(series))
            name = labels.pop(NAME, "")
            source = store.source(series, {})
            for place, value in enumerate(parse_values(text)):
                if value == STALE:
                    source.missed(place * self.interval)
                elif isinstance(value, float):
                    source.put([(name, labels, value)], place * self.interval)
        return store

    def answer(self, compat: Any = 3) -> dict[Labels, float]:
        value = compile_expression(self.expr, compat=compat).at(self.store(), self.at)
        if isinstance(value, float):
            return {(): value}
        assert isinstance(value, list)
        return {sample[0]: sample[1] for sample in value}  # type: ignore[misc]


def cases_in(path: Path) -> Iterator[Case]:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for test in document["tests"]:
        inputs = {each["series"]: str(each["values"]) for each in test.get("input_series") or []}
        for query in test["promql_expr_test"]:
            yield Case(
                test["name"],
                milliseconds(test["interval"]),
                inputs,
                query["expr"],
                milliseconds(query["eval_time"]),
                {
                    labels_in(sample.get("labels", "")): float(sample["value"])
                    for sample in query.get("exp_samples") or []
                },
            )


def same(a: float, b: float) -> bool:
    """Equal as Prometheus's own tests mean it: what they print is rounded."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or math.isclose(a, b, rel_tol=1e-6)


def agrees(answer: dict[Labels, float], expected: dict[Labels, float]) -> bool:
    return answer.keys() == expected.keys() and all(
        same(answer[labels], value) for labels, value in expected.items()
    )
