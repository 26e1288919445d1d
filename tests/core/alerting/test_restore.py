from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sentinel.core.alerting.advance import ActiveAlert, advance
from sentinel.core.alerting.restore import LONGEST_OUTAGE, restore
from sentinel.core.alerting.rule import AlertRule
from sentinel.core.promql import Sample, compile_expression

START = datetime(2030, 1, 1, tzinfo=UTC)
RULE = AlertRule(name="A", expr=compile_expression("m"), for_=timedelta(minutes=5), group="g")


def minutes(count: float) -> datetime:
    return START + timedelta(minutes=count)


def pending(seen: float) -> ActiveAlert:
    return ActiveAlert(
        key="g/A{}", alertname="A", labels={"alertname": "A"}, annotations={}, state="pending",
        value=1.0, active_at=START, last_seen_at=minutes(seen), rule="g/A",
    )  # fmt: skip


def test_killed_after_three_minutes_and_back_after_one_it_fires_at_six() -> None:
    [alert] = restore([pending(3)], minutes(4))
    active = {alert.key: alert}
    fired: list[float] = []
    for half in range(8, 15):
        active, transitions = advance(
            RULE, active, [Sample((), 1.0)], minutes(half / 2), expand=lambda text, *_: text
        )
        fired += [half / 2 for one in transitions if one.kind == "firing"]

    assert fired == [6]


def test_two_outages_add_up() -> None:
    [alert] = restore([pending(1)], minutes(2))
    [alert] = restore([replace(alert, last_seen_at=minutes(3))], minutes(5))

    assert alert.active_at == minutes(3)


def test_what_fired_fires_on_and_only_its_keeping_is_put_off() -> None:
    firing = replace(pending(3), state="firing", fired_at=minutes(2), keep_since=minutes(3))
    [alert] = restore([firing], minutes(33))

    assert (alert.state, alert.active_at, alert.fired_at) == ("firing", START, minutes(2))
    assert alert.keep_since == minutes(33)


def test_what_is_resolved_stays_as_it_is() -> None:
    resolved = replace(pending(3), state="resolved", resolved_at=minutes(3))

    assert restore([resolved], minutes(10)) == [resolved]


@pytest.mark.parametrize(("over", "left"), [(0, 1), (1, 0)], ids=["an hour", "longer"])
def test_after_a_long_outage_what_was_pending_starts_anew(over: int, left: int) -> None:
    now = minutes(3) + LONGEST_OUTAGE + timedelta(seconds=over)

    assert len(restore([pending(3)], now)) == left


def test_a_clock_set_back_takes_nothing_away() -> None:
    [alert] = restore([pending(3)], minutes(-10))

    assert alert.active_at == START
