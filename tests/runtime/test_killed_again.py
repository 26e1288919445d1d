"""Killed, started again, and killed while it finishes: each action is done once, or taken back."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.intent import Action, Mode
from sentinel.store.journal import Journal
from tests.fake_recreation import FakeRecreation
from tests.fakes import FakeClock, FakeDocker, Killed
from tests.runtime.house import Daemon
from tests.runtime.test_act import act, daemon, limit_of, loops, outcomes, runs, tell

WORDS: list[tuple[type, str]] = [
    *((Journal, name) for name in ("begin", "recreate", "done", "expect_proof", "close")),
    *((FakeRecreation, name) for name in ("look", "raw", "do")),
    *((FakeDocker, name) for name in ("stop", "start", "complete")),
]
LIMITED = ("vllm", "serve", "tiny", "--port", "8000", "--max-num-seqs", "256")


class Reaper:
    """Kills at the `nth` word from now on, whichever it is, before or after it is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.killed = 0, 0
        for owner, name in WORDS:
            monkeypatch.setattr(owner, name, self._around(getattr(owner, name)))

    def _around(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def word(*args: Any, **named: Any) -> Any:
            self.left -= 1
            before, hits = self.killed % 2 == 0, self.left == 0
            self.killed += hits
            if hits and before:
                raise Killed
            answer = real(*args, **named)
            if hits:
                if hasattr(answer, "close"):
                    answer.close()
                raise Killed
            return answer

        return word


def restarts(folder: Path, docker: FakeDocker) -> tuple[Daemon, Callable[[], Any]]:
    house = daemon(folder, docker)
    return house, lambda: act(house, Action.RESTART)


def lowers(folder: Path, docker: FakeDocker) -> tuple[Daemon, Callable[[], Any]]:
    house = daemon(folder, docker)
    return house, lambda: act(house, to=64)


def is_taken_back(folder: Path, docker: FakeDocker) -> tuple[Daemon, Callable[[], Any]]:
    docker.boxes["t1-a"].dies_with = frozenset({64})
    return lowers(folder, docker)


def restores(folder: Path, docker: FakeDocker) -> tuple[Daemon, Callable[[], Any]]:
    house = daemon(folder, docker, Mode.ACT)
    act(house, to=64)
    house.run(60)
    house.clock.advance(minutes=16)
    house.run(2)
    return house, lambda: act(house, Action.RESTORE)


def ends_a_loop(folder: Path, docker: FakeDocker) -> tuple[Daemon, Callable[[], Any]]:
    house, agreed = loops(folder, docker)
    return house, lambda: tell(house, agreed)


FEW, MANY = ((1, 2), (3, 1)), ((1, 3), (4, 2), (7, 6), (14, 9))
BACK = ["create", "stop", "start", "remove", "start"]
ANEW = ["create", "stop", "start", "remove"]


@pytest.mark.parametrize(
    ("what", "done", "last", "limit", "state", "kills"),
    [
        pytest.param(*row, kills, id=f"{row[0].__name__} {kills}")
        for row, all_kills in [
            ((restarts, ["stop", "start"], "verified", "256", "idle"), (*FEW, (7, 3))),
            ((lowers, ANEW, "verified", "64", "idle"), MANY),
            ((is_taken_back, BACK, "rolled_back", "256", "idle"), (*MANY, (20, 8))),
            ((restores, ANEW, "verified", "256", "idle"), MANY),
            ((ends_a_loop, ["stop"], "verified", "256", "stopped"), FEW),
        ]
        for kills in all_kills
    ],
)
def test_it_is_done_once_however_often_it_is_killed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: Callable[[Path, FakeDocker], tuple[Daemon, Callable[[], Any]]],
    done: list[str],
    last: str,
    limit: str,
    state: str,
    kills: tuple[int, ...],
) -> None:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a", policy="unless-stopped")
    runs(docker, LIMITED)
    house, order = what(tmp_path, docker)
    docker.done.clear()
    with monkeypatch.context() as patched:
        reaper = Reaper(patched)
        order()  # written down from here on
        for nth in kills:
            reaper.left = nth
            with contextlib.suppress(Killed):
                house.run(40, step=2)
            docker.clock.advance(seconds=3)
            house.again()
    house.run(120, step=2)

    assert [each.split()[0] for each in docker.done] == done
    assert outcomes(house)[-1] == last
    assert list(docker.boxes) == ["t1-a"]
    assert (limit_of(docker), house.state("t1-a")) == (limit, state)
    assert docker.boxes["t1-a"].seen.restart_policy == "unless-stopped"
    assert house.memory.journal.open() == []
    assert reaper.killed
