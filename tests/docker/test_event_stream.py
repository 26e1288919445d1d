"""Who checks that a daemon did nothing without a word would find it, if it did."""

from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from deploy.testbed import Testbed
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox
from tests.docker.event_stream import MADE_ANEW, MAY_CAUSE, Act, Event, EventStream, unaccounted

OLD, NEW = "0" * 64, "1" * 64


def life(*actions: str, of: str = OLD, name: str = "t-a") -> list[Event]:
    """One event a minute, so that no two acts run into one another."""
    return [Event(of, (name,), action, 60.0 * at) for at, action in enumerate(actions)]


def act(verb: str, minute: int, of: str = OLD) -> Act:
    return Act(frozenset({of}), 60.0 * minute, 60.0 * minute + 0.1, MAY_CAUSE[verb])


CRASHED = life("create", "start", "die", "start")
BEGUN = [act("create", 0, "t-a"), act("start", 1)]


@pytest.mark.parametrize(
    ("events", "acts", "restarted", "left"),
    [
        (CRASHED, [*BEGUN, act("start", 3)], [], []),
        (CRASHED, BEGUN, [], ["start"]),
        (CRASHED, [*BEGUN, act("start", 2)], [], ["start"]),
        (CRASHED, [*BEGUN, act("start", 3, NEW)], [], ["start"]),
        (CRASHED, [*BEGUN, act("stop", 3)], [], ["start"]),
        (CRASHED, BEGUN, ["t-a"], []),
        (life("create", "start", "die", "stop", "start"), BEGUN, ["t-a"], ["stop", "start"]),
        (life("create", "start", "start"), BEGUN, ["t-a"], ["start"]),
        (life("create", "start", "die"), BEGUN, [], []),
        (life("create", "start", "kill"), BEGUN, [], ["kill"]),
        (life("create", "start", "destroy"), BEGUN, [], ["destroy"]),
        (life("create", "start", "rename"), BEGUN, [], ["rename"]),
        (life("create", "start", "update"), BEGUN, [], ["update"]),
        (life("create", "start", name="else"), [], [], []),
    ],
    ids=[
        "what was asked for",
        "a start that nobody asked for",
        "a start a minute after it was asked for",
        "a start that was asked for of another",
        "a start where a stop was asked for",
        "a start by Docker, as its policy has it",
        "a start after a stop, which is not by Docker",
        "a start of what has not ended, which is not by Docker",
        "an end of its own",
        "a signal",
        "a removal",
        "a rename",
        "another policy",
        "a container of nobody here",
    ],
)
def test_what_is_left_over(
    events: list[Event], acts: list[Act], restarted: list[str], left: list[str]
) -> None:
    found = unaccounted(events, acts, restarted, ("t-",))

    assert [line.split()[0] for line in found] == left


def test_one_act_does_not_stand_for_two_starts() -> None:
    start = Act(frozenset({OLD}), 0.0, 600.0, MAY_CAUSE["start"])

    found = unaccounted(life("start", "die", "start"), [start], [], ("t-",))

    assert [line.split()[0] for line in found] == ["start"]


def test_what_is_made_anew_is_two_containers_and_no_third() -> None:
    of = frozenset({OLD, "t-a.sn-1-00000000"})
    anew = [Act(of, 0.0, 600.0, MADE_ANEW)]
    old = life("stop", "die", "update", "rename", "destroy")
    new = life("create", "rename", "start", of=NEW, name="t-a.sn-1-00000000")
    third = life("create", "start", of="2" * 64, name="t-a.sn-2-00000000")

    assert unaccounted([*old, *new], anew, [], ("t-",)) == []
    assert len(unaccounted([*old, *new, *third], anew, [], ("t-",))) == 2


@pytest.fixture
def stream(docker_engine: docker.DockerClient) -> Iterator[EventStream]:
    made = EventStream(docker_engine, docker.from_env())
    yield made
    made.close()


@pytest.mark.docker
def test_what_a_stranger_does_is_found_and_what_the_test_does_is_not(
    stream: EventStream, testbed: Testbed, vllm_box: VllmBox, tmp_path: Path
) -> None:
    box = vllm_box("a")
    box.container.restart(timeout=1)
    stranger = docker.from_env()
    stranger.api.restart(box.id, timeout=1)
    stranger.close()
    box.remove()

    left = stream.unaccounted([(testbed.prefix, tmp_path / "state.db")])

    assert {line.split()[0] for line in left} >= {"stop", "start", "restart"}


@pytest.mark.docker
def test_what_a_daemon_does_is_found_when_its_journal_does_not_say_so(
    stream: EventStream, testbed: Testbed, vllm_box: VllmBox, tmp_path: Path, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url).start()
    sentinel.wait_for_state(box.name, "idle")
    box.kill_engine()
    sentinel.wait_for_incident("resolved")
    sentinel.close()
    box.remove()

    assert stream.unaccounted(Daemon.journals[-1:]) == []
    left = stream.unaccounted([(testbed.prefix, tmp_path / "no.db")])
    assert [line.split()[0] for line in left] == ["start"]
