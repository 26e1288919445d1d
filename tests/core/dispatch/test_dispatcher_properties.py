"""What holds of the lifecycle whatever happens."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.dispatcher import Due, Ear
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.route import Route, routes_of
from sentinel.core.model.labels import Matcher
from tests.core.dispatch.scene import ROUTE, Scene, alert, at, routing, silence

TREE = replace(
    ROUTE,
    repeat_interval=timedelta(seconds=45),
    routes=(
        replace(
            ROUTE,
            receiver="b",
            matchers=(Matcher("alertname", "=~", "A|B"),),
            group_by=frozenset({"incident"}),
            group_wait=timedelta(),
            group_interval=timedelta(seconds=7),
            continues=True,
        ),
        replace(ROUTE, receiver="a", matchers=(Matcher("g", "=", "1"),), groups_by_all=True),
    ),
)
RULE = InhibitRule(source=(Matcher("g", "=", "2"),), target=(Matcher("g", "=", "1"),))
EARS = {
    "a": (Ear(channel="a/0"), Ear(channel="a/1", send_resolved=False)),
    "b": (Ear(channel="b"),),
}
ROUTING = routing(TREE, (RULE,), ears=EARS)


@dataclass(frozen=True)
class Step:
    after: int
    do: Callable[[Scene], None]
    text: str

    def __repr__(self) -> str:
        return f"+{self.after}: {self.text}"


@st.composite
def steps(draw: st.DrawFn, *, only_alerts: bool = False) -> Step:
    after = draw(st.integers(0, 25))
    name, g = draw(st.sampled_from("ABC")), draw(st.sampled_from("12"))
    kind = draw(st.sampled_from(["fires", "fires", "times out", "ends", "other incident"]))
    lasts = draw(st.integers(1, 40))
    if not only_alerts and draw(st.integers(0, 4)) == 0:
        kind = draw(st.sampled_from(["hush", "wake", "reload"]))

    def do(scene: Scene) -> None:
        now = (scene.now - at(0)).total_seconds()
        known = scene.dispatcher.alerts.get(alert(name, g=g).fingerprint)
        is_known = known is not None and not known.is_resolved(scene.now)
        starts = (known.starts_at - at(0)).total_seconds() if known and is_known else now
        incident = "i-2" if kind == "other incident" else known.incident if known else "i-1"
        match kind:
            case "hush":
                scene.hush(silence(lasts % 3, now, now + lasts, Matcher("alertname", "=", name)))
            case "wake":
                scene.dispatcher.wake(lambda group: group.receiver == "a")
            case "reload":
                scene.dispatcher.use(scene.routing, scene.now)
            case "ends":
                scene.put(alert(name, min(starts, now), now, incident=incident, g=g))
            case _:
                ends = now + lasts if kind == "times out" else None
                scene.put(alert(name, starts, ends, incident=incident, g=g))
        scene.flush()

    return Step(after, do, f"{kind} {name}{g} {lasts}")


def play(story: list[Step], *, dies: Callable[[int], bool] = lambda _: False) -> Scene:
    scene, second = Scene(ROUTING), 0.0
    for number, step in enumerate(story):
        second += step.after
        scene.until(second)
        if dies(number):
            scene.die_and_come_back()
        step.do(scene)
    scene.until(second + 100)
    return scene


def told(scene: Scene) -> set[tuple[datetime, str, str, object]]:
    """Groups that tick together come in any order."""
    return {(at, due.channel, due.group_key, _content(due)) for at, due in scene.dues}


def _content(due: Due) -> object:
    alerts = tuple((a.fingerprint, a.starts_at, a.ends_at, over) for a, over in due.alerts)
    return alerts, due.is_repeat, due.new


@settings(max_examples=150, deadline=None)
@given(st.lists(steps(), max_size=12), st.sets(st.integers(0, 11)))
def test_a_daemon_that_dies_between_any_two_events_says_the_same(
    story: list[Step], deaths: set[int]
) -> None:
    lived, died = play(story), play(story, dies=deaths.__contains__)
    assert told(died) == told(lived)
    assert len(died.dues) == len(lived.dues)


@settings(max_examples=100, deadline=None)
@given(st.lists(steps(), max_size=12))
def test_nobody_is_told_the_same_twice_within_the_repeat_interval(story: list[Step]) -> None:
    last: dict[tuple[str, str], tuple[datetime, object]] = {}
    for now, due in play(story).dues:
        group = due.channel, due.group_key
        content = frozenset((a.fingerprint, a.starts_at, over) for a, over in due.alerts)
        before, said = last.get(group, (now, None))
        repeated = content == said and not due.new
        assert not repeated or now - before > timedelta(seconds=45)
        last[group] = now, content


@settings(max_examples=100, deadline=None)
@given(st.lists(steps(only_alerts=True), max_size=12))
def test_what_fires_and_is_not_kept_quiet_is_told_before_the_next_tick_is_over(
    story: list[Step],
) -> None:
    scene = Scene(replace(ROUTING, inhibit_rules=()))
    second = 0.0
    for step in story:
        second += step.after
        scene.until(second)
        step.do(scene)
        # Each stretch in which it fires is told in every group, or is over within the wait.
        scene.until(second + 10)
        second += 10
        for one in scene.dispatcher.alerts.values():
            if not one.is_resolved(scene.now):
                assert _groups(TREE, one) <= _told_as_firing(scene, one)


def _groups(root: Route, one: Alert) -> set[str]:
    return {place.route.receiver for place in routes_of(root, one.matched)}


def _told_as_firing(scene: Scene, one: Alert) -> set[str]:
    keys = {
        group.key: group.receiver
        for group in scene.dispatcher.groups
        if one.fingerprint in group.members
    }
    return {
        keys[told.group_key]
        for told in scene.dispatcher.told
        if told.group_key in keys and one.fingerprint in told.firing
    }


@settings(max_examples=100, deadline=None)
@given(st.lists(steps(), max_size=12))
def test_the_disk_holds_all_that_is_in_memory(story: list[Step]) -> None:
    scene = play(story)
    kept = scene.disk
    assert kept.alerts == scene.dispatcher.alerts
    assert set(kept.told.values()) == set(scene.dispatcher.told)
    in_memory = {group.id: group for group in scene.dispatcher.groups}
    assert {i: set(g.members) for i, g in kept.groups.items()} == {
        i: set(g.members) for i, g in in_memory.items()
    }
