"""The same expressions, over the same series, asked of promtool 2 (`compat=2`).

promtool prints what it got when a test fails, so every test is given a wrong expectation.
"""

import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentinel.core.model.labels import Labels
from sentinel.core.promql import EvaluationError, ExpressionError
from tests.core.promql.promtool import Case, labels_in

PROMTOOL = shutil.which("promtool")
INTERVAL = 15_000
INPUTS = {
    'c{job="a", i="0"}': "0+3x40",
    'c{job="a", i="1"}': "5+7x12 0+2x20 stale",
    'c{job="b", i="0"}': "_x8 1+0.5x10 _x3 2+9x15",
    'c{job="b", i="1"}': "100-4x20 0 0 7x10",
    'g{job="a", i="0"}': "1 5 -3 2.5 NaN 7 1 1 1 8 0 -2 4 4 1e10 3 2 1 0 1 2 3 4 5 6",
    'g{job="a", i="1"}': "0.1+0.1x40",
    'g{job="b", i="0"}': "Inf 3 -Inf 4 2 0 0 5x30",
    'h{job="b", zone="x"}': "3x20 stale 4x5",
    'h{job="a", zone="y"}': "2+2x40",
    **{
        f'lat_bucket{{job="{job}", le="{le}"}}': f"{start}+{step}x40"
        for job, scale in (("a", 1), ("b", 3))
        for le, start, step in (
            ("0.1", 0, 1 * scale),
            ("0.5", 1, 2 * scale),
            ("1", 1, 2.5 * scale),
            ("+Inf", 2, 3 * scale),
        )
    },
}
VECTORS = (
    "c", "g", "h", 'c{job="a"}', 'g{i!="0"}', 'c{job=~"a|b"}', "g offset 1m", "c offset 45s",
    "none", 'c{i!~"1.*"}', "h @ 120", "g @ 90 offset 15s",
)  # fmt: skip
RANGES = ("c[1m]", "g[2m]", "h[3m]", "c[100s]", "g[1m] offset 30s", "c[7m]", "none[1m]",
          "g[5m:1m]", "c[4m:30s] offset 15s", "rate(c[1m])[3m:15s]", "c[2m] @ 300")  # fmt: skip
OVER_TIME = (
    "rate", "increase", "delta", "irate", "idelta", "avg_over_time", "min_over_time",
    "max_over_time", "sum_over_time", "count_over_time", "last_over_time", "present_over_time",
    "changes", "resets", "deriv", "absent_over_time",
)  # fmt: skip
ELEMENT = ("abs", "ceil", "floor", "exp", "sqrt", "sgn", "round",
           "absent", "sort", "sort_desc", "timestamp", "deg")  # fmt: skip
AGGREGATES = ("sum", "avg", "min", "max", "count", "group", "quantile", "count_values")  # fmt: skip
MODIFIERS = ("", " by (job)", " by (i)", " without (i)", " without (job, zone)", " by (job, none)")
OPERATORS = ("+", "-", "*", "/", "%", "^", "==", "!=", ">", "<", ">=", "<=", "> bool",
             "and", "or", "unless", "== bool")  # fmt: skip
MATCHINGS = ("", " on (job)", " ignoring (i, zone)", " on (job, i)", " on (job) group_left",
             " on (job) group_right (zone)", " ignoring (i, zone) group_left (zone)", " on ()")  # fmt: skip


class Author:
    """Writes expressions at random, always the same ones."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def vector(self, depth: int) -> str:
        kind = self.random.randrange(9) if depth else 0
        match kind:
            case 1 | 2:
                return f"{self.pick(OVER_TIME)}({self.pick(RANGES)})"
            case 3:
                return f"{self.pick(ELEMENT)}({self.vector(depth - 1)})"
            case 4 | 5:
                return self.aggregate(depth)
            case 6:
                return f"{self.vector(depth - 1)} {self.pick(OPERATORS[:7])} {self.scalar()}"
            case 7 | 8:
                return self.binary(depth)
            case _:
                return self.pick(VECTORS)

    def aggregate(self, depth: int) -> str:
        op = self.pick(AGGREGATES)
        params = {"quantile": "0.3, ", "count_values": '"v", '}
        return f"{op}{self.pick(MODIFIERS)} ({params.get(op, '')}{self.vector(depth - 1)})"

    def binary(self, depth: int) -> str:
        op, matching = self.pick(OPERATORS), self.pick(MATCHINGS)
        if op in ("and", "or", "unless"):
            matching = matching.partition(" group")[0]
        return f"({self.vector(depth - 1)}) {op}{matching} ({self.vector(depth - 1)})"

    def scalar(self) -> str:
        return self.pick(("2", "-0.5", "scalar(h)", "time()", "0", "1e3", "vector(1)"))

    def pick(self, options: tuple[str, ...]) -> str:
        return self.random.choice(options)


BY_HAND = (
    "histogram_quantile(0.9, rate(lat_bucket[2m]))",
    "histogram_quantile(0.5, sum by (le) (lat_bucket))",
    "histogram_quantile(1.5, lat_bucket)",
    "quantile_over_time(0.7, g[5m])",
    "stddev_over_time(c[3m])",
    "stdvar_over_time(c[3m])",
    "predict_linear(c[4m], 600)",
    "holt_winters(c[4m], 0.5, 0.3)",
    'label_replace(c, "x", "$1-$2", "job", "(.)(.*)")',
    'label_replace(c, "job", "", "i", "0")',
    'label_replace(c, "i", "z", "i", "0|1")',
    'label_join(c, "both", "/", "job", "i", "none")',
    "clamp(g, 0, 3)",
    "clamp(g, 3, 0)",
    "clamp_min(g, 2)",
    "clamp_max(g, 2)",
    "round(g, 0.3)",
    "vector(time())",
    "-g",
    "-1 ^ 2",
    "2 ^ 3 ^ 2",
    "1 / 0",
    "-1 % 3",
    "days_in_month(vector(951782400))",
    "year(vector(-1))",
    "scalar(h)",
    "max_over_time((c > 10)[5m:15s])",
    'count({__name__=~"c|g"})',
    'rate({__name__=~"c|g"}[1m])',
    'absent(none{a="1", b!="2", c="3"})',
    "sum(c) / count(c)",
    "topk(10, c) by (job)",
    "topk(1, c) by (job)",
    "bottomk(2, c)",
    "stddev by (job) (c)",
    "stdvar(h)",
    "hour(timestamp(c))",
    "day_of_week(vector(1.7e9))",
    "minute()",
    "ln(g) + log2(g) + log10(g)",
    "month(vector(1.7e9)) + day_of_year(vector(1.7e9))",
    'absent((none{a="1"}))',
    'absent_over_time((none{a="1"})[1m:])',
    'absent(none{a="1"} @ 10)',
    'absent(none{a=~"1"})',
    'absent(none{a="1",a="1"})',
    'absent(none{a="1",a!="2"})',
    'absent({__name__="none",a="1"})',
    'absent_over_time(none{a="1"}[5m])',
    "timestamp((c))",
    "timestamp(c @ 30)",
    "timestamp(c offset 1m)",
    "timestamp(c + 0)",
    "scalar(none)",
    "vector(scalar(c))",
    "sum(none)",
    "count(none) or vector(0)",
    "c and on() none",
    "c unless on() none",
    "none or c",
    "c > bool 10",
    "10 > c",
    "c == c",
    "c * on(job,i) group_left(zone) g",
    "g * on(job) group_left(zone) h",
    "h * on(job) group_right(zone) g",
    "h * on(job) group_right(i) g",
    "c + on(job, i) g",
    "c + ignoring() g",
    "c % 7",
    "-c % 7",
    "c ^ 0.5",
    "quantile(1.1, c)",
    "quantile(-0.1, c)",
    "quantile(scalar(none), c)",
    "topk(0, c)",
    "topk(-1, c)",
    "topk by (job) (1, c)",
    'count_values("job", c)',
    'count_values without (i) ("v", h)',
    'count_values by (job) ("i", h)',
    "sum by (__name__) (c)",
    "sum without (__name__) (c)",
    "sum by (le) (lat_bucket)",
    "histogram_quantile(0.9, lat_bucket)",
    "histogram_quantile(NaN, lat_bucket)",
    "histogram_quantile(-1, lat_bucket)",
    "histogram_quantile(0, lat_bucket)",
    "histogram_quantile(1, lat_bucket)",
    'histogram_quantile(0.5, lat_bucket{le!="+Inf"})',
    'histogram_quantile(0.5, lat_bucket{le="+Inf"})',
    "histogram_quantile(0.5, c)",
    "histogram_quantile(0.5, rate(lat_bucket[1m]) * 0)",
    'label_replace(c, "__name__", "d", "job", "a")',
    'label_replace(c, "x", "${1}y$1z$$", "job", "(.)")',
    'label_replace(c, "x", "$0-$3-${n}", "job", "(?P<n>.)")',
    'label_replace(c, "x", "a", "job", "")',
    'label_replace(c, "x", "a", "none", "")',
    'label_replace(c, "1x", "a", "none", "")',
    'label_join(c, "__name__", "-", "job")',
    'label_join(c, "job", "-")',
    "sort_desc(c)",
    "rate(c[15s])",
    "rate(c[14s])",
    "increase(c[1h])",
    "delta(g[1m])",
    "deriv(c[1m])",
    "predict_linear(c[1m], -60)",
    "predict_linear(c[1m] offset 1m, 60)",
    "predict_linear(c[1m] @ 100, 60)",
    "holt_winters(g[1m], 0.1, 0.9)",
    "quantile_over_time(2, c[1m])",
    "quantile_over_time(scalar(none), c[1m])",
    "stddev_over_time(h[2m])",
    "changes(g[3m])",
    "resets(c[5m])",
    "max_over_time(c[5m:])",
    "max_over_time(c[5m:7s])",
    "sum_over_time(c[1m:15s] offset 20s)",
    "sum_over_time(c[1m:15s] @ 100)",
    "sum_over_time((c @ 100)[1m:15s])",
    "sum_over_time(vector(1)[1m:10s])",
    "count_over_time(time()[1m:10s])",
    "avg_over_time(rate(c[30s])[2m:20s])",
    "rate(sum_over_time(c[30s])[2m:20s])",
    "min_over_time(-c[1m:15s])",
    "time() - timestamp(c)",
    "minute(vector(1e9)) + hour(vector(1e9)) + year(vector(1e9)) + month(vector(1e9))",
    "days_in_month() + day_of_month() + day_of_week() + day_of_year()",
    "day_of_year(vector(951782400))",
    "round(-2.5 * h)",
    "round(h, 0)",
    "round(h / 3, 0.01)",
    "clamp(h, NaN, 3)",
    "sgn(g) + abs(g)",
    "ceil(-0.5 * h)",
    "pi() * 2",
    "rad(c) - deg(c)",
    "sinh(h) - cosh(h) + tanh(h)",
    "asin(h) + acos(h)",
    "acosh(h) + asinh(h) + atanh(h / 100)",
    "1 + 2 * 3 ^ 2 % 5 - 1",
    "(1 > bool 2) + (2 > bool 1)",
    "1 == bool NaN",
    "Inf - Inf",
    "0x1F + 1e-3",
    'c{job="a"} or c{job="b"}',
    "c or on(job) g",
    "c and ignoring(i) g",
    "c unless ignoring(i, job) g",
    "stddev(c)",
    "stdvar by (job) (c)",
    "group by (job) (c)",
    "avg without (i) (c)",
    "bottomk(1, c)",
    "c offset 1h",
    '{job="a"}',
    '{job=~".+", __name__!~"lat.*"}',
    '{__name__=~"c|h"} > 5',
    'c{i=""}',
    'c{none=""}',
    'c{none!=""}',
    'c{job=~"(?i)A"}',
    'c{job=~"a|"}',
    'c{job!~"a|"}',
    "sum(c) by (job) / on(job) group_left() count(h) by (job)",
    "sum(c) + on() group_right() h",
)


def cases() -> Iterator[Case]:
    author = Author(20300101)
    written = [author.vector(2) for _ in range(400)]
    for n, expression in enumerate((*BY_HAND, *written)):
        at = (120_000, 300_000, 487_000, 60_000)[n % 4]
        yield Case(f"{n}", INTERVAL, INPUTS, expression, at, {})


def asked_of_promtool(asked: list[Case], folder: Path) -> list[str]:
    """The `got:` of each case, or its error."""
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in INPUTS.items()],
        "promql_expr_test": [
            {
                "expr": case.expr,
                "eval_time": f"{case.at}ms",
                "exp_samples": [{"labels": "bogus", "value": 1}],
            }
            for case in asked
        ],
    }
    file = folder / "test.yaml"
    file.write_text(json.dumps({"evaluation_interval": "15s", "tests": [test]}))
    assert PROMTOOL is not None
    run = subprocess.run(
        [PROMTOOL, "test", "rules", file], capture_output=True, text=True, check=False
    )
    blocks = re.split(r"(?m)^\s*expr: ", run.stdout + run.stderr)[1:]
    assert len(blocks) == len(asked)
    return [block.partition("got: ")[2].strip() or block for block in blocks]


def parsed(got: str) -> dict[Labels, float] | None:
    """promtool's vector; None if it is an error."""
    if " err: " in got:
        return None
    if got == "nil":
        return {}
    found = re.findall(
        r'((?:[\w:]+)?(?:\{(?:[^}"]|"(?:\\.|[^"\\])*")*\})?) ([-+.\w]+)(?:, |$)', got
    )
    return {labels_in(labels): float(value) for labels, value in found}


def answered(case: Case) -> dict[Labels, float] | None:
    try:
        return case.answer(compat=2)
    except (EvaluationError, ExpressionError):
        return None


def is_same(mine: dict[Labels, float] | None, theirs: dict[Labels, float] | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine.keys() == theirs.keys() and all(
        mine[key] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
        for key, value in theirs.items()
    )


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_promtool_2_gives_the_same_answers(tmp_path: Path) -> None:
    asked = list(cases())
    differ = []
    for case, got in zip(asked, asked_of_promtool(asked, tmp_path), strict=True):
        mine, theirs = answered(case), parsed(got)
        if not is_same(mine, theirs):
            differ.append(f"{case.expr} at {case.at}\n   got {mine}\n   promtool {got}")

    assert not differ, "\n".join([f"{len(differ)} differ", *differ[:200]])
