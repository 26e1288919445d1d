"""The wall clock jumps, two hours either way, in the middle of everything."""

from datetime import timedelta
from pathlib import Path

import pytest

from sentinel.core.model.errors import Transient
from tests.fakes import FakeDocker
from tests.runtime.house import Daemon
from tests.runtime.world import after, dead_engine

JUMPS = pytest.mark.parametrize("hours", [2, -2], ids=["forward", "back"])


def outcomes(house: Daemon) -> list[str | None]:
    rows = house.memory.db.execute("SELECT outcome FROM intent ORDER BY number")
    return [row["outcome"] for row in rows]


@JUMPS
def test_a_death_after_a_jump_is_put_right(house: Daemon, docker: FakeDocker, hours: int) -> None:
    docker.clock.jump(hours=hours)
    house.run(5)
    assert house.state("t1-a") == "idle"
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]
    assert outcomes(house) == ["verified"]
    assert house.state("t1-a") == "idle"


@JUMPS
def test_a_jump_between_the_steps_does_not_leave_it_stopped(
    house: Daemon, docker: FakeDocker, hours: int
) -> None:
    dead_engine(docker, "t1-a")
    after(docker, "stop", lambda: docker.clock.jump(hours=hours))
    house.run(12)
    docker.boxes["t1-a"].health = 200
    house.run(60)

    assert docker.done == ["stop t1-a", "start t1-a"]
    assert outcomes(house) == ["verified"]


@JUMPS
def test_a_jump_while_it_is_proved_neither_fails_nor_repeats_it(
    house: Daemon, docker: FakeDocker, hours: int
) -> None:
    docker.die("t1-a")
    house.run(5)
    docker.clock.jump(hours=hours)
    house.run(120)

    assert docker.done == ["start t1-a"]
    assert outcomes(house) == ["verified"]


@JUMPS
def test_the_time_for_the_proof_is_the_same_whatever_the_clock_says(
    house: Daemon, docker: FakeDocker, hours: int
) -> None:
    docker.boxes["t1-a"].answers = False
    docker.die("t1-a")
    house.run(30)
    docker.clock.jump(hours=hours)
    house.run(13 * 60, step=5)
    assert outcomes(house) == [None]
    house.run(3 * 60, step=5)

    assert outcomes(house) == ["failed"]


@JUMPS
def test_a_jump_in_the_cooldown_never_makes_it_shorter_than_it_says(
    house: Daemon, docker: FakeDocker, hours: int
) -> None:
    docker.die("t1-a")
    house.run(60)
    docker.clock.jump(hours=hours)
    docker.die("t1-a")
    house.run(30)

    if hours < 0:
        assert docker.done == ["start t1-a"]
        assert house.target("t1-a")["held"][0]["guard"] == "cooldown"
        house.run(140 * 60, step=10)
    assert docker.done == ["start t1-a"] * 2


@JUMPS
def test_an_incident_is_resolved_soon_after_a_jump(
    house: Daemon, docker: FakeDocker, hours: int
) -> None:
    docker.die("t1-a")
    house.run(29)
    assert outcomes(house) == ["verified"]
    docker.clock.jump(hours=hours)
    house.run(30)

    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.resolved_at is not None
    assert house.receiver.took[-1].kind == "resolved"


def test_a_beat_from_the_future_hurries_nothing(tmp_path: Path, docker: FakeDocker) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    docker.lost = True
    house.run(5)  # DockerUnreachable is pending for 15 s
    house.watched_until = docker.clock.now() + timedelta(days=1)
    house.again()
    house.run(5)
    assert house.receiver.took == []
    house.run(30)

    assert {a.labels["alertname"] for n in house.receiver.took for a in n.alerts} == {
        "DockerUnreachable"
    }


@JUMPS
def test_messages_owed_over_a_jump_arrive(house: Daemon, docker: FakeDocker, hours: int) -> None:
    house.receiver.fails = Transient("refused")
    docker.die("t1-a")
    house.run(60)
    docker.clock.jump(hours=hours)
    house.receiver.fails = None
    house.run(6 * 60, step=5)

    assert house.told("t1-a") == ["alert", "action", "action", "resolved"]
