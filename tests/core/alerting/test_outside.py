"""Which rules are asked elsewhere, and what answers, and no answers, do to alerts."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.alerting.evaluate import Evaluation, Evaluator
from sentinel.core.alerting.outside import Answer, FromOutside, Reading, adopt, divide
from sentinel.core.alerting.rule import AlertRule, RecordingRule, Rule, RuleGroup
from sentinel.core.model.labels import labels_of
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import Sample, compile_expression

START = datetime(2030, 1, 1, tzinfo=UTC)


def alert(name: str, expr: str, *, group: str = "g", **fields: Any) -> AlertRule:
    return AlertRule(name=name, expr=compile_expression(expr), group=group, **fields)


def record(name: str, expr: str, *, group: str = "g", **fields: Any) -> RecordingRule:
    return RecordingRule(name=name, expr=compile_expression(expr), group=group, **fields)


def group(name: str, *rules: Rule) -> RuleGroup:
    return RuleGroup(name=name, rules=rules)


def asked(*groups: RuleGroup) -> list[str]:
    return [rule.name for group in divide(groups).asked for rule in group.rules]


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        pytest.param([alert("A", "vllm:x > 1")], ["A"], id="what Prometheus has"),
        pytest.param([alert("A", "vector(1)")], ["A"], id="nothing at all"),
        pytest.param([alert("A", '{job="node"} > 1')], ["A"], id="without a name"),
        pytest.param([alert("A", "sentinel_target_up == 0")], [], id="ours"),
        pytest.param([alert("A", '{__name__=~"sentinel_.*"} > 1')], [], id="ours, by pattern"),
        pytest.param(
            [alert("A", "x > 1"), alert("B", "rate(sentinel_x[5m]) > 1")], [], id="a neighbour's"
        ),
        pytest.param([alert("A", 'ALERTS{alertname="B"} == 1')], [], id="our alerts"),
        pytest.param([alert("A", "ALERTS_FOR_STATE > 1")], [], id="since when they are"),
        pytest.param(
            [record("r:x", "vllm:x * 2"), alert("A", 'max_over_time(r:x{a="b"}[5m]) > 1')],
            ["r:x"],
            id="what is recorded is read here",
        ),
        pytest.param(
            [record("r:x", "x"), record("r:y", "r:x / 2"), alert("A", "r:y > r:x")],
            ["r:x"],
            id="recorded through another",
        ),
    ],
)
def test_a_prometheus_is_asked_only_what_it_can_know(rules: list[Rule], names: list[str]) -> None:
    assert asked(group("g", *rules)) == names


def test_what_builds_upon_ours_stays_through_any_number_of_groups() -> None:
    groups = [
        group("c", alert("C", "r:b > 1", group="c")),
        group("b", record("r:b", "r:a + 1", group="b"), alert("B", "up == 0", group="b")),
        group("a", record("r:a", "sentinel_target_up", group="a")),
        group("d", alert("D", "up == 0", group="d")),
    ]

    assert asked(*groups) == ["D"]
    assert divide(groups).kept == ()


def test_a_group_that_joins_recorded_series_with_others_stays_and_that_is_said() -> None:
    joined: list[Rule] = [
        record("r:x", "rate(x[5m])"),
        alert("Join", "r:x > 1 and y > 2"),
        alert("Plain", "y > 9"),
    ]
    division = divide([group("g", *joined), group("h", alert("H", "r:x > 3", group="h"))])

    assert division.asked == ()
    [sentence] = division.kept
    assert "group g" in sentence
    assert "Join" in sentence


def test_a_rule_evaluated_here_knows_the_answers_it_builds_upon() -> None:
    groups = [
        group(
            "g", record("r:x", "x"), record("r:y", "r:x"), alert("A", "r:y > 1"), alert("B", "x")
        ),
        group("h", alert("H", "r:x > 1 and sentinel_target_up == 1", group="h")),
        group("i", alert("I", "sentinel_target_up == 0", group="i")),
        group("j", alert("J", 'ALERTS{alertname="B"}', group="j")),
    ]

    assert divide(groups).causes == {
        "g/r:y": {"g/r:x"},
        "g/A": {"g/r:x"},
        "h/H": {"g/r:x"},
        "j/J": {"g/B", "g/r:x"},  # any alert may be among ALERTS
    }


NAMES = st.sampled_from(["x", "y", "r:a", "r:b", "sentinel_up", "ALERTS"])
EXPRESSIONS = st.lists(NAMES, min_size=1, max_size=2).map(" + ".join)


@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["r:a", "r:b", ""]), EXPRESSIONS), min_size=1, max_size=3
        ),
        max_size=4,
    )
)
def test_no_division_asks_for_what_only_we_know(drawn: list[list[tuple[str, str]]]) -> None:
    groups = [
        RuleGroup(
            name=str(place),
            rules=tuple(
                record(name, text, group=str(place), ordinal=nth)
                if name
                else alert("A", text, group=str(place), ordinal=nth)
                for nth, (name, text) in enumerate(rules, 1)
            ),
        )
        for place, rules in enumerate(drawn)
    ]
    ours = {r.name for g in groups for r in g.rules if isinstance(r, RecordingRule)}
    ours |= {"sentinel_up", "ALERTS"}

    division = divide(groups)

    there = {rule.id for one in division.asked for rule in one.rules}
    assert all(not rule.expr.metric_names & ours for one in division.asked for rule in one.rules)
    assert all(causes <= there for causes in division.causes.values())
    assert not there & division.causes.keys()


@pytest.mark.parametrize(
    ("label", "given_labels", "expected"),
    [
        ("target", {"target": "t1"}, {"target": "t1", "host": "gpu1"}),
        ("container", {"container": "t1"}, {"container": "t1", "target": "t1", "host": "gpu1"}),
        (
            "container",
            {"container": "t1", "target": "other"},
            {"container": "t1", "target": "t1", "exported_target": "other", "host": "gpu1"},
        ),
        ("target", {"target": "t1", "host": "gpu1"}, {"target": "t1", "host": "gpu1"}),
        ("target", {"target": "t1", "host": "gpu2"}, None),
        ("target", {"host": "gpu2"}, None),
        ("target", {"job": "node"}, {"job": "node"}),
        ("target", {}, {}),
    ],
)
def test_a_sample_becomes_one_of_ours(
    label: str, given_labels: Mapping[str, str], expected: Mapping[str, str] | None
) -> None:
    found = adopt(Sample(labels_of(given_labels), 1.0), target_label=label, host="gpu1")

    assert (None if found is None else dict(found.labels)) == expected


@pytest.mark.parametrize(
    ("warnings", "partial"),
    [((), False), (("PromQL info: x",), False), (("PromQL warning: x", "store down"), True)],
)
def test_a_warning_about_series_makes_an_answer_partial(
    warnings: tuple[str, ...], partial: bool
) -> None:
    assert Answer((), warnings).is_partial is partial


class Bench:
    """An evaluator whose rule `g/A` is judged by what a test gives it."""

    def __init__(self, *rules: Rule) -> None:
        self.store = Store()
        self.evaluator = Evaluator([group("g", *rules)], self.store)
        self.now = START

    def give(self, reading: Reading | str | None, *, rule: str = "g/A", **more: Any) -> Evaluation:
        self.now += timedelta(seconds=5)
        return self.evaluator.evaluate(self.now, outside=FromOutside({rule: reading}, **more))

    def reading(self, *values: float, partial: bool = False, late: float = 0) -> Reading:
        vector = [Sample((("n", str(n)),), value) for n, value in enumerate(values)]
        return Reading(vector, self.now + timedelta(seconds=5 - late), partial)

    @property
    def states(self) -> list[str]:
        return [alert.state for alert in self.evaluator.active]


def test_an_answer_is_judged_as_of_its_slot() -> None:
    bench = Bench(alert("A", "x > 1", for_=timedelta(seconds=10)))

    bench.give(bench.reading(7, late=0))
    bench.give(bench.reading(7, late=3))
    assert bench.states == ["pending"]
    [change] = bench.give(bench.reading(8, late=0)).transitions

    assert (change.kind, change.alert.value) == ("firing", 8)
    assert change.alert.active_at == START + timedelta(seconds=5)
    assert change.alert.fired_at == START + timedelta(seconds=15)


@pytest.mark.parametrize("nothing", [None, "Prometheus: many-to-many"], ids=["none", "an error"])
def test_without_an_answer_everything_stands_as_it_was(nothing: str | None) -> None:
    bench = Bench(alert("A", "x > 1"))
    bench.store.source("x", {}).put([("x", {}, 0.0)], millis(START))  # it is not looked at
    bench.give(bench.reading(7))

    for _ in range(200):
        evaluation = bench.give(nothing)
        assert evaluation.transitions == ()
        assert [failure.because for failure in evaluation.failures] == [nothing] * bool(nothing)
    assert bench.states == ["firing"]

    assert [t.kind for t in bench.give(bench.reading()).transitions] == ["resolved"]


def test_what_is_missing_from_a_partial_answer_is_not_gone() -> None:
    bench = Bench(alert("A", "x > 1"))
    bench.give(bench.reading(7, 8))

    assert bench.give(bench.reading(7, partial=True)).transitions == ()
    assert bench.states == ["firing", "firing"]

    assert [t.kind for t in bench.give(bench.reading(7)).transitions] == ["resolved"]


def test_a_recorded_answer_is_a_series_that_rules_here_read() -> None:
    bench = Bench(record("r:x", "x * 2"), alert("A", "r:x > 3"))

    evaluation = bench.give(bench.reading(7), rule="g/r:x")

    assert [(t.kind, t.alert.value) for t in evaluation.transitions] == [("firing", 7.0)]


def test_a_rule_over_recorded_answers_resolves_nothing_while_they_do_not_come() -> None:
    bench = Bench(record("r:x", "x * 2"), alert("A", "r:x > 3"))
    bench.give(bench.reading(7), rule="g/r:x")

    for _ in range(100):  # beyond the look-back
        assert bench.give(None, rule="g/r:x", unproven={"g/A"}).transitions == ()
    assert bench.states == ["firing"]

    bench.give(bench.reading(), rule="g/r:x")
    assert bench.states == ["resolved"]


def test_two_answers_that_become_one_alert_are_an_error_of_the_rule() -> None:
    bench = Bench(alert("A", "x > 1"))
    twice = Reading([Sample((), 1.0), Sample((), 2.0)], bench.now)

    assert len(bench.give(twice).failures) == 1
