"""What may be left out of an evaluation, and that what has an answer or an error may not."""

import pytest

from sentinel.core.model.series import Store
from sentinel.core.promql import EvaluationError, Sample, compile_expression
from sentinel.core.promql.parse import parse
from sentinel.core.promql.sure import cannot_fail, needs_series

ANSWERS_NOTHING = [
    ("absent(x)", [1.0]),
    ("absent_over_time(x[5m])", [1.0]),
    ("vector(2)", [2.0]),
    ("vector(time())", [0.0]),
    ("x or vector(3)", [3.0]),
    ("vector(4) unless x", [4.0]),
    ("sum(absent(x)) + 5", [6.0]),
    ("count_values('a', vector(7))", [1.0]),
    ("vector(scalar(x)) == bool 1", [0.0]),
    ("x + fill(8) vector(9)", [17.0]),
    ("day_of_week()", [4.0]),
    ("max_over_time(absent(x)[5m:1m])", [1.0]),
    ("topk(1, absent(x))", [1.0]),
]


@pytest.mark.parametrize(("text", "expected"), ANSWERS_NOTHING, ids=[t for t, _ in ANSWERS_NOTHING])
def test_what_has_an_answer_without_series_gives_it(text: str, expected: list[float]) -> None:
    found = compile_expression(text).at(Store(), 0)

    assert isinstance(found, list)
    assert [one.value for one in found if isinstance(one, Sample)] == expected


@pytest.mark.parametrize("text", ["topk(1e30, x)", "count_values('', x)", "1e30 * quantile(2, x)"])
def test_what_may_fail_without_series_is_evaluated(text: str) -> None:
    assert not needs_series(parse(text, lambda _: None))


@pytest.mark.parametrize(
    "text",
    [
        "x > 1",
        "-sum by (a) (rate(x[5m])) / sum by (a) (rate(y[5m]))",
        "histogram_quantile(0.9, sum by (le) (rate(x[5m]))) > 2",
        "label_replace(x, 'a', 'b', 'c', 'd') unless on (a) y or z",
        "quantile_over_time(0.5, x[5m])",
    ],
)
def test_what_need_not_be_evaluated_without_series(text: str) -> None:
    assert needs_series(parse(text, lambda _: None))
    assert compile_expression(text).at(Store(), 0) == []


def test_what_joins_both_kinds_is_evaluated_once_one_of_its_metrics_is_there() -> None:
    store = Store()
    store.source("t", {}).put([("y", {}, 5.0)], 1000)

    assert compile_expression("x or y").at(store, 1000) == [Sample((("__name__", "y"),), 5.0)]


@pytest.mark.parametrize("op", ["and", "unless"])
@pytest.mark.parametrize(
    ("right", "why"),
    [
        ("(y + on () y)", "many-to-many"),
        ("(y + on () group_left () y)", "many-to-many"),
        ("-{job=~'.+'}", "same labelset"),
        ("rate({job=~'.+'}[5m])", "same labelset"),
        ("topk(1e30, y)", "overflows"),
        ("y / on () y > 1", "many-to-many"),
        ("sum(y + on () y)", "many-to-many"),
    ],
)
def test_an_error_on_the_right_is_told_though_nothing_is_on_the_left(
    op: str, right: str, why: str
) -> None:
    store = Store()
    source = store.source("t", {})
    for at in (1000, 2000):
        both = [("y", {"job": "a"}, 1.0), ("y", {"job": "b"}, 1.0)]
        source.put([*both, ("z", {"job": "a"}, 1.0)], at)

    with pytest.raises(EvaluationError, match=why):
        compile_expression(f"x {op} {right}").at(store, 2000)


@pytest.mark.parametrize(
    "text",
    [
        "y{a=~'b|c'} == 1",
        "max by (a) (y) > 0.1",
        "sum by (a) (increase(y[2m])) > 0",
        "avg_over_time(y[5m]) < 0.05 unless on (a) y",
    ],
)
def test_what_cannot_fail_need_not_be_looked_at(text: str) -> None:
    assert cannot_fail(parse(text, lambda _: None))
