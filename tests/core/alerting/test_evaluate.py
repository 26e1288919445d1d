from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.evaluate import Evaluation, Evaluator, Setting
from sentinel.core.alerting.rule import AlertRule, RecordingRule, Rule, RuleGroup
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Series, Store
from sentinel.core.promql import Sample, compile_expression

START = datetime(2030, 1, 1, tzinfo=UTC)


def alert(name: str, expr: str, **fields: Any) -> AlertRule:
    return AlertRule(name=name, expr=compile_expression(expr), group="g", **fields)


def record(name: str, expr: str, **labels: str) -> RecordingRule:
    return RecordingRule(name=name, expr=compile_expression(expr), labels=labels, group="g")


def group(*rules: Rule, name: str = "g", **fields: Any) -> RuleGroup:
    return RuleGroup(name=name, file="f.yaml", rules=rules, **fields)


class Bench:
    """A store, an evaluator, and time that moves by minutes."""

    def __init__(self, *groups: RuleGroup, **fields: Any) -> None:
        self.store = Store()
        self.evaluator = Evaluator(groups, self.store, **fields)
        self.now = START

    def put(self, name: str, value: float, **labels: str) -> None:
        self.store.source(name, {}).put([(name, labels, value)], millis(self.now))

    def vanish(self, name: str) -> None:
        self.store.source(name, {}).put([], millis(self.now))

    def evaluate(self, *due: RuleGroup) -> Evaluation:
        return self.evaluator.evaluate(self.now, due or None)

    def later(self, minutes: int = 1) -> None:
        self.now += timedelta(minutes=minutes)

    def query(self, text: str) -> dict[tuple[tuple[str, str], ...], float]:
        found = compile_expression(text).at(self.store, millis(self.now))
        assert isinstance(found, list)
        return {one.labels: one.value for one in found if isinstance(one, Sample)}


def test_a_rule_sees_what_the_rules_before_it_wrote() -> None:
    bench = Bench(
        group(
            record("twice", "m * 2"),
            record("more", "twice + 1", team="infra"),
            alert("A", "more > 6"),
        )
    )
    bench.put("m", 3, job="api")

    [change] = bench.evaluate().transitions

    assert (change.kind, change.alert.value) == ("firing", 7)
    assert change.alert.labels == {"alertname": "A", "job": "api", "team": "infra"}


def test_what_was_written_before_the_clock_was_set_back_is_gone_though_nothing_follows() -> None:
    bench = Bench(group(record("twice", "m * 2"), alert("A", "m")))
    bench.put("m", 1)
    bench.evaluate()
    began = bench.now
    for _ in range(20):
        bench.later()
        bench.vanish("m")
        bench.evaluate()
    bench.now = began - timedelta(seconds=1)
    bench.vanish("m")
    bench.evaluate()
    bench.now = began + timedelta(seconds=1)

    assert bench.query("twice") == bench.query("ALERTS") == {}


def test_a_rule_that_was_silent_for_long_speaks_and_ends_as_any_other() -> None:
    bench = Bench(group(record("twice", "m * 2"), alert("A", "m")))
    for _ in range(3):
        bench.evaluate()
        bench.later()
    bench.put("m", 1)
    bench.evaluate()
    assert list(bench.query("twice").values()) == [2]
    assert len(bench.query("ALERTS")) == 1
    bench.later()
    bench.vanish("m")
    bench.evaluate()

    assert bench.query("twice") == bench.query("ALERTS") == {}


def test_recorded_series_end_with_their_cause() -> None:
    bench = Bench(group(record("twice", "m * 2")))
    bench.put("m", 1)
    bench.evaluate()
    bench.later()
    bench.vanish("m")
    bench.evaluate()

    assert bench.query("twice") == {}


def test_alerts_are_series_too() -> None:
    bench = Bench(group(alert("A", "m > 0", for_=timedelta(minutes=1))))
    bench.put("m", 1, job="api")
    bench.evaluate()
    [pending] = bench.query("ALERTS")
    assert dict(pending) == {
        "__name__": "ALERTS",
        "alertname": "A",
        "alertstate": "pending",
        "job": "api",
    }

    bench.later()
    bench.evaluate()
    [firing] = bench.query("ALERTS")
    assert dict(firing)["alertstate"] == "firing"
    assert list(bench.query("ALERTS_FOR_STATE").values()) == [START.timestamp()]

    bench.vanish("m")
    bench.later()
    bench.evaluate()
    assert bench.query("ALERTS or ALERTS_FOR_STATE") == {}


def test_one_broken_rule_stops_no_other_and_keeps_its_alerts() -> None:
    broken = alert("Broken", "m * on (job) n")
    bench = Bench(group(broken, alert("Sound", "m > 0")))
    bench.put("m", 1, job="api")
    bench.put("n", 1, job="api")
    bench.evaluate()
    bench.store.source("n", {}).put(
        [("n", {"job": "api", "i": i}, 1.0) for i in "ab"], millis(START) + 1
    )
    bench.later()

    evaluation = bench.evaluate()

    [failure] = evaluation.failures
    assert failure.rule is broken
    assert "many-to-many" in failure.because
    assert {(one.alertname, one.state) for one in evaluation.active} == {
        ("Broken", "firing"),
        ("Sound", "firing"),
    }


def test_not_even_a_fault_of_the_engine_stops_the_other_rules() -> None:
    class Broken(Store):
        def named(self, name: str) -> Sequence[Series]:
            raise ZeroDivisionError("oops")

    bench = Bench()
    bench.evaluator = Evaluator([group(alert("A", "m"), alert("Sound", "vector(1)"))], Broken())

    evaluation = bench.evaluate()

    assert [one.because for one in evaluation.failures] == ["ZeroDivisionError: oops"]
    assert [one.alertname for one in evaluation.active] == ["Sound"]


def test_a_limit_refuses_what_is_above_it() -> None:
    bench = Bench(group(alert("A", "m"), record("r", "m"), limit=1))
    bench.store.source("m", {}).put([("m", {"i": i}, 1.0) for i in "ab"], millis(START))

    evaluation = bench.evaluate()

    assert [one.because for one in evaluation.failures] == [
        "exceeded limit of 1 with 2 alerts",
        "exceeded limit of 1 with 2 series",
    ]
    assert evaluation.active == ()
    assert bench.query("r or ALERTS") == {}


@pytest.mark.parametrize("expr", ["'text'", "m[5m]"], ids=["a text", "a matrix"])
def test_a_result_no_rule_can_use_is_a_failure(expr: str) -> None:
    bench = Bench(group(alert("A", expr)))
    bench.put("m", 1)

    assert [one.because for one in bench.evaluate().failures] == [
        "rule result is not a vector or scalar"
    ]


def test_a_number_is_a_vector_without_labels() -> None:
    [change] = Bench(group(alert("A", "1 + 1"))).evaluate().transitions

    assert (change.alert.value, change.alert.labels) == (2, {"alertname": "A"})


def test_two_series_recorded_with_the_same_labels_are_a_failure() -> None:
    bench = Bench(group(record("r", "m", i="same")))
    bench.store.source("m", {}).put([("m", {"i": i}, 1.0) for i in "ab"], millis(START))

    [failure] = bench.evaluate().failures

    assert "same labelset after applying rule labels" in failure.because


def test_two_rules_that_write_one_series_leave_it_to_the_first() -> None:
    bench = Bench(group(record("r", "m"), replace(record("r", "n"), ordinal=2)))
    bench.put("m", 1)
    bench.put("n", 2)
    bench.evaluate()
    assert list(bench.query("r").values()) == [1]

    bench.later()
    bench.vanish("m")
    bench.put("n", 2)
    bench.evaluate()
    assert list(bench.query("r").values()) == [2]


def test_only_groups_that_are_due_are_evaluated() -> None:
    one, other = (
        group(alert("A", "vector(1)"), name="one"),
        group(alert("B", "vector(1)"), name="other"),
    )
    bench = Bench(one, other)

    assert [change.alert.alertname for change in bench.evaluate(other).transitions] == ["B"]
    assert [change.alert.alertname for change in bench.evaluate().transitions] == ["A"]


def test_a_query_offset_looks_that_far_back() -> None:
    bench = Bench(group(alert("A", "m > 1"), query_offset=timedelta(minutes=1)))
    bench.put("m", 2)
    bench.later()
    bench.put("m", 0)

    assert [change.kind for change in bench.evaluate().transitions] == ["firing"]


def test_texts_are_expanded_and_what_fails_is_part_of_the_text() -> None:
    says: Mapping[str, str] = {
        "good": '{{ $labels.job }} {{ with query "sum(m)" }}{{ . | first | value }}{{ end }} {{ $externalLabels.host }} {{ $externalURL }}',
        "bad": '{{ query "nosuch(" }}',
        "worse": '{{ query "m * on () m" }}',
    }  # fmt: skip
    setting = Setting(external_labels={"host": "gpu1"}, external_url="http://s")
    bench = Bench(
        group(alert("A", "m", annotations=says, labels={"team": "{{ $labels.job }}-team"})),
        setting=setting,
    )
    bench.store.source("m", {}).put([("m", {"job": j}, 2.0) for j in "ab"], millis(START))

    one = bench.evaluate().active[0]

    assert one.labels["team"] == "a-team"
    assert one.annotations["good"] == "a 4 gpu1 http://s"
    for key in ("bad", "worse"):
        assert one.annotations[key].startswith(
            "<error expanding template: error executing template __alert_A: "
        )


def standing(state: Any, rule: str = "g/A") -> ActiveAlert:
    return ActiveAlert(
        key=f"{rule}{{}}", alertname="A", labels={"alertname": "A"}, annotations={}, state=state,
        value=1.0, active_at=START, last_seen_at=START, rule=rule,
    )  # fmt: skip


def test_alerts_from_before_go_on() -> None:
    rule = alert("A", "vector(1)", for_=timedelta(minutes=2))
    bench = Bench(group(rule), seed=[standing("pending")])
    bench.later(2)

    [change] = bench.evaluate().transitions

    assert (change.kind, change.alert.active_at) == ("firing", START)


def test_alerts_whose_rule_is_gone_end_once() -> None:
    gone = [
        standing("firing", "g/Gone"),
        standing("pending", "g/Other"),
        standing("resolved", "g/Old"),
    ]
    bench = Bench(group(alert("A", "vector(1) > 1")), seed=gone)

    assert sorted(change.kind for change in bench.evaluate().transitions) == ["dropped", "resolved"]
    assert bench.evaluate().transitions == ()
    assert bench.evaluator.active == ()


def test_an_alert_is_not_resolved_before_its_window_is_full_again() -> None:
    rule = alert("A", "increase(m[10m]) > 0")
    bench = Bench(group(rule), seed=[standing("firing")], observed_since=START)
    for _ in range(9):
        bench.later()
        bench.put("m", 5)
        assert bench.evaluate().transitions == ()

    bench.later()
    bench.put("m", 5)
    assert [change.kind for change in bench.evaluate().transitions] == ["resolved"]


def test_an_alert_over_the_present_is_resolved_at_the_first_look() -> None:
    bench = Bench(group(alert("A", "m > 0")), seed=[standing("firing")], observed_since=START)
    bench.put("m", 0)

    assert [change.kind for change in bench.evaluate().transitions] == ["resolved"]


def test_new_rules_take_over_the_alerts_and_end_the_series_of_the_old() -> None:
    kept = alert("A", "m > 0")
    bench = Bench(group(kept, record("old", "m"), record("same", "m")))
    bench.put("m", 1)
    bench.evaluate()
    bench.later()
    edited = alert("A", "m > 0.5", annotations={"new": "text"})

    bench.evaluator = bench.evaluator.successor([group(edited, record("same", "m"))])
    evaluation = bench.evaluate()

    assert evaluation.transitions == ()
    [one] = evaluation.active
    assert (one.state, one.active_at, one.annotations) == ("firing", START, {"new": "text"})
    assert bench.query("old") == {}
    assert list(bench.query("same").values()) == [1]
