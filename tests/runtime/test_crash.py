"""Killed before and after every word of the remedy, and started again: one restart in all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel.store.journal import Journal
from tests.fakes import FakeClock, FakeDocker, Killed
from tests.runtime.house import Daemon

JOURNAL = ["reserve", "begin", "done", "expect_proof", "close"]
DOCKER = ["inspect", "log_tail", "stop", "start", "complete"]


class Trap:
    """Kills at the `nth` call of one method, before or after it is really made."""

    def __init__(self, nth: int, *, before: bool) -> None:
        self._left, self._before = nth, before

    def around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def trapped(*args: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._before:
                raise Killed
            answer = real(*args, **named)
            if self._left == 0:
                if hasattr(answer, "close"):
                    answer.close()
                raise Killed
            return answer

        return trapped


def run_until_killed(house: Daemon, seconds: int) -> bool:
    try:
        house.run(seconds)
    except Killed:
        return True
    return False


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("point", [*JOURNAL, *DOCKER])
@pytest.mark.parametrize("restarts", ["dead", "alive"])
def test_a_kill_anywhere_costs_exactly_one_restart(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    nth: int,
    before: bool,
    restarts: str,
) -> None:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    if restarts == "dead":
        docker.die("t1-a")
    else:
        docker.boxes["t1-a"].health = 503  # the server lives, its engine is dead

    trap = Trap(nth, before=before)
    with monkeypatch.context() as patched:
        if point in JOURNAL:
            patched.setattr(Journal, point, trap.around(getattr(Journal, point)))
        else:
            patched.setattr(docker, point, trap.around(getattr(docker, point)))
        run_until_killed(house, 60)
    if restarts == "alive" and docker.done:
        docker.boxes["t1-a"].health = 200  # a restart cures it
    docker.clock.advance(seconds=3)
    house.again()
    for _ in range(120):
        house.run(1)
        if restarts == "alive" and docker.done:
            docker.boxes["t1-a"].health = 200

    wanted = ["start t1-a"] if restarts == "dead" else ["stop t1-a", "start t1-a"]
    assert docker.done == wanted
    assert house.state("t1-a") == "idle"
    outcomes = [intent.outcome for intent in house.memory.journal.of_incident(1)]
    assert outcomes == ["verified"]
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.resolved_at is not None


def test_the_trap_really_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    docker.die("t1-a")
    monkeypatch.setattr(Journal, "begin", Trap(1, before=True).around(Journal.begin))

    assert run_until_killed(house, 60)
