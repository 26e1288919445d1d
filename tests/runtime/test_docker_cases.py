"""What Docker does by itself, what it forgets to say, and what it says twice."""

from dataclasses import replace
from typing import Any

import pytest

from sentinel.core.model import series_names as series
from sentinel.core.model.container import Container, Status
from sentinel.core.model.errors import Transient
from tests.fakes import FakeClock, FakeContainer, FakeDocker
from tests.runtime.house import Daemon
from tests.runtime.world import (
    crash_loop,
    recreate,
    remove,
    rename,
    started_by_docker,
    waits_for_docker,
)

HEARING = pytest.mark.parametrize("deaf", [False, True], ids=["heard", "events lost"])


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    docker.add("t1-b")
    return docker


def always(docker: FakeDocker, name: str = "t1-a", policy: str = "always") -> None:
    box = docker.boxes[name]
    box.seen = replace(box.seen, restart_policy=policy)


def counted(house: Daemon, name: str, target: str = "t1-a", **labels: str) -> float:
    wanted = {"target": target, **labels}
    counters = house.memory.counters
    return sum(
        value
        for (found, have), value in zip(
            counters.frame(target), counters.values(target), strict=True
        )
        if found == name and wanted.items() <= have.items()
    )


@HEARING
def test_every_restart_of_dockers_between_two_looks_is_counted(
    house: Daemon, docker: FakeDocker, deaf: bool
) -> None:
    always(docker)
    crash_loop(docker, "t1-a", times=4)
    house.run(40, deaf=deaf)

    assert counted(house, series.CONTAINER_RESTARTS, by="docker") == 4
    assert counted(house, series.CONTAINER_EXITS) == 4


@HEARING
def test_dockers_own_restarts_spend_the_budget(
    house: Daemon, docker: FakeDocker, deaf: bool
) -> None:
    always(docker)
    crash_loop(docker, "t1-a", times=3)
    house.run(40, deaf=deaf)
    always(docker, policy="no")
    docker.die("t1-a")
    house.run(40)

    assert docker.done == []
    held = {held["guard"] for held in house.target("t1-a")["held"]}
    assert "budget_target" in held


@HEARING
def test_a_crash_that_docker_put_right_before_anyone_looked_is_told(
    house: Daemon, docker: FakeDocker, deaf: bool
) -> None:
    always(docker)
    docker.boxes["t1-a"].loads_for = 60
    crash_loop(docker, "t1-a", times=1)
    house.run(30, deaf=deaf)

    names = [a.labels["alertname"] for n in house.receiver.took for a in n.alerts]
    assert names[:1] == ["VllmContainerExited"]
    assert docker.done == []
    assert "None" not in house.target("t1-a")["because"]


def test_tries_that_are_used_up_are_one_incident_and_one_restart(
    house: Daemon, docker: FakeDocker
) -> None:
    house.loop.use(
        replace(house.plan, budget=replace(house.plan.budget, target_per_hour=9)), house.book
    )
    always(docker, policy="on-failure")
    docker.boxes["t1-a"].loads_for = 60
    for _ in range(3):
        waits_for_docker(docker, "t1-a")
        house.run(1)
        started_by_docker(docker, "t1-a")
        house.run(1)
    docker.die("t1-a", code=1)
    house.run(90)

    assert docker.done == ["start t1-a"]
    assert house.memory.incidents.get(2) is None
    assert counted(house, series.CONTAINER_EXITS, code="1") == 4


@pytest.mark.parametrize("code", [0, 1, 134, 137, 139, 255])
@HEARING
def test_any_exit_that_nobody_ordered_is_put_right(
    house: Daemon, docker: FakeDocker, code: int, deaf: bool
) -> None:
    docker.die("t1-a", code=code, log="")
    house.run(60, deaf=deaf)

    if deaf and code == 255:  # as a process that died while Docker was down looks
        assert docker.done == []
        assert house.state("t1-a") == "failed"
    else:
        assert docker.done == ["start t1-a"]


@pytest.mark.parametrize("code", [125, 126, 127])
def test_what_docker_could_not_even_start_is_not_started_again(
    house: Daemon, docker: FakeDocker, code: int
) -> None:
    docker.die("t1-a", code=code, log="")
    house.run(60)

    assert docker.done == []
    assert house.target("t1-a")["held"][0]["guard"] == "restart_cannot_help"


def test_a_death_told_of_late_is_understood_late(house: Daemon, docker: FakeDocker) -> None:
    """The survey is faster than the event, and Docker's own record cannot be read."""
    box = docker.boxes["t1-a"]
    docker.die("t1-a", code=137, log="")
    box.seen = replace(box.seen, manually_stopped=None)
    event = docker.events.pop()
    house.run(20)
    assert docker.done == []
    docker.events.append(event)
    house.run(60)

    assert docker.done == ["start t1-a"]
    assert counted(house, series.CONTAINER_EXITS) == 1


def test_with_no_record_and_no_events_a_silent_stop_is_alerted_and_left(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.stop_by_person("t1-a", heard=False)
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, manually_stopped=None)
    house.run(60)

    assert docker.done == []
    assert house.target("t1-a")["held"][0]["guard"] == "unwitnessed_stop"
    assert house.receiver.took[0].kind == "alert"


def test_events_twice_or_out_of_order_change_nothing(house: Daemon, docker: FakeDocker) -> None:
    docker.stop_by_person("t1-a")
    docker.events[:] = [*reversed(docker.events), *docker.events]
    house.run(30)

    assert house.state("t1-a") == "stopped"
    assert docker.done == []
    assert counted(house, series.CONTAINER_EXITS) == 1


def test_events_of_the_old_container_of_that_name_are_not_the_new_ones(
    house: Daemon, docker: FakeDocker
) -> None:
    recreate(docker, "t1-a")
    house.run(40)
    assert house.state("t1-a") == "idle"
    new = docker.boxes["t1-a"]
    old = FakeContainer(seen=replace(new.seen, id="f" * 64))
    docker._say("kill", old, signal="15")
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]


def test_a_new_name_is_a_new_target_at_once(house: Daemon, docker: FakeDocker) -> None:
    rename(docker, "t1-a", "t1-z")
    house.run(3)

    assert house.shown is not None
    assert [t["name"] for t in house.shown.status["targets"]] == ["t1-b", "t1-z"]
    docker.die("t1-z")
    house.run(60)
    assert docker.done == ["start t1-z"]


def test_a_container_removed_by_a_person_is_no_incident(house: Daemon, docker: FakeDocker) -> None:
    remove(docker, "t1-a")
    house.run(60)

    assert house.receiver.took == []
    assert house.shown is not None
    assert [t["name"] for t in house.shown.status["targets"]] == ["t1-b"]


def test_a_crash_that_takes_its_container_along_is_told(house: Daemon, docker: FakeDocker) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, auto_remove=True)
    house.loop.parts.watch.look_again()
    house.run(5)
    docker.die("t1-a", code=1)
    remove(docker, "t1-a", by_person=False)
    house.run(30)

    assert docker.done == []
    assert [n.kind for n in house.receiver.took] == ["alert", "held"]
    assert house.target("t1-a")["held"][0]["guard"] == "cannot_recreate"
    house.run(2 * 3600, step=20)
    assert house.receiver.took[-1].kind == "resolved"


@pytest.mark.parametrize(
    ("guard", "changes"),
    [
        pytest.param("cannot_recreate", {"auto_remove": True}, id="a stop would remove it"),
        pytest.param(
            "foreign_orchestrator",
            {"labels": {"com.docker.swarm.task.id": "x"}},
            id="Swarm would replace it",
        ),
    ],
)
def test_a_dead_engine_in_what_a_stop_would_take_away_is_left_and_told(
    house: Daemon, docker: FakeDocker, guard: str, changes: dict[str, Any]
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, **changes)
    house.loop.parts.watch.look_again()
    house.run(5)
    box.health = 503
    house.run(60)

    assert docker.done == []
    assert [n.kind for n in house.receiver.took] == ["alert", "held"]
    assert house.target("t1-a")["held"][0]["guard"] == guard


def test_a_stop_by_a_person_that_takes_its_container_along_is_no_incident(
    house: Daemon, docker: FakeDocker
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, auto_remove=True)
    house.loop.parts.watch.look_again()
    house.run(5)
    docker.stop_by_person("t1-a")
    remove(docker, "t1-a", by_person=False)
    house.run(30)

    assert house.receiver.took == []


def test_a_harmless_signal_by_a_person_excuses_no_crash(house: Daemon, docker: FakeDocker) -> None:
    box = docker.boxes["t1-a"]
    docker._say("kill", box, signal="10")
    house.run(5)
    docker.die("t1-a", code=137, log="")
    box.seen = replace(box.seen, manually_stopped=True)  # Docker records any signal so
    house.run(60)

    assert docker.done == ["start t1-a"]


def test_paused_and_created_are_left_alone(house: Daemon, docker: FakeDocker) -> None:
    paused, created = docker.boxes["t1-a"], docker.boxes["t1-b"]
    paused.seen = replace(paused.seen, status=Status.PAUSED)
    created.seen = replace(created.seen, status=Status.CREATED, started_at=None, id="e" * 64)
    house.run(600, step=5)

    assert docker.done == []
    assert (house.state("t1-a"), house.state("t1-b")) == ("paused", "stopped")
    names = {a.labels["alertname"] for n in house.receiver.took for a in n.alerts}
    assert "VllmContainerExited" not in names


def test_docker_going_down_and_up_again_is_no_crash_of_anyone(
    house: Daemon, docker: FakeDocker
) -> None:
    for box in docker.boxes.values():
        box.seen = replace(box.seen, restart_policy="unless-stopped")
        docker._say("kill", box, signal="15")
        docker._end(box, 0, manually=False)
        docker._say("die", box, exit_code=0)
    docker.lost = True
    house.run(10)
    docker.lost = False
    for name in docker.boxes:
        started_by_docker(docker, name)
        docker.boxes[name].seen = replace(docker.boxes[name].seen, restart_count=0)
    house.run(60)

    assert docker.done == []
    assert house.state("t1-a") == "idle"
    names = {a.labels["alertname"] for n in house.receiver.took for a in n.alerts}
    assert "VllmContainerExited" not in names


@pytest.mark.parametrize("step", ["inspect", "log_tail", "stop", "start"])
def test_docker_lost_at_a_step_delays_and_does_not_fail(
    house: Daemon, docker: FakeDocker, step: str
) -> None:
    docker.boxes["t1-a"].health = 503
    if step in ("inspect", "log_tail"):
        docker.boxes["t1-a"].health = 200
    real = getattr(docker, step)

    def losing(*args: Any, **named: Any) -> Any:
        docker.lost = True
        setattr(docker, step, real)
        return real(*args, **named)

    setattr(docker, step, losing)
    if step in ("inspect", "log_tail"):
        docker.die("t1-a")
    house.run(20 * 60, step=5)
    docker.lost = False
    docker.boxes["t1-a"].health = 200 if step != "stop" else 503
    house.run(3)
    house.run(10)
    docker.boxes["t1-a"].health = 200
    house.run(90)

    assert docker.done[-1:] == ["start t1-a"]
    assert house.state("t1-a") == "idle"
    assert [i.outcome for i in house.memory.journal.of_incident(1) if i.outcome != "verified"] == []


def test_one_container_that_cannot_be_inspected_blinds_nobody(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, real = docker.boxes["t1-b"].seen.id, docker.inspect

    def inspect(container_id: str) -> Container | None:
        if container_id == stuck:
            raise Transient("Docker has not answered in time")
        return real(container_id)

    monkeypatch.setattr(docker, "inspect", inspect)
    house.loop.parts.watch.look_again()
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]
    assert house.shown is not None
    assert house.shown.status["problems"] == []


def test_out_of_memory_before_the_target_was_known_is_not_lost(
    house: Daemon, docker: FakeDocker
) -> None:
    docker._say("oom", docker.boxes["t1-a"])
    house.again()
    house.turn()
    house.run(5)

    assert counted(house, series.OOM_EVENTS, kind="cgroup") == 1
    names = {a.labels["alertname"] for n in house.receiver.took for a in n.alerts}
    assert names == {"VllmOOM"}


def test_a_child_killed_for_memory_and_a_clean_looking_exit_is_out_of_memory(
    house: Daemon, docker: FakeDocker
) -> None:
    docker._say("oom", docker.boxes["t1-a"])
    house.run(5)
    docker.die("t1-a", code=0, log="")
    house.run(5)

    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.diagnosis["cause"] == "cgroup_oom"


def test_a_name_that_changes_while_it_is_looked_at_is_nobodys_before_the_next_look(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = docker.inspect

    def renamed(container_id: str) -> Container | None:
        found = real(container_id)
        aside = found is not None and found.name == "t1-a"
        return replace(found, name="t1-a.so-1-0123abcd") if found and aside else found

    monkeypatch.setattr(docker, "inspect", renamed)
    started_by_docker(docker, "t1-a")
    house.run(10)
    assert sorted(house.loop.parts.watch.targets) == ["t1-a", "t1-b"]

    monkeypatch.undo()
    house.run(20)
    assert (
        house.loop.parts.watch.targets["t1-a"].container.started_at
        == docker.boxes["t1-a"].seen.started_at
    )
