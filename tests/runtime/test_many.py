"""Many things at once, and what people are told of them."""

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from sentinel.core.model.errors import Transient
from sentinel.core.model.intent import Mode
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan
from tests.runtime.world import crash_loop


@pytest.fixture
def docker() -> FakeDocker:
    return FakeDocker(FakeClock())


def daemon(tmp_path: Path, docker: FakeDocker, count: int, mode: Mode = Mode.ACT) -> Daemon:
    for number in range(count):
        docker.add(f"t1-{number:02}")
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(mode))
    house.run(5)
    return house


def held_by(house: Daemon, name: str) -> list[str]:
    return [held["guard"] for held in house.target(name)["held"]]


def test_what_fails_together_is_held_and_a_person_is_called(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, 20)
    for name in docker.boxes:
        docker.die(name)
    house.run(10 * 60, step=20)

    assert docker.done == []
    assert held_by(house, "t1-07")[0] == "many_failing"
    incidents = house.memory.incidents.open()
    assert len(incidents) == 20
    assert all(incident.person_called_at for incident in incidents)
    assert len([n for n in house.receiver.took if n.kind == "alert"]) == 20


def test_what_fails_together_is_held_after_a_restart_of_the_daemon_too(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, 3)
    for name in docker.boxes:
        docker.die(name)
    house.run(5)
    house.again()
    house.run(20 * 60, step=5)

    assert docker.done == []


def test_two_that_fail_together_are_put_right_one_after_the_other(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, 4)
    docker.die("t1-00")
    docker.die("t1-01")
    house.run(1)
    assert len(docker.done) == 1
    assert held_by(house, "t1-01")[0] == "budget_host"
    house.run(120)

    assert docker.done == ["start t1-00", "start t1-01"]


def test_the_last_one_left_failing_is_put_right(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker, 3, Mode.WATCH)
    docker.die("t1-00")
    house.run(200, step=5)
    docker.die("t1-01")
    house.run(200, step=5)
    docker.die("t1-02")
    house.run(10)

    assert "many_failing" not in held_by(house, "t1-02")


def test_an_hour_without_the_receiver_loses_and_repeats_nothing(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, 2)
    house.receiver.fails = Transient("connection refused")
    docker.die("t1-00")
    house.run(3600, step=10)
    house.again()
    house.receiver.fails = None
    house.run(6 * 60, step=5)

    assert house.told("t1-00") == ["alert", "action", "action", "resolved"]


def test_a_remedy_that_failed_is_not_called_resolved_before_it_serves(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, 1)
    docker.boxes["t1-00"].answers = False
    docker.die("t1-00")
    house.run(30 * 60, step=5)

    assert house.memory.incidents.open()
    assert "resolved" not in [n.kind for n in house.receiver.took]
    docker.boxes["t1-00"].answers = True
    house.run(3 * 60, step=5)
    assert house.memory.incidents.open() == []


def sentences(house: Daemon) -> list[str]:
    rows = house.memory.db.execute("SELECT because FROM record").fetchall()
    found = [str(row["because"]) for row in rows]
    found += [notice.headline for notice in house.receiver.took]
    assert house.shown is not None
    found += [str(target["because"]) for target in house.shown.status["targets"]]
    return found + [str(problem) for problem in house.shown.status["problems"]]


@pytest.mark.parametrize("story", ["crash", "loop", "hopeless", "unproved", "lost", "stopped"])
@pytest.mark.parametrize("mode", list(Mode))
def test_every_sentence_can_be_read_at_three_in_the_morning(
    tmp_path: Path, docker: FakeDocker, story: str, mode: Mode
) -> None:
    house = daemon(tmp_path, docker, 2, mode)
    match story:
        case "crash":
            docker.die("t1-00")
        case "loop":
            crash_loop(docker, "t1-00", times=3)
        case "hopeless":
            docker.die("t1-00", code=1, log="OSError: [Errno 98] Address already in use")
        case "unproved":
            docker.boxes["t1-00"].answers = False
            docker.die("t1-00")
        case "lost":
            docker.lost = True
        case _:
            docker.stop_by_person("t1-00")
    house.run(35 * 60, step=30, deaf=story == "loop")

    for sentence in sentences(house):
        assert sentence.strip()
        assert not {"None", "Outcome.", "State.", "datetime", "{", "()"} & set(sentence.split())
        assert "None" not in sentence
        assert "  " not in sentence


def test_a_target_keeps_its_state_in_one_line_of_history(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, 1)
    docker.die("t1-00")
    house.run(5 * 60, step=1)

    rows = house.memory.db.execute("SELECT event, because, target, facts FROM record").fetchall()
    lines = [tuple(row) for row in rows if row["event"] == "target_state_changed"]
    assert all(line != following for line, following in pairwise(lines))
    assert len(lines) < 12
    assert house.plan.verify_within > timedelta(0)
