"""The face of the engine: what is refused, what is read, and what an answer is."""

import math
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.model.labels import NAME, labels_of
from sentinel.core.model.series import Store
from sentinel.core.promql import (
    EvaluationError,
    ExpressionError,
    RangeSample,
    Sample,
    compile_expression,
    matching_series,
    range_query,
)
from sentinel.core.promql.evaluate import _Compiler
from sentinel.core.promql.frame import Budget, Context, Shape
from sentinel.core.promql.parse import parse

MINUTE = 60_000
HOUR = 60 * MINUTE


def store_of(**series: list[float]) -> Store:
    """Series `name` or `name__job`, a value a minute from minute 0 on."""
    store = Store(retention_ms=100 * HOUR)
    source = store.source("t", {})
    for n in range(max(map(len, series.values()), default=0)):
        source.put(
            [
                (name.partition("__")[0], {"job": name.partition("__")[2]}, values[n])
                for name, values in series.items()
                if n < len(values)
            ],
            n * MINUTE,
        )
    return store


def values(text: str, store: Store, at: int, **options: int) -> list[float]:
    value = compile_expression(text).at(store, at, **options)
    assert isinstance(value, list)
    return [sample.value for sample in value if isinstance(sample, Sample)]


@pytest.mark.parametrize(
    "text",
    [
        "", "  ", "# only a comment", "sum(", "x[5m", "x{", "1 +", "foo(x)", "x @", "'", '"', "{}",
        '{a=""}', 'x{a=~"("}', 'x{a=~"(?=b)"}', 'x{a="b" or c="d"}', "rate(x)", "x[5m] + 1",
        "sum by (x", "x and 1", "a + on(x) group_left(x) b", "1 > 2", "x[5m:][5m:]", "x[0s]",
        "rate(x[2m*15])", "x anchored", "x[5m] smoothed", "info(x)", "limit_ratio(0.5, x)",
        "histogram_count(x)", "histogram_sum(x)", "histogram_quantiles(x, 'q', 0.5)",
        "holt_winters(x[5m], 0.5, 0.5)", "x </ 3", "max_of(1, 2)", "x offset 10000y",
        'label_replace(x, "", "a", "b", "c")', 'label_replace(x, "a", "b", "c", "(")',
        "\ud800", "x\x00", "x @ 1e300", "🙂", "a b", "x[5m] offset", "sum(x) by",
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text)

    assert caught.value.message


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("1 + foo(x)", 5),
        ("sum(info(x))", 5),
        ("rate(x[5m)", 10),
        ("sum(rate(x[5m])", 4),
        ("a + b)", 6),
        ('label_replace(x, "(", "", "", "") + info(x)', 37),
        ("x @@", None),
    ],
)
def test_an_error_says_where_if_that_can_be_told(text: str, column: int | None) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text)

    assert caught.value.column == column


LONG = 10_240


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("(" * 5000 + "1" + ")" * 5000, id="parentheses"),
        pytest.param("(" * LONG, id="open parentheses"),
        pytest.param("-" * 10_000 + "x", id="minus signs"),
        pytest.param("+-" * 5_000 + "x", id="signs"),
        pytest.param("1+" * 5_000 + "1", id="a sum"),
        pytest.param("2^" * 5_000 + "1", id="powers"),
        pytest.param("x or " * 2_000 + "x", id="or"),
        pytest.param("abs(" * 2_000 + "x" + ")" * 2_000, id="calls"),
        pytest.param("x" * (LONG + 1), id="a long name"),
        pytest.param("-" * 1_999 + "x", id="as many signs as are parsed"),
        pytest.param("1+" * 1_999 + "1", id="as long a sum as is parsed"),
        pytest.param("{" * 5_000, id="braces"),
        pytest.param("[" * 5_000, id="brackets"),
        pytest.param("x == bool " * 1_000 + "x", id="comparisons"),
        pytest.param("sum by (a) " * 900 + "(x)", id="modifiers"),
        pytest.param("x unless " * 1_100 + "x", id="unless"),
    ],
)
def test_no_depth_ends_the_process(text: str) -> None:
    refused: list[ExpressionError] = []

    def read() -> None:
        try:
            compile_expression(text)
        except ExpressionError as error:
            refused.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    reader.join(20)

    assert len(refused) == 1


def test_a_depth_that_is_taken_is_evaluated_too() -> None:
    expression = compile_expression("-" * 150 + "x")

    assert [s.value for s in expression.at(store_of(x=[7]), 0)] == [7.0]  # type: ignore[union-attr]


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["sum", "rate", "by", "(", ")", "[5m]", "[5m:1m]", "x", "y", "{", "}", 'a="b"', ",", "on",
             "group_left", "and", "or", "+", "-", "^", ">", "bool", "offset", "@", "5", "1e3", "-5", "topk",
             "histogram_quantile", "0.9", '"s"', "absent", "label_replace", "start()", "scalar", "vector",
             "time()", "count_values", "quantile", "clamp", "atan2", "unless", "ignoring", "without", "deriv",
             "predict_linear", "round", "sort", "timestamp", "fill(0)", "limitk", "mad_over_time"]
        )
        | st.text(max_size=3),
        max_size=12,
    )
)  # fmt: skip
def test_no_text_does_more_than_be_refused(words: list[str]) -> None:
    store = store_of(x=[1, 2, 3], y__a=[1, 0, 5], y__b=[math.nan, math.inf, 1])
    try:
        expression = compile_expression(" ".join(words))
        expression.at(store, 2 * MINUTE)
        range_query(expression, store, 0, 5 * MINUTE, MINUTE)
    except (ExpressionError, EvaluationError):
        return


@pytest.mark.parametrize(
    ("text", "names", "needs_all", "reach"),
    [
        ("1", [], False, 0),
        ("x", ["x"], False, 5 * MINUTE),
        ("x offset 10m", ["x"], False, 15 * MINUTE),
        ("x offset -10m", ["x"], False, 5 * MINUTE),
        ("rate(x[5m]) / y", ["x", "y"], False, 10 * MINUTE),
        ("max_over_time(rate(x[5m] offset 1m)[1h:1m] offset 1d)", ["x"], False, 25 * HOUR + 11 * MINUTE),
        ('{__name__="x"}', ["x"], False, 5 * MINUTE),
        ('{"x.y"}', ["x.y"], False, 5 * MINUTE),
        ('{__name__=~"x|y"} + z', ["z"], True, 5 * MINUTE),
        ('{job="a"}', [], True, 5 * MINUTE),
        ("quantile(scalar(q), x)", ["q", "x"], False, 5 * MINUTE),
    ],
)  # fmt: skip
def test_what_an_expression_reads(text: str, names: list[str], needs_all: bool, reach: int) -> None:
    expression = compile_expression(text)

    assert expression.metric_names == frozenset(names)
    assert expression.needs_all is needs_all
    assert expression.reach_ms == reach


@pytest.mark.parametrize(
    ("text", "type_"),
    [("x", "vector"), ("1", "scalar"), ("x[5m]", "matrix"), ('"a"', "string"), ("scalar(x) + 1", "scalar"),
     ("-time()", "scalar"), ("x[5m:1m]", "matrix"), ("sum(x) > bool 1", "vector")],
)  # fmt: skip
def test_the_type_of_an_expression(text: str, type_: str) -> None:
    assert compile_expression(text).type == type_


def test_an_answer_of_each_type() -> None:
    store = store_of(x__a=[1, 2])
    labels = labels_of({NAME: "x", "job": "a"})

    assert compile_expression("1 + 1").at(store, MINUTE) == 2.0
    assert compile_expression("'é'").at(store, MINUTE) == "é"
    assert compile_expression("x").at(store, MINUTE) == [Sample(labels, 2.0)]
    assert compile_expression("x[5m]").at(store, MINUTE) == [
        RangeSample(labels, ((0, 1.0), (MINUTE, 2.0)))
    ]


def test_windows_are_open_on_the_left_and_were_closed_in_prometheus_2() -> None:
    store = store_of(x=[1] * 20)

    new = compile_expression("count_over_time(x[5m])").at(store, 10 * MINUTE)
    old = compile_expression("count_over_time(x[5m])", compat=2).at(store, 10 * MINUTE)

    assert new == [Sample((), 5.0)]
    assert old == [Sample((), 6.0)]
    assert compile_expression("x").at(store, 24 * MINUTE) == []
    assert compile_expression("x", compat=2).at(store, 24 * MINUTE) == [
        Sample(labels_of({NAME: "x"}), 1.0)
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{__name__=~"x|y"} * 2', "same labelset"),
        ('rate({__name__=~"x|y"}[5m])', "same labelset"),
        ("x + on (none) z", "many-to-many"),
        ("z + on (none) x", "many-to-one matching must be explicit"),
        ("x + on (none) group_left z", "many-to-many"),
        ('label_replace(z, "job", "", "job", ".*")', "same labelset"),
        ("max_over_time(x[1000h:1ms])", "too many samples"),
        ("topk(1e300, x)", "overflows"),
        ("double_exponential_smoothing(x[5m], 2, 0.5)", "smoothing factor"),
    ],
)
def test_what_has_no_answer_is_an_evaluation_error(text: str, why: str) -> None:
    store = store_of(x=[1, 2], y=[3, 4], z__a=[5, 6], z__b=[7, 8])

    with pytest.raises(EvaluationError, match=why):
        compile_expression(text).at(store, MINUTE)


def test_elements_that_are_absent_now_do_not_collide() -> None:
    store = store_of(x=[1, 2, 3], z__a=[5, 6, 7], z__b=[7, 8])

    assert values("z + on (none) x", store, 2 * MINUTE) == [10]
    assert values("x + on (none) z", store, 2 * MINUTE) == [10]
    assert values('label_replace(z, "job", "", "job", ".*")', store, 2 * MINUTE) == [7]


def test_a_compiled_expression_follows_series_that_come_and_go() -> None:
    store = Store(retention_ms=10 * MINUTE)
    source = store.source("t", {})
    expression = compile_expression("sum by (job) (x) / on (job) y")

    def answer(at: int) -> dict[str, float]:
        value = expression.at(store, at)
        assert isinstance(value, list)
        return {dict(s.labels)["job"]: s.value for s in value if isinstance(s, Sample)}

    def put(at: int, *jobs: str) -> None:
        source.put(
            [(name, {"job": job}, n) for job in jobs for name, n in (("x", 6.0), ("y", 2.0))], at
        )

    assert answer(0) == {}
    put(0, "a")
    assert answer(0) == {"a": 3}
    put(1000, "a", "b")
    assert answer(1000) == {"a": 3, "b": 3}
    put(2000, "b")
    assert answer(2000) == {"b": 3}
    assert answer(1000) == {"a": 3, "b": 3}
    put(3000, "a", "b", "c")
    assert answer(3000) == {"a": 3, "b": 3, "c": 3}
    store.drop("t")
    assert answer(4000) == {}
    store.trim(HOUR)
    assert answer(4000) == {}


@pytest.mark.parametrize(
    "text",
    ["x", "rate(x[5m])", "sum by (job) (x) * 2", "x / on (job) y", "x and y", "x or y", "-x", "topk(1, x)",
     "max_over_time(x[5m:1m])", 'label_replace(x, "a", "b", "", "")', "histogram_quantile(0.9, b)", "sort(x)",
     "avg_over_time(rate(x[2m])[5m:1m])", "x > 1", "absent(x)", 'count_values("v", y)'],
)  # fmt: skip
def test_label_work_is_not_done_again_while_the_series_stay(text: str) -> None:
    store = store_of(x__a=[1] * 20, x__b=[2] * 20, y__a=[3] * 20, b=[1] * 20)
    evaluate = _Compiler(legacy=False).vector(parse(text, lambda _: None))

    def shape(minute: int) -> Shape:
        at = minute * MINUTE
        return evaluate(Context(store, at, 5 * MINUTE, MINUTE, False, at, at, 0, Budget())).shape

    assert shape(9) is shape(10)


def test_other_metrics_do_not_disturb_what_is_known_of_one() -> None:
    store = store_of(x=[1])
    before = store.revision("x"), store.revision("z"), store.version
    store.source("u", {}).put([("z", {}, 1.0)], 0)

    assert store.revision("x") == before[0]
    assert store.revision("z") > before[1]
    assert store.version > before[2]


def test_series_are_found_by_a_selector_and_a_span() -> None:
    store = store_of(x__a=[1] * 3, x__b=[1] * 6, y=[1] * 6)

    def jobs(text: str, start: int, end: int) -> list[str]:
        found = matching_series(text, store, start * MINUTE, end * MINUTE)
        return [dict(labels).get("job", "") for labels in found]

    assert jobs("x", 0, 5) == ["a", "b"]
    assert jobs("x", 2, 5) == ["a", "b"]
    assert jobs("x", 3, 5) == ["b"]
    assert jobs('{__name__=~".+", job!="b"}', 0, 5) == ["a", ""]
    for text in ("x offset 1m", "x[5m]", "rate(x[5m])", "1", "x +", "sum(x)"):
        with pytest.raises(ExpressionError):
            matching_series(text, store, 0, MINUTE)


def test_one_expression_may_be_asked_of_several_stores() -> None:
    expression = compile_expression("x * 2")
    first, second = store_of(x=[1]), store_of(x=[2])

    assert [expression.at(each, 0) for each in (first, second, first)] == [
        [Sample((), 2.0)], [Sample((), 4.0)], [Sample((), 2.0)]
    ]  # fmt: skip


def test_look_back_and_default_step_are_the_callers() -> None:
    store = store_of(x=list(range(60)))

    assert values("x", store, 61 * MINUTE, lookback_ms=MINUTE) == []
    assert values("count_over_time(x[10m:])", store, 30 * MINUTE, default_step_ms=30_000) == [20]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", [((NAME, "x"), [2.0, 4.0, 6.0])]),
        ("time()", [(None, [120.0, 240.0, 360.0])]),
        ("x @ start()", [((NAME, "x"), [2.0, 2.0, 2.0])]),
        ("x @ end()", [((NAME, "x"), [6.0, 6.0, 6.0])]),
        ("x > 3", [((NAME, "x"), [4.0, 6.0])]),
        ("vector(start() + end() + range() + step())", [(None, [120 + 360 + 240 + 120.0] * 3)]),
    ],
)
def test_a_range_query_is_an_instant_query_at_every_step(
    text: str, expected: list[tuple[tuple[str, str] | None, list[float]]]
) -> None:
    store = store_of(x=list(range(10)))

    answer = range_query(compile_expression(text), store, 2 * MINUTE, 6 * MINUTE, 2 * MINUTE)

    assert [(s.labels, [v for _, v in s.points]) for s in answer] == [
        ((pair,) if pair else (), points) for pair, points in expected
    ]
    assert answer[0].points[-1][0] == 6 * MINUTE


@pytest.mark.parametrize(
    ("text", "start", "end", "step"),
    [("x[5m]", 0, 1, 1), ("'a'", 0, 1, 1), ("x", 1, 0, 1), ("x", 0, 1, 0), ("x", 0, 12_000, 1)],
)
def test_a_range_query_that_makes_no_sense_is_refused(
    text: str, start: int, end: int, step: int
) -> None:
    with pytest.raises(EvaluationError):
        range_query(compile_expression(text), store_of(x=[1]), start, end, step)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x + fill(0) y", {"a": 11, "b": 2, "c": 30}),
        ("x + fill_right(0) y", {"a": 11, "b": 2}),
        ("x + fill_left(0) y", {"a": 11, "c": 30}),
        ("x + fill_left(1) fill_right(2) y", {"a": 11, "b": 4, "c": 31}),
        ("none + fill_left(1) y", {"a": 11, "c": 31}),
    ],
)
def test_an_absent_side_can_be_filled(text: str, expected: dict[str, float]) -> None:
    store = store_of(x__a=[1], x__b=[2], y__a=[10], y__c=[30])

    value = compile_expression(text).at(store, 0)

    assert isinstance(value, list)
    assert {dict(s.labels)["job"]: s.value for s in value if isinstance(s, Sample)} == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one * on(job) group_right fill_left(2) many", [20, 60]),
        ("one * on(job) group_right fill_right(0) many", [20, 0]),
        ("many * on(job) group_left fill_right(0) one", [20, 0]),
        ("many * on(job) group_left fill_left(2) one", [20, 60]),
        ("many == on(job) group_left fill(5) one", [5]),
    ],
)
def test_filling_many_to_one_counts_sides_as_prometheus_does(
    text: str, expected: list[float]
) -> None:
    store = store_of(many__a=[2], many__b=[5], one__a=[10], one__c=[30])

    assert values(text, store, 0) == expected


@pytest.mark.parametrize(
    ("lower", "upper", "share"),
    [
        ("-Inf", "+Inf", 1), ("0", "+Inf", 1), ("-1", "0", 0), ("0", "0.5", 0.2), ("0.5", "1", 0.2),
        ("1", "3", 0.4), ("2", "1", 0), ("3", "100", 0), ("3", "+Inf", 0.2), ("NaN", "1", math.nan),
    ],
)  # fmt: skip
def test_the_share_of_observations_between_two_values(lower: str, upper: str, share: float) -> None:
    store = Store()
    store.source("t", {}).put(
        [("b", {"le": le}, n) for le, n in (("1", 4.0), ("3", 8.0), ("+Inf", 10.0))], 0
    )

    assert values(f"histogram_fraction({lower}, {upper}, b)", store, 0) == pytest.approx(
        [share], nan_ok=True
    )


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("sort(x)", "bcad"),
        ("sort_desc(x)", "acbd"),
        ("topk(2, x)", "ac"),
        ("bottomk(3, x)", "bca"),
        ('sort_by_label(x, "job")', "abcd"),
        ('sort_by_label_desc(x, "job")', "dcba"),
    ],
)
def test_the_order_of_an_answer(text: str, order: str) -> None:
    store = store_of(x__a=[3], x__b=[1], x__c=[2], x__d=[math.nan])

    value = compile_expression(text).at(store, 0)

    assert isinstance(value, list)
    assert "".join(dict(s.labels)["job"] for s in value) == order
