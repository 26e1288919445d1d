"""What people are told, when and how often: incidents, flapping, silences, alerts of others."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.route import Route
from sentinel.core.model.command import (
    Acknowledge,
    Command,
    ExpireSilence,
    PostAlerts,
    PostedAlert,
    SetSilence,
)
from sentinel.core.model.errors import Permanent
from sentinel.core.model.intent import Mode
from sentinel.core.model.labels import Matcher
from sentinel.runtime.obey import Obedience
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan
from tests.runtime.world import started_by_person

ROUTE = Route(receiver="test")


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    docker.add("t1-b")
    return docker


@pytest.fixture
def house(tmp_path: Path, docker: FakeDocker) -> Iterator[Daemon]:
    made = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(Mode.WATCH))
    made.run(5)
    yield made
    made.memory.close()


def obey(house: Daemon, command: Command) -> dict[str, object]:
    parts = house.loop.parts
    obedience = Obedience(
        house.clock,
        house.memory,
        parts.history,
        parts.watch,
        parts.decider,
        parts.casebook,
        parts.dispatch,
        lambda _by: {},
    )
    answer = obedience.obey(command)
    assert isinstance(answer, dict)
    return answer


def post(house: Daemon, *, ends: float | None = None, **labels: str) -> None:
    ends_at = None if ends is None else house.clock.now() + timedelta(seconds=ends)
    posted = PostedAlert(labels=labels, annotations={"summary": "hot"}, ends_at=ends_at)
    obey(house, PostAlerts(by="prometheus", alerts=(posted,)))


def silence(house: Daemon, *matchers: Matcher, hours: float = 2) -> str:
    now = house.clock.now()
    wanted = SetSilence(
        by="ada",
        matchers=matchers,
        starts_at=now,
        ends_at=now + timedelta(hours=hours),
        created_by="ada",
        comment="known",
    )
    return str(obey(house, wanted)["silenceID"])


def kinds(house: Daemon) -> list[str]:
    return [notice.kind for notice in house.receiver.took]


def alert_names(house: Daemon, number: int) -> list[tuple[str, str]]:
    told = house.receiver.took[number].alerts
    return sorted((alert.labels["alertname"], alert.status) for alert in told)


# --- repeats and acknowledgement


def test_an_incident_that_goes_on_is_told_again_every_four_hours(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.die("t1-a")
    house.turn()
    house.run(4 * 3600 + 120, step=60)

    told = [notice for notice in house.receiver.took if notice.kind == "alert"]
    assert len(told) == 2
    assert told[1].headline.startswith(
        "still so since 2030-01-01 12:00:05 UTC: vLLM container t1-a"
    )


def test_an_incident_that_somebody_has_acknowledged_is_not_told_again(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.die("t1-a")
    house.run(5)
    obey(house, Acknowledge(by="ada", incident="i-000001"))
    house.run(5 * 3600, step=60)

    assert kinds(house).count("alert") == 1


def test_a_restart_of_the_daemon_goes_on_in_the_middle_of_a_wait(
    house: Daemon, docker: FakeDocker
) -> None:
    slow = replace(ROUTE, group_wait=timedelta(seconds=40), group_by=frozenset({"alertname"}))
    house.plan = replace(house.plan, route=slow)
    house.loop.use(house.plan, house.book)
    docker.die("t1-a")
    house.run(20)
    assert "alert" not in kinds(house)
    house.again()
    house.run(15)
    assert "alert" not in kinds(house)
    house.run(10)

    (told,) = (notice for notice in house.receiver.took if notice.kind == "alert")
    assert told.group_labels == {"alertname": "VllmContainerExited"}
    house.again()
    house.run(60)
    assert kinds(house).count("alert") == 1


# --- flapping


def test_an_alert_that_comes_and_goes_is_told_less_and_less(
    house: Daemon, docker: FakeDocker
) -> None:
    for _ in range(9):
        docker.die("t1-a")
        house.run(20)
        started_by_person(docker, "t1-a")
        house.run(40)

    assert kinds(house).count("alert") == 4
    assert kinds(house).count("resolved") == 3
    assert 'sentinel_alert_flaps_total{alertname="VllmContainerExited"} 6.0' in exposed(house)
    house.run(16 * 60, step=10)
    assert kinds(house).count("resolved") == 4


def test_a_flap_that_is_held_open_is_held_over_a_restart_of_the_daemon(
    house: Daemon, docker: FakeDocker
) -> None:
    for _ in range(4):
        docker.die("t1-a")
        house.run(20)
        started_by_person(docker, "t1-a")
        house.run(40)
    before = kinds(house).count("resolved")
    house.again()
    house.run(30)
    assert kinds(house).count("resolved") == before
    house.run(120)
    assert kinds(house).count("resolved") == before + 1


def exposed(house: Daemon) -> str:
    return house.metrics.exposition(()).decode()


# --- silences, inhibition


def test_what_is_silenced_is_not_told_and_then_it_is(house: Daemon, docker: FakeDocker) -> None:
    named = silence(house, Matcher("target", "=", "t1-a"))
    docker.die("t1-a")
    house.run(30)
    assert house.receiver.took == []
    assert house.shown is not None
    assert [a["silenced"] for a in house.shown.status["alerts"]] == [True]

    house.again()
    house.run(10)
    assert house.receiver.took == []
    obey(house, ExpireSilence(by="ada", id=named))
    house.run(10)
    assert kinds(house) == ["alert"]


def test_an_incident_can_be_silenced_by_its_id(house: Daemon, docker: FakeDocker) -> None:
    silence(house, Matcher("incident", "=", "i-000001"))
    docker.die("t1-a")
    house.run(30)
    docker.die("t1-b")
    house.run(30)

    assert [n.facts["target"] for n in house.receiver.took if n.kind == "alert"] == ["t1-b"]


def test_an_inhibited_alert_keeps_quiet_while_its_cause_fires(
    house: Daemon, docker: FakeDocker
) -> None:
    rule = InhibitRule(
        source=(Matcher("alertname", "=", "HostDown"),),
        target=(Matcher("alertname", "=", "VllmContainerExited"),),
        equal=("host",),
    )
    house.plan = replace(house.plan, inhibit_rules=(rule,))
    house.loop.use(house.plan, house.book)
    post(house, alertname="HostDown", host="gpu1", severity="critical", ends=60)
    house.run(2)
    docker.die("t1-a")
    house.run(20)
    assert [alert_names(house, n) for n in range(len(house.receiver.took))] == [
        [("HostDown", "firing")]
    ]
    house.run(60)
    assert [n.facts.get("target") for n in house.receiver.took if n.kind == "alert"] == [
        None,
        "t1-a",
    ]


# --- alerts of others


def test_a_posted_alert_joins_the_incident_of_its_target_and_ends_with_it(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.die("t1-a")
    house.run(2)
    post(house, alertname="Slow", instance=f"{instance(house)}", severity="warning")
    house.run(10)
    assert alert_names(house, -1) == [("Slow", "firing"), ("VllmContainerExited", "firing")]
    found = house.memory.incidents.open()
    assert [incident.subject.name for incident in found] == ["t1-a"]

    post(house, alertname="Slow", instance=f"{instance(house)}", severity="warning", ends=-1)
    started_by_person(docker, "t1-a")
    house.run(120)
    assert kinds(house)[-1] == "resolved"
    ended = {
        pair for number in range(len(house.receiver.took)) for pair in alert_names(house, number)
    }
    assert {("Slow", "resolved"), ("VllmContainerExited", "resolved")} <= ended
    assert house.memory.incidents.open() == []


def instance(house: Daemon) -> str:
    endpoint = house.loop.parts.watch.targets["t1-a"].endpoint
    assert endpoint is not None
    return endpoint.instance


def test_a_posted_alert_outlives_the_daemon_and_times_out(house: Daemon) -> None:
    post(house, alertname="Hot", target="t1-a", severity="critical")
    house.again()
    house.run(10)
    assert kinds(house) == ["alert"]
    house.run(4 * 60, step=5)
    assert kinds(house) == ["alert"]
    house.again()
    house.run(90)
    assert kinds(house) == ["alert", "resolved"]
    assert house.memory.incidents.open() == []


def test_a_posted_alert_without_severity_is_told_and_opens_no_incident(house: Daemon) -> None:
    post(house, alertname="Hot", node="n1", ends=20)
    house.run(3)
    (notice,) = house.receiver.took
    assert (notice.incident, notice.group_labels) == (None, {})
    assert notice.alerts[0].labels == {"alertname": "Hot", "node": "n1"}
    house.run(40)
    assert kinds(house) == ["alert", "resolved"]


def test_a_posted_alert_reaches_no_ladder(tmp_path: Path, docker: FakeDocker) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(Mode.ACT))
    house.run(5)
    post(house, alertname="VllmEngineHung", target="t1-a", severity="critical")
    house.run(30)
    assert docker.done == []
    assert kinds(house) == ["alert"]


def test_a_posted_alert_that_is_accepted_needs_our_own_witnesses(
    tmp_path: Path, docker: FakeDocker
) -> None:
    wanted = plan(Mode.ACT, accept_external=True)
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=wanted)
    house.run(5)
    post(house, alertname="VllmEngineHung", target="t1-a", severity="critical", ends=3600)
    house.run(30)
    assert docker.done == []


def test_what_another_host_calls_by_the_name_of_our_target_is_not_ours(house: Daemon) -> None:
    post(house, alertname="Hot", target="t1-a", host="gpu2", severity="critical", ends=60)
    house.run(2)
    (incident,) = house.memory.incidents.open()
    assert (incident.subject.kind, incident.subject.name) == ("host", "gpu2")


def test_of_a_posted_list_what_is_valid_is_kept(house: Daemon) -> None:
    good = PostedAlert(labels={"alertname": "Good", "severity": "critical"})
    bad = PostedAlert(labels={})
    with pytest.raises(Permanent) as refused:
        obey(house, PostAlerts(by="x", alerts=(good, bad)))
    assert refused.value.facts["status"] == 400
    house.again()
    house.run(2)
    assert alert_names(house, 0) == [("Good", "firing")]


# --- info


def test_info_opens_no_incident_and_joins_one_that_is_open(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.die("t1-a")
    house.run(2)
    post(house, alertname="Note", target="t1-a", severity="info", ends=600)
    post(house, alertname="Note", target="t1-b", severity="info", ends=600)
    house.run(8)
    (incident,) = house.memory.incidents.open()
    assert incident.severity == "critical"
    assert [n.group_labels for n in house.receiver.took if n.kind == "alert"] == [
        {"incident": "i-000001"},
        {},
        {"incident": "i-000001"},
    ]
