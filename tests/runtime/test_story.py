"""The main story, over a fake world: see, tell, decide, act, verify, tell again."""

from datetime import timedelta
from pathlib import Path

import pytest

from sentinel.core.model.intent import Mode
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    docker.add("t1-b")
    return docker


def daemon(tmp_path: Path, docker: FakeDocker, mode: Mode = Mode.ACT) -> Daemon:
    found = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(mode))
    found.run(5)
    return found


def test_a_dead_engine_is_told_restarted_verified_and_told_again(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker)
    assert house.state("t1-a") == "idle"

    docker.die("t1-a", code=0)
    house.turn()
    first = house.receiver.took[0]
    assert (first.kind, first.alerts[0].labels["alertname"]) == ("alert", "VllmContainerExited")
    assert first.incident is not None
    assert first.incident["diagnosis"]["cause"] == "engine_died"
    assert docker.done == ["start t1-a"]

    house.run(60)
    assert house.state("t1-a") == "idle"
    assert docker.done == ["start t1-a"]
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.resolved_at is not None
    assert [n.kind for n in house.receiver.took] == ["alert", "action", "action", "resolved"]
    intents = house.memory.journal.of_incident(1)
    assert [i.outcome for i in intents] == ["verified"]
    counted = house.metrics.exposition().decode()
    assert 'sentinel_notifications_total{integration="webhook"} 4.0' in counted
    assert 'sentinel_actions_total{action="restart",result="verified"} 1.0' in counted
    assert "sentinel_tick_duration_seconds_count" in counted


def test_in_watch_mode_nothing_is_touched_and_the_message_says_what_would_be(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.WATCH)

    docker.die("t1-a", code=0)
    house.run(30)

    assert docker.done == []
    assert house.state("t1-a") == "failed"
    held = [n for n in house.receiver.took if n.kind == "held"]
    assert len(held) == 1
    assert held[0].decision is not None
    assert (held[0].decision.action, held[0].decision.would) == ("restart", True)
    assert held[0].decision.guard == "mode"


@pytest.mark.parametrize("heard", [True, False], ids=["witnessed", "by Docker's own record"])
def test_a_stop_by_a_person_is_left_alone(tmp_path: Path, docker: FakeDocker, heard: bool) -> None:
    house = daemon(tmp_path, docker)

    docker.stop_by_person("t1-a", heard=heard)
    house.run(60)

    assert docker.done == []
    assert house.state("t1-a") == "stopped"
    assert "stopped by a person" in house.target("t1-a")["because"]
    assert house.receiver.took == []


def test_a_loading_model_is_never_restarted(tmp_path: Path, docker: FakeDocker) -> None:
    slow = docker.add("t1-slow", loads_for=3600 * 3)
    house = daemon(tmp_path, docker)
    assert slow.seen.status == "running"

    house.run(1800, step=10)

    assert house.state("t1-slow") == "starting"
    assert docker.done == []


def test_lost_events_change_when_and_never_whether(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker)

    docker.die("t1-a", code=0)
    house.run(60, deaf=True)

    assert docker.done == ["start t1-a"]
    assert house.state("t1-a") == "idle"


def test_a_second_death_within_the_cooldown_is_held_and_says_until_when(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker)
    docker.die("t1-a")
    house.run(60)

    docker.die("t1-a")
    house.run(30)
    assert docker.done == ["start t1-a"]
    assert house.target("t1-a")["held"][0]["guard"] == "cooldown"

    house.run(15 * 60, step=5)
    assert docker.done == ["start t1-a"] * 2


def test_docker_down_for_a_minute_says_nothing_of_targets(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker)

    docker.lost = True
    house.run(60)
    assert house.state("t1-a") == "idle"
    names = {a.labels["alertname"] for n in house.receiver.took for a in n.alerts}
    assert names == {"DockerUnreachable"}

    docker.lost = False
    house.run(30)
    assert house.receiver.took[-1].kind == "resolved"
    assert house.shown is not None
    assert house.shown.status["problems"] == []


def test_a_restart_that_does_not_help_calls_a_person(tmp_path: Path, docker: FakeDocker) -> None:
    docker.boxes["t1-a"].answers = False
    house = daemon(tmp_path, docker)

    docker.die("t1-a")
    house.run(20 * 60, step=5)

    intents = house.memory.journal.of_incident(1)
    assert [i.outcome for i in intents] == ["failed"]
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.person_called_at is not None
    assert house.plan.verify_within == timedelta(minutes=15)


def test_approval_is_asked_for_once_and_obeyed_once(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker, Mode.APPROVE)
    docker.die("t1-a")
    house.run(10)
    assert docker.done == []
    assert [n.kind for n in house.receiver.took] == ["alert", "approval"]

    approved = house.memory.journal.approve(1, docker.clock.now())
    assert approved is not None
    assert house.memory.journal.approve(1, docker.clock.now()) is None
    house.run(60)
    assert docker.done == ["start t1-a"]
    assert house.state("t1-a") == "idle"
