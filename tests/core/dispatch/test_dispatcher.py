"""The rules of Alertmanager's lifecycle, one by one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sentinel.core.dispatch.dispatcher import Ear
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.interval import Interval, Minutes, Times
from sentinel.core.dispatch.route import Route
from sentinel.core.model.labels import Matcher
from tests.core.dispatch.scene import EARS, ROUTE, Scene, alert, at, routing, said, silence

NIGHT = Interval((Times(minutes=(Minutes(0, 1),)),))  # one minute from midnight: from START
HOURLY = replace(ROUTE, repeat_interval=timedelta(hours=1))
BY_INCIDENT = replace(HOURLY, group_by=frozenset({"incident"}))


@pytest.fixture
def scene() -> Scene:
    return Scene(routing(HOURLY))


def test_a_new_group_waits_and_says_everything_at_once(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(1)
    scene.put(alert("B", 1))
    scene.until(60)
    assert scene.said == [said(2, "a/0", "AB"), said(2, "a/1", "AB")]


def test_a_group_that_has_spoken_speaks_again_at_its_next_tick(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(3)
    scene.put(alert("B", 3), alert("C", 3))
    scene.until(60)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A"), said(12, "a/0", "ABC")]


def test_groups_do_not_wait_for_each_other(scene: Scene) -> None:
    scene.put(alert("A", g="1"))
    scene.until(1)
    scene.put(alert("B", 1, g="2"))
    scene.until(60)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A"), said(3, "a/0", "B")]
    assert [due.group_key for _, due in scene.dues[::2]] == ['{}:{g="1"}', '{}:{g="2"}']


def test_an_alert_that_has_fired_longer_than_the_wait_is_said_at_once(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(1)
    scene.put(alert("B", -2))
    assert scene.heard_by("a/0") == [said(1, "a/0", "AB")]


def test_that_rule_holds_only_until_the_group_has_spoken(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(3)
    scene.put(alert("B", -60))
    scene.until(11)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A")]


def test_what_is_over_is_said_where_that_is_wanted(scene: Scene) -> None:
    scene.put(alert("A"), alert("B"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(25)
    scene.put(alert("B", 0, 25))
    scene.until(60)
    assert scene.said == [
        said(2, "a/0", "AB"),
        said(2, "a/1", "AB"),
        said(12, "a/0", "B", "A"),
        said(32, "a/0", "", "B"),
    ]


def test_an_alert_that_times_out_is_over(scene: Scene) -> None:
    scene.put(alert("A", 0, 7))
    assert scene.dispatcher.due_at() == at(2)
    scene.until(60)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A"), said(12, "a/0", "", "A")]


def test_when_a_firing_alert_will_be_given_up_on_is_not_told(scene: Scene) -> None:
    scene.put(alert("A", 0, 7))
    scene.until(12)
    assert [due.alerts[0][0].ends_at for _, due in scene.dues] == [None, None, at(7)]


def test_what_was_over_before_anybody_was_told_is_not_told(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.put(alert("A", 0, 1))
    scene.until(60)
    assert scene.said == []


def test_what_comes_back_is_said_again_even_to_who_is_not_told_that_it_was_over(
    scene: Scene,
) -> None:
    scene.put(alert("A"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(15)
    scene.put(alert("A", 15))
    scene.until(60)
    assert scene.heard_by("a/1") == [said(2, "a/1", "A"), said(22, "a/1", "A")]


def test_what_does_not_change_is_repeated_at_the_first_tick_after_the_interval() -> None:
    scene = Scene()
    scene.put(alert("A"))
    scene.until(140)
    assert scene.heard_by("a/0") == [said(t, "a/0", "A") for t in (2, 72)]
    assert [(due.is_repeat, due.new) for _, due in scene.dues[::2]] == [
        (False, {alert("A").fingerprint}),
        (True, frozenset()),
    ]


def test_an_empty_group_lives_until_the_clean_up(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(29)  # over and told at 12; the group ticks at 22 and 32
    scene.put(alert("A", 29))
    scene.until(31)
    assert scene.heard_by("a/0")[2:] == []
    scene.until(32)
    assert scene.heard_by("a/0")[2:] == [said(32, "a/0", "A")]


def test_after_the_clean_up_it_is_a_new_group(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(12)
    assert scene.dispatcher.due_at() == at(30)
    scene.until(30)
    assert scene.dispatcher.due_at() is None
    assert scene.disk.groups == {}
    scene.until(31)
    scene.put(alert("A", 31))
    scene.until(60)
    assert scene.heard_by("a/0")[2:] == [said(33, "a/0", "A")]


# --- quiet


def test_a_silence_keeps_quiet_what_it_matches_and_nothing_else(scene: Scene) -> None:
    scene.hush(silence(1, 0, 30, Matcher("alertname", "=", "A")))
    scene.put(alert("A"), alert("B"))
    scene.until(60)
    assert scene.heard_by("a/0") == [said(2, "a/0", "B"), said(32, "a/0", "AB")]


def test_what_was_over_while_it_was_silenced_is_not_said(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(3)
    scene.hush(silence(1, 0, 30, Matcher("alertname", "=", "A")))
    scene.put(alert("A", 0, 4))
    scene.until(60)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A")]


def test_a_silence_by_incident_silences_all_its_alerts() -> None:
    scene = Scene(routing(BY_INCIDENT))
    scene.hush(silence(1, 0, 30, Matcher("incident", "=", "i-1")))
    scene.put(alert("A", incident="i-1"), alert("B", incident="i-2"))
    scene.until(20)
    assert scene.heard_by("a/0") == [said(2, "a/0", "B")]


def test_an_alert_keeps_others_quiet_while_it_fires() -> None:
    rule = InhibitRule(
        source=(Matcher("alertname", "=", "A"),), target=(Matcher("alertname", "=", "B"),)
    )
    scene = Scene(routing(HOURLY, rules=(rule,)))
    scene.put(alert("A"), alert("B"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(60)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A"), said(12, "a/0", "B", "A")]


@pytest.mark.parametrize(
    ("muted", "active", "first"),
    [
        pytest.param((), (), 2, id="no intervals"),
        pytest.param(("night",), (), 62, id="muted"),
        pytest.param((), ("night",), 2, id="active"),
        pytest.param((), ("never",), None, id="never active"),
        pytest.param(("night",), ("night",), None, id="active only when muted"),
        pytest.param((), ("never", "night"), 2, id="active in one of two"),
    ],
)
def test_a_route_is_quiet_in_its_muted_and_outside_its_active_intervals(
    muted: tuple[str, ...], active: tuple[str, ...], first: float | None
) -> None:
    route = replace(HOURLY, mute_time_intervals=muted, active_time_intervals=active)
    scene = Scene(routing(route, intervals={"night": NIGHT, "never": Interval()}))
    scene.put(alert("A"))
    scene.until(200)
    assert scene.heard_by("a/0") == ([said(first, "a/0", "A")] if first else [])


# --- what the caller decides


def test_what_is_held_is_not_over_until_it_is_let_go() -> None:
    scene = Scene(routing(BY_INCIDENT))
    scene.held = lambda group: group.labels["incident"] == "i-1"
    scene.put(alert("A", incident="i-1"), alert("B", incident="i-2"))
    scene.until(5)
    scene.put(alert("A", 0, 5, incident="i-1"), alert("B", 0, 5, incident="i-2"))
    scene.until(45)
    assert scene.heard_by("a/0")[2:] == [said(12, "a/0", "", "B")]
    scene.held = lambda _: False
    scene.dispatcher.wake(lambda group: group.labels["incident"] == "i-1")
    scene.flush()
    assert scene.heard_by("a/0")[3:] == [said(45, "a/0", "", "A")]


def test_a_held_group_in_which_something_fires_speaks_as_ever(scene: Scene) -> None:
    scene.held = lambda _: True
    scene.put(alert("A"), alert("B"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(20)
    assert scene.heard_by("a/0") == [said(2, "a/0", "AB"), said(12, "a/0", "B", "A")]


def test_an_alert_that_comes_back_in_another_incident_is_over_in_the_first() -> None:
    scene = Scene(routing(BY_INCIDENT))
    scene.put(alert("A", incident="i-1"))
    scene.until(5)
    scene.put(alert("A", 0, 5, incident="i-1"))
    scene.put(alert("A", 5, incident="i-2"))
    scene.until(20)
    assert scene.heard_by("a/0") == [
        said(2, "a/0", "A"),
        said(7, "a/0", "A"),
        said(12, "a/0", "", "A"),
    ]
    over = scene.dues[-1][1].alerts[0][0]
    assert (over.incident, over.ends_at) == ("i-1", at(5))
    scene.until(40)
    assert [group.labels["incident"] for group in scene.dispatcher.groups] == ["i-2"]


# --- another configuration, another time


def test_after_a_reload_groups_that_are_still_there_keep_their_time(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(4)
    scene.put(alert("B", 4))
    pager = Route(receiver="b", matchers=(Matcher("alertname", "=", "B"),), group_wait=timedelta(3))
    both = {"a": EARS, "b": (Ear(channel="b"),)}
    scene.dispatcher.use(
        routing(replace(HOURLY, routes=(replace(pager, continues=True),)), ears=both), scene.now
    )
    scene.until(30)
    assert scene.heard_by("a/0") == [said(2, "a/0", "A")]
    assert scene.heard_by("b") == []
    groups = {group.receiver: group for group in scene.dispatcher.groups}
    assert groups["a"].members == (alert("A").fingerprint,)
    assert groups["b"].members == (alert("B").fingerprint,)


def test_a_channel_that_is_new_hears_what_stands(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(4)
    scene.dispatcher.use(routing(HOURLY, ears={"a": (*EARS, Ear(channel="new"))}), scene.now)
    scene.until(30)
    assert scene.said[2:] == [said(12, "new", "A")]


def test_a_group_whose_route_is_gone_is_forgotten(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(4)
    scene.dispatcher.use(routing(replace(HOURLY, receiver="b")), scene.now)
    scene.flush()
    assert list(scene.disk.groups) == [("{}:{}", "b")]


def test_ticks_that_were_missed_are_one_tick(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(2)
    scene.now = at(100)
    scene.put(alert("B", 50))
    scene.until(109)
    assert scene.heard_by("a/0")[1:] == [said(100, "a/0", "AB")]
    assert scene.dispatcher.due_at() == at(110)


def test_a_group_that_never_spoke_speaks_at_once_when_the_daemon_comes_back(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.now = at(1000)
    scene.die_and_come_back()
    scene.flush()
    assert scene.heard_by("a/0") == [said(1000, "a/0", "A")]


def test_a_clock_that_is_set_back_does_not_keep_groups_waiting(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(2)
    scene.now = at(-3600)
    scene.put(alert("B", -3600))
    assert scene.heard_by("a/0")[1:] == [said(-3600, "a/0", "AB")]
    scene.until(-3595)
    assert scene.dispatcher.due_at() == at(-3590)


def test_a_daemon_whose_clock_was_ahead_does_not_keep_groups_waiting(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(2)
    scene.now = at(-3600)
    scene.die_and_come_back()
    assert scene.dispatcher.due_at() == at(-3600)


# --- memory


def test_a_group_that_only_ticks_on_is_not_written_again(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(12)
    scene.dispatcher.flush(at(22))
    changes = scene.dispatcher.take_changes()
    assert (changes.groups_put, changes.told_put, changes.alerts_put) == ((), (), ())


def test_what_is_over_and_told_is_forgotten_after_a_while(scene: Scene) -> None:
    scene.put(alert("A"))
    scene.until(5)
    scene.put(alert("A", 0, 5))
    scene.until(1800)
    assert len(scene.disk.alerts) == 1
    scene.until(1840)
    assert scene.disk.alerts == {}
    assert len(scene.disk.told) == 2
    scene.until(121 * 3600)
    assert scene.disk.told == {}


def test_what_is_told_of_a_group_that_stands_is_not_forgotten(scene: Scene) -> None:
    scene.dispatcher.use(routing(replace(HOURLY, repeat_interval=timedelta(days=30))), scene.now)
    scene.put(alert("A"))
    scene.until(2)
    scene.now = at(200 * 3600)
    scene.flush()
    assert len(scene.disk.told) == 2
    assert len(scene.said) == 2


# --- who hears, and what stands


def test_the_audience_of_an_alert_are_the_channels_that_hear_of_it_now(scene: Scene) -> None:
    first, second = alert("A", g="1"), alert("B", g="2")
    scene.put(first, second)
    heard = list(scene.dispatcher.audience({first.fingerprint}, scene.now))
    assert [(due.channel, due.group_key) for due in heard] == [
        ("a/0", '{}:{g="1"}'),
        ("a/1", '{}:{g="1"}'),
    ]
    scene.hush(silence(1, 0, 30, Matcher("alertname", "=", "A")))
    assert list(scene.dispatcher.audience({first.fingerprint}, scene.now)) == []


def test_the_board_shows_what_stands_and_what_keeps_it_quiet() -> None:
    rule = InhibitRule(
        source=(Matcher("alertname", "=", "A"),), target=(Matcher("alertname", "=", "B"),)
    )
    route = replace(HOURLY, mute_time_intervals=("night",))
    scene = Scene(routing(route, (rule,), {"night": NIGHT}))
    hush = silence(1, 0, 30, Matcher("alertname", "=", "C"))
    scene.hush(hush)
    scene.put(alert("C"), alert("B", g="1"), alert("A"), alert("D", -9, -1))
    board = scene.dispatcher.board(scene.now, receivers=["a"], config="", started_at=at(0))

    by_name = {one.alert.labels["alertname"]: one for one in board.alerts}
    assert sorted(by_name) == ["A", "B", "C"]
    assert [one.alert.fingerprint for one in board.alerts] == sorted(
        one.alert.fingerprint for one in board.alerts
    )
    assert by_name["A"].receivers == ("a",)
    assert by_name["B"].inhibited_by == (alert("A").fingerprint,)
    assert by_name["C"].silenced_by == ("s1",)
    assert not by_name["A"].is_suppressed
    assert [(one.labels, one.receiver, one.muted_by) for one in board.groups] == [
        ({}, "a", ("night",)),
        ({"g": "1"}, "a", ("night",)),
    ]
    assert board.groups[0].alerts == (by_name["A"], by_name["C"])
    assert board.silences == (hush,)
