"""A person acts while Sentinel acts: the person wins, and nothing is left half done."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sentinel.core.model.command import Approve, Pause, Resume
from sentinel.core.model.container import Status
from sentinel.core.model.errors import Permanent
from sentinel.core.model.intent import Mode
from sentinel.core.policy.discover import Sieve
from sentinel.runtime.obey import Obedience
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan
from tests.runtime.world import (
    after,
    before,
    dead_engine,
    recreate,
    remove,
    rename,
    started_by_person,
    stop_of_the_loop,
    waits_for_docker,
)


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    docker.add("t1-b")
    return docker


@pytest.fixture
def house(tmp_path: Path, docker: FakeDocker) -> Iterator[Daemon]:
    stop_files = [str(tmp_path / "STOP")]
    made = Daemon(
        folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(stop_files=stop_files)
    )
    made.run(5)
    yield made
    made.memory.close()


def obey(house: Daemon, command: Approve | Pause | Resume) -> None:
    parts = house.loop.parts
    Obedience(
        house.clock,
        house.memory,
        parts.history,
        parts.watch,
        parts.decider,
        parts.casebook,
        parts.dispatch,
        lambda _by: {},
    ).obey(command)


def outcomes(house: Daemon) -> list[str | None]:
    rows = house.memory.db.execute("SELECT outcome FROM intent ORDER BY number")
    return [row["outcome"] for row in rows]


@pytest.mark.parametrize("how", ["STOP file", "pause"])
def test_what_holds_between_the_steps_is_obeyed_and_its_end_too(
    house: Daemon, docker: FakeDocker, how: str
) -> None:
    def hold() -> None:
        if how == "STOP file":
            (house.folder / "STOP").touch()
        else:
            obey(house, Pause(by="ada", target="t1-a"))

    dead_engine(docker, "t1-a")
    after(docker, "stop", hold)
    house.run(3600, step=10)

    assert docker.done == ["stop t1-a"]
    assert house.state("t1-a") == "failed"
    assert "stopped by Sentinel" in house.target("t1-a")["because"]
    guard = "stop_file" if how == "STOP file" else "paused"
    assert [held["guard"] for held in house.target("t1-a")["held"]] == [guard]

    docker.boxes["t1-a"].health = 200
    (house.folder / "STOP").unlink(missing_ok=True)
    if how == "pause":
        obey(house, Resume(by="ada", target="t1-a"))
    house.run(60)
    assert docker.done == ["stop t1-a", "start t1-a"]
    assert outcomes(house) == ["verified"]
    assert house.state("t1-a") == "idle"


def test_a_mode_lowered_before_the_first_step_calls_it_off(
    house: Daemon, docker: FakeDocker
) -> None:
    (house.folder / "STOP").touch()
    docker.die("t1-a")
    house.run(5)
    docker.boxes["t1-a"].health = 200
    house.plan = plan(Mode.WATCH)
    house.loop.use(house.plan, house.book)
    house.run(60)

    assert docker.done == []
    assert house.target("t1-a")["held"][0]["guard"] == "mode"
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.person_called_at is None


def test_a_mode_lowered_between_the_steps_does_not_leave_it_stopped(
    house: Daemon, docker: FakeDocker
) -> None:
    dead_engine(docker, "t1-a")
    after(docker, "stop", lambda: house.loop.use(plan(Mode.WATCH), house.book))
    docker.boxes["t1-a"].loads_for = 5.0
    house.run(12)
    docker.boxes["t1-a"].health = 200
    house.run(30)

    assert docker.done == ["stop t1-a", "start t1-a"]
    assert outcomes(house) == ["verified"]


def test_a_target_excluded_between_the_steps_is_started_again_and_then_let_go(
    house: Daemon, docker: FakeDocker
) -> None:
    nobody = replace(house.plan, exclude=(Sieve(name="*"),))
    dead_engine(docker, "t1-a")
    after(docker, "stop", lambda: house.loop.use(nobody, house.book))
    house.run(12)
    docker.boxes["t1-a"].health = 200
    house.run(60)

    assert docker.done == ["stop t1-a", "start t1-a"]
    assert outcomes(house) == ["verified"]
    assert house.shown is not None
    assert house.shown.status["targets"] == []
    said = house.memory.db.execute("SELECT because FROM record WHERE event = 'target_gone'")
    assert {row["because"] for row in said} == {"it is no longer among those to look after"}


def test_a_container_renamed_between_the_steps_is_started_again(
    house: Daemon, docker: FakeDocker
) -> None:
    dead_engine(docker, "t1-a")
    after(docker, "stop", lambda: rename(docker, "t1-a", "t1-z"))
    house.run(12)
    docker.boxes["t1-z"].health = 200
    house.run(60)

    assert docker.done == ["stop t1-a", "start t1-z"]
    assert outcomes(house) == ["verified"]


def test_a_container_removed_between_the_steps_calls_a_person_once(
    house: Daemon, docker: FakeDocker
) -> None:
    dead_engine(docker, "t1-a")
    after(docker, "stop", lambda: remove(docker, "t1-a"))
    house.run(60)

    assert docker.done == ["stop t1-a"]
    assert outcomes(house) == ["failed"]
    assert len([n for n in house.receiver.took if "a person is needed" in n.headline]) == 1


def test_the_new_container_of_the_same_name_is_not_touched(
    house: Daemon, docker: FakeDocker
) -> None:
    dead_engine(docker, "t1-a")
    after(docker, "stop", lambda: recreate(docker, "t1-a"))
    house.run(120)

    assert docker.done == ["stop t1-a"]
    assert outcomes(house) == ["failed"]
    assert house.state("t1-a") == "idle"


def test_a_person_who_starts_it_first_is_thanked_with_a_proof(
    house: Daemon, docker: FakeDocker
) -> None:
    before(docker, "start", lambda: started_by_person(docker, "t1-a"))
    docker.die("t1-a")
    house.run(60)

    assert docker.done == []
    assert outcomes(house) == ["verified"]


def test_a_person_who_stops_what_was_just_started_is_not_called(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.die("t1-a")
    house.run(5)
    assert docker.done == ["start t1-a"]
    docker.stop_by_person("t1-a")
    house.run(60)

    assert outcomes(house) == ["refused"]
    assert house.state("t1-a") == "stopped"
    assert docker.done == ["start t1-a"]
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.person_called_at is None
    assert incident.resolved_at is not None


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "events lost"])
def test_a_person_who_ends_a_restart_loop_is_believed(
    house: Daemon, docker: FakeDocker, heard: bool
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, restart_policy="always")
    waits_for_docker(docker, "t1-a")
    house.run(20, deaf=not heard)
    assert house.state("t1-a") == "restarting"

    stop_of_the_loop(docker, "t1-a")
    house.run(60, deaf=not heard)

    assert docker.done == []
    assert house.state("t1-a") == "stopped"
    assert "stopped by a person" in house.target("t1-a")["because"]


def test_a_stop_that_is_heard_of_before_dockers_record_of_it_is_a_persons(
    house: Daemon, docker: FakeDocker
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, restart_policy="always")
    waits_for_docker(docker, "t1-a")
    stop_of_the_loop(docker, "t1-a")
    stopped = box.seen
    box.seen = replace(stopped, status=Status.RESTARTING, manually_stopped=False)
    house.run(3)
    box.seen = stopped
    house.run(60)

    assert docker.done == []
    assert house.state("t1-a") == "stopped"
    assert "stopped by a person" in house.target("t1-a")["because"]


def test_a_loop_ended_while_sentinel_was_down_is_left_alone(
    house: Daemon, docker: FakeDocker
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, restart_policy="always")
    waits_for_docker(docker, "t1-a")
    docker.clock.advance(seconds=30)
    stop_of_the_loop(docker, "t1-a")
    house.again()
    house.run(60)

    assert docker.done == []
    assert house.state("t1-a") == "stopped"


def approving(tmp_path: Path, docker: FakeDocker) -> Daemon:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(Mode.APPROVE))
    house.run(5)
    return house


def test_approving_twice_acts_once(tmp_path: Path, docker: FakeDocker) -> None:
    house = approving(tmp_path, docker)
    docker.die("t1-a")
    house.run(5)

    obey(house, Approve(by="ada", intent="n-000001"))
    with pytest.raises(Permanent, match="already under way"):
        obey(house, Approve(by="bob", intent="n-000001"))
    house.run(60)

    assert docker.done == ["start t1-a"]
    with pytest.raises(Permanent, match="already verified"):
        obey(house, Approve(by="bob", intent="n-000001"))


def test_a_stop_by_a_person_before_our_stop_is_left_as_it_is(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = approving(tmp_path, docker)
    dead_engine(docker, "t1-a")
    house.run(15)
    obey(house, Approve(by="ada", intent="n-000001"))
    docker.stop_by_person("t1-a")
    house.run(60)

    assert docker.done == []
    assert outcomes(house) == ["refused"]
    assert house.state("t1-a") == "stopped"


def test_a_proposal_is_withdrawn_when_a_person_has_started_it(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = approving(tmp_path, docker)
    docker.die("t1-a")
    house.run(5)
    started_by_person(docker, "t1-a")
    house.run(60)

    assert outcomes(house) == ["refused"]
    assert house.shown is not None
    assert house.shown.status["approvals"] == []
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert (incident.person_called_at, incident.resolved_at is not None) == (None, True)


def test_a_proposal_is_withdrawn_when_it_heals_by_itself(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = approving(tmp_path, docker)
    dead_engine(docker, "t1-a")
    house.run(15)
    assert house.shown is not None
    assert len(house.shown.status["approvals"]) == 1
    docker.boxes["t1-a"].health = 200
    house.run(60)

    assert outcomes(house) == ["refused"]
    assert docker.done == []


def test_a_proposal_outlives_the_daemon_and_can_still_be_agreed_to(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = approving(tmp_path, docker)
    docker.die("t1-a")
    house.run(5)
    house.again()
    house.run(5)
    obey(house, Approve(by="ada", intent="n-000001"))
    house.again()
    house.run(60)

    assert docker.done == ["start t1-a"]
    assert outcomes(house) == ["verified"]
    assert [n.kind for n in house.receiver.took].count("approval") == 1
