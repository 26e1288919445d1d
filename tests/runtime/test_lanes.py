import subprocess
import sys
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from sentinel.core.model.errors import Transient
from sentinel.runtime.lanes import Lane, LaneAnswer


@pytest.fixture
def inbox() -> "SimpleQueue[LaneAnswer[Any]]":
    return SimpleQueue()


def test_an_answer_comes_into_the_inbox_with_its_token(
    inbox: "SimpleQueue[LaneAnswer[Any]]",
) -> None:
    lane = Lane("docker")

    token = lane.submit(lambda: 42, now=0.0, deadline=1.0, deliver=inbox.put)

    assert inbox.get(timeout=5) == LaneAnswer(lane="docker", token=token, value=42)


def test_an_error_comes_as_a_value(inbox: "SimpleQueue[LaneAnswer[Any]]") -> None:
    Lane("docker").submit(lambda: 1 / 0, now=0.0, deadline=1.0, deliver=inbox.put)

    answer = inbox.get(timeout=5)
    assert isinstance(answer.error, ZeroDivisionError)
    assert answer.value is None


def test_whoever_hears_an_answer_finds_the_lane_free() -> None:
    lane, done = Lane("docker"), threading.Event()
    heard: list[object] = []

    def again(answer: LaneAnswer[int]) -> None:
        heard.append(answer.value)
        if len(heard) < 100:
            lane.submit(lambda: len(heard), now=0.0, deadline=1.0, deliver=again)
        else:
            done.set()

    lane.submit(lambda: 0, now=0.0, deadline=1.0, deliver=again)

    assert done.wait(5)
    assert heard == list(range(100))
    assert lane.busy_since is None


def test_nothing_queues_behind_a_stuck_call(inbox: "SimpleQueue[LaneAnswer[Any]]") -> None:
    lane, gate = Lane("nvml"), threading.Event()
    lane.submit(gate.wait, now=100.0, deadline=5.0, deliver=inbox.put)

    with pytest.raises(Transient, match="not come back"):
        lane.submit(lambda: 1, now=101.0, deadline=5.0, deliver=inbox.put)

    assert lane.busy_since == 100.0
    gate.set()
    assert inbox.get(timeout=5).value is True
    assert lane.busy_since is None


def test_an_answer_after_the_deadline_is_late_and_still_comes(
    inbox: "SimpleQueue[LaneAnswer[Any]]",
) -> None:
    lane, gate = Lane("nvml"), threading.Event()
    lane.submit(gate.wait, now=100.0, deadline=5.0, deliver=inbox.put)

    assert not lane.overdue(104.9)
    assert lane.overdue(105.0)
    assert lane.overdue(200.0)

    gate.set()
    assert inbox.get(timeout=5).late
    assert not lane.overdue(300.0)


def test_an_answer_that_nobody_gave_up_is_not_late(inbox: "SimpleQueue[LaneAnswer[Any]]") -> None:
    lane, gate = Lane("nvml"), threading.Event()
    lane.submit(gate.wait, now=100.0, deadline=5.0, deliver=inbox.put)
    lane.overdue(104.0)

    gate.set()

    assert not inbox.get(timeout=5).late


def test_an_idle_lane_is_not_overdue() -> None:
    lane = Lane("docker")

    assert not lane.overdue(1e9)
    assert lane.busy_since is None


def test_a_stuck_lane_does_not_keep_the_process_alive() -> None:
    program = (
        "import threading; from sentinel.runtime.lanes import Lane;"
        "Lane('nvml').submit(threading.Event().wait, now=0, deadline=1, deliver=print)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=10)
