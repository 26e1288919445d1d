from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.alerting.advance import ActiveAlert, Transition, advance
from sentinel.core.alerting.rule import AlertRule, RuleError
from sentinel.core.model.labels import labels_of
from sentinel.core.promql import Sample, compile_expression

START = datetime(2030, 1, 1, tzinfo=UTC)
EXPR = compile_expression("m")


def rule(**fields: object) -> AlertRule:
    return AlertRule(name="A", expr=EXPR, group="g", **fields)  # type: ignore[arg-type]


def as_written(text: str, labels: Mapping[str, str], value: float) -> str:
    return text.replace("$job", labels.get("job", "")).replace("$value", str(value))


def sample(value: float = 1.0, **labels: str) -> Sample:
    return Sample(labels_of({"__name__": "m", **labels}), value)


class History:
    """A rule over time: one character a minute, `x` where its expression has a result."""

    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self.active: dict[str, ActiveAlert] = {}
        self.now = START - timedelta(minutes=1)

    def minute(self, *vector: Sample, unsettled: bool = False) -> list[Transition]:
        self.now += timedelta(minutes=1)
        self.active, transitions = advance(
            self.rule, self.active, vector, self.now, expand=as_written, unsettled=unsettled
        )
        return transitions

    def run(self, minutes: str) -> str:
        """What stands after each minute: `p`ending, `f`iring, `r`esolved or nothing."""
        shown = ""
        for minute in minutes:
            self.minute(*([sample()] if minute == "x" else []))
            shown += next((alert.state[0] for alert in self.active.values()), ".")
        return shown


@pytest.mark.parametrize(
    ("for_", "keep", "minutes", "states"),
    [
        pytest.param(0, 0, "..x..", "..frr", id="without `for` it fires at once"),
        pytest.param(2, 0, "xxxx", "ppff", id="it fires when `for` has passed, not after"),
        pytest.param(2, 0, "xx.xxx", "pp.ppf", id="a gap starts `for` anew"),
        pytest.param(1, 0, "xx.xx", "pfrpf", id="after it resolved `for` starts anew"),
        pytest.param(0, 2, "x...", "ffff"[:3] + "r", id="it is kept for less than keep_firing_for"),
        pytest.param(0, 2, "x.x...", "fffffr", id="its return starts keep_firing_for anew"),
        pytest.param(2, 5, "xx.", "pp.", id="what is pending is not kept"),
        pytest.param(
            0,
            0,
            "x" + "." * 18,
            "f" + "r" * 16 + "..",
            id="resolved is remembered for a quarter of an hour",
        ),
    ],
)
def test_the_life_of_an_alert(for_: int, keep: int, minutes: str, states: str) -> None:
    history = History(rule(for_=timedelta(minutes=for_), keep_firing_for=timedelta(minutes=keep)))

    assert history.run(minutes) == states


@pytest.mark.parametrize(
    ("minutes", "kinds"),
    [
        ("xx", ["pending"]),
        ("xxx", ["pending", "firing"]),
        ("x.", ["pending", "dropped"]),
        ("xxx.", ["pending", "firing", "resolved"]),
        ("xxx.x", ["pending", "firing", "resolved", "pending"]),
    ],
)
def test_each_change_is_told_once(minutes: str, kinds: list[str]) -> None:
    history = History(rule(for_=timedelta(minutes=2)))

    told = [
        one.kind
        for minute in minutes
        for one in history.minute(*([sample()] if minute == "x" else []))
    ]

    assert told == kinds


def test_an_alert_carries_its_instants() -> None:
    history = History(rule(for_=timedelta(minutes=1), keep_firing_for=timedelta(minutes=2)))
    history.run("xx.")
    [alert] = history.active.values()

    assert alert.active_at == START
    assert alert.fired_at == START + timedelta(minutes=1)
    assert alert.keep_since == START + timedelta(minutes=2)
    assert alert.last_seen_at == START + timedelta(minutes=2)

    history.run("..")
    [alert] = history.active.values()
    assert alert.resolved_at == START + timedelta(minutes=4)
    assert (alert.keep_since, alert.state) == (None, "resolved")


def test_value_and_annotations_follow_the_series() -> None:
    history = History(rule(annotations={"says": "$value of $job"}, labels={"team": "infra"}))
    history.minute(sample(1.0, job="api"))
    history.minute(sample(2.0, job="api"))
    [alert] = history.active.values()

    assert alert.value == 2.0
    assert alert.annotations == {"says": "2.0 of api"}
    assert alert.labels == {"alertname": "A", "job": "api", "team": "infra"}
    assert alert.key == 'g/A{job="api", team="infra"}'


def test_a_value_in_a_label_makes_a_new_alert_each_time_it_changes() -> None:
    history = History(rule(labels={"level": "$value"}, for_=timedelta(minutes=1)))
    history.minute(sample(1.0))
    kinds = [one.kind for one in history.minute(sample(2.0))]

    assert sorted(kinds) == ["dropped", "pending"]


def test_a_rules_label_wins_and_an_empty_one_is_none() -> None:
    history = History(rule(labels={"job": "mine", "instance": ""}))
    history.minute(sample(job="theirs", instance="a:1"))
    [alert] = history.active.values()

    assert alert.labels == {"alertname": "A", "job": "mine"}


def test_two_results_with_equal_labels_are_an_error_that_changes_nothing() -> None:
    history = History(rule(labels={"job": "one"}))
    history.minute(sample(job="a"))
    before = history.active

    with pytest.raises(RuleError, match="same labelset"):
        history.minute(sample(job="a"), sample(job="b"))
    assert history.active is before


def test_an_absent_alert_proves_nothing_while_the_series_are_too_short() -> None:
    history = History(rule(for_=timedelta(minutes=3)))
    history.run("xx")

    for _ in range(5):
        assert history.minute(unsettled=True) == []
    assert history.run("x") == "p"  # the five minutes do not count
    assert history.run("x") == "f"

    assert history.minute(unsettled=True) == []
    assert history.minute()[0].kind == "resolved"


def test_a_clock_set_back_makes_it_more_patient() -> None:
    history = History(rule(for_=timedelta(minutes=2)))
    history.run("x")
    history.now -= timedelta(minutes=30)

    assert history.run("x" * 32) == "p" * 31 + "f"


@given(st.text(alphabet="x.", max_size=60), st.integers(0, 4), st.integers(0, 4))
def test_it_only_fires_after_for_and_only_rests_after_keep(
    minutes: str, for_: int, keep: int
) -> None:
    states = History(
        rule(for_=timedelta(minutes=for_), keep_firing_for=timedelta(minutes=keep))
    ).run(minutes)

    for at, state in enumerate(states):
        recent = minutes[max(0, at - for_) : at + 1]
        if state == "f" and states[at - 1 : at] != "f":
            assert recent == "x" * (for_ + 1)
        if state in "r." and states[at - 1 : at] == "f":
            assert "x" not in minutes[max(0, at - max(keep, 1) + 1) : at + 1]
