"""The state file fails in the middle of everything: the eyes go on, the hands stop."""

import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.dispatch.route import Route
from sentinel.store.journal import Journal
from sentinel.store.memory import Memory
from tests.fakes import FakeDocker
from tests.runtime.house import Daemon
from tests.runtime.world import dead_engine


def fill_the_disk(house: Daemon, patched: pytest.MonkeyPatch) -> None:
    """No page more, and no way back into the file."""
    house.memory.db.execute("PRAGMA query_only = 1")  # fails as a file system set read-only does
    patched.setattr(Memory, "come_back", lambda _self: False)


def problems(house: Daemon) -> str:
    assert house.shown is not None
    return " ".join(house.shown.status["problems"])


def test_with_the_disk_full_a_death_is_told_and_not_acted_on(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_the_disk(house, monkeypatch)
    docker.die("t1-a")
    house.run(10)

    assert docker.done == []
    assert house.state("t1-a") == "failed"
    assert [n.kind for n in house.receiver.took][:2] == ["alert", "held"]
    assert house.target("t1-a")["held"][0]["guard"] == "journal_unreadable"
    assert "acts on nothing" in problems(house)


def test_once_the_disk_takes_it_again_it_acts_again(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        fill_the_disk(house, patched)
        docker.die("t1-a")
        house.run(30)
    house.run(60)

    assert docker.done == ["start t1-a"]
    assert "acts on nothing" not in problems(house)
    house.again()
    assert [i.outcome for i in house.memory.journal.of_incident(1)] == ["verified"]


def test_what_was_begun_when_the_disk_filled_up_is_finished(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = docker.stop

    def stop(*args: Any, **named: Any) -> None:
        real(*args, **named)
        if not house.memory.trouble:
            fill_the_disk(house, monkeypatch)

    monkeypatch.setattr(docker, "stop", stop)
    dead_engine(docker, "t1-a")
    house.run(12)
    docker.boxes["t1-a"].health = 200
    house.run(60)

    assert docker.done == ["stop t1-a", "start t1-a"]
    assert house.state("t1-a") == "idle"
    assert "acts on nothing" in problems(house)


@pytest.mark.parametrize("broken", ["reserve", "begin"])
def test_what_could_not_be_written_down_is_not_done(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    real = getattr(Journal, broken)
    seen: list[list[str]] = []

    def fail_once(self: Journal, *args: Any, **named: Any) -> Any:
        answer = real(self, *args, **named)
        if not seen:
            seen.append(list(docker.done))
            raise RuntimeError("a bug in the middle of a turn")
        return answer

    monkeypatch.setattr(Journal, broken, fail_once)
    docker.die("t1-a")
    house.run(60)

    assert seen == [[]]
    assert docker.done == ["start t1-a"]
    assert [n.kind for n in house.receiver.took] == ["alert", "action", "action", "resolved"]
    assert len(house.memory.journal.of_incident(1)) == 1


def test_an_alert_of_a_turn_that_failed_is_told_by_the_next(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def broken(*_: Any) -> None:
        seen.append("failed")
        raise RuntimeError("a bug in the middle of a turn")

    with monkeypatch.context() as patched:
        patched.setattr(house.loop.parts.announcer, "tell", broken)
        docker.die("t1-a")
        house.turn()
        assert "a bug in the middle" in problems(house)
    house.run(60)

    assert seen
    assert house.receiver.took[0].kind == "alert"
    assert docker.done == ["start t1-a"]
    assert "a bug" not in problems(house)


class Damaged:
    """A connection to a file that has become unreadable."""

    def execute(self, *_: object) -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    executemany = backup = execute

    def close(self) -> None:
        return


def test_a_file_damaged_while_it_is_used_does_not_blind(house: Daemon, docker: FakeDocker) -> None:
    real = house.memory.db
    house.memory._use(Damaged())  # type: ignore[arg-type]
    real.close()
    docker.die("t1-a")
    house.run(30)

    assert docker.done == []
    assert house.state("t1-a") == "failed"
    assert "malformed" in problems(house)
    assert house.memory.is_whole is False
    assert house.receiver.took[0].kind == "alert"


def test_the_route_may_lead_nowhere_and_the_turn_goes_on(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    house.loop.parts.announcer.plan = replace(house.plan, route=Route(receiver="nobody"))
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]
    house.memory.close()
