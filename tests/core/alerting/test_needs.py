from datetime import timedelta

from sentinel.core.alerting.needs import needs_of, windows_of
from sentinel.core.alerting.rule import AlertRule, RecordingRule, Rule, RuleGroup
from sentinel.core.promql import compile_expression


def alert(expr: str, text: str = "") -> AlertRule:
    return AlertRule(name="A", expr=compile_expression(expr), annotations={"says": text})


def group(*rules: Rule, offset: timedelta = timedelta(0)) -> RuleGroup:
    return RuleGroup(name="g", rules=rules, query_offset=offset)


def test_rules_need_what_they_read_and_what_they_write() -> None:
    record = RecordingRule(name="r", expr=compile_expression("sum(m)"))
    needs = needs_of([group(record, alert("r > n"))])

    assert needs.names == {"m", "n", "r", "ALERTS", "ALERTS_FOR_STATE"}
    assert needs.keeps("m")
    assert not needs.keeps("other")


def test_a_query_in_a_template_is_needed_too() -> None:
    text = '{{ printf "rate(vllm:x_total{target=%q}[5m])" $labels.target | query }} words here'
    needs = needs_of([group(alert("m", text))])

    assert needs.keeps("vllm:x_total")
    assert not needs.keeps("words")


def test_an_expression_without_a_name_needs_everything() -> None:
    assert needs_of([group(alert('{job="a"}'))]).keeps("anything")


def test_the_farthest_look_back_counts() -> None:
    minute = 60_000
    needs = needs_of([group(alert("m")), group(alert("rate(m[10m])"), offset=timedelta(minutes=1))])

    assert needs.reach_ms == (10 + 5 + 1) * minute
    assert needs_of([]).reach_ms == 0


def record(name: str, expr: str) -> RecordingRule:
    return RecordingRule(name=name, expr=compile_expression(expr))


def test_a_rule_judges_by_what_was_recorded_too() -> None:
    rules: list[Rule] = [
        record("a", "rate(m[10m])"),
        record("b", "avg_over_time(a[5m])"),
        alert("b > 1 or m"),
    ]
    windows = windows_of([group(*rules)], timedelta(minutes=5))

    assert list(windows.values()) == [timedelta(minutes=each) for each in (10, 15, 15)]


def test_rules_that_read_each_other_are_no_trap() -> None:
    rules = [record("a", "b + rate(m[1m])"), record("b", "a"), record("c", "c offset 2m")]
    windows = windows_of([group(*rules)], timedelta(minutes=5))

    assert list(windows.values()) == [timedelta(minutes=each) for each in (1, 1, 2)]
