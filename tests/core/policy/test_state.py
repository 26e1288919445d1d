"""Witnesses against states: the table is the specification."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sentinel.core.model.container import Container, Status
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.model.target import Answer, Completion, State
from sentinel.core.policy.state import Load, Witnesses, is_crashed, judge

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def container(status: Status = Status.RUNNING, **facts: Any) -> Container:
    plain: dict[str, Any] = {"started_at": ago(3600), "finished_at": None, "exit_code": None}
    return Container(
        id="c",
        name="t1-a",
        image="vllm",
        image_id="s",
        argv=("vllm",),
        status=status,
        **{**plain, **facts},
    )


def launch(*, ready: bool = True, ending: EndedAs | None = None) -> Launch:
    found = None
    if ending is not None:
        found = Ending(kind=ending, because="it ended", cause="unknown", at=ago(60), exit_code=0)
    return Launch(
        target="t1-a",
        container_id="c",
        started_at=ago(3600),
        by=By.OTHER,
        ready_at=ago(3000) if ready else None,
        ending=found,
    )


GOOD = Answer(at=ago(1), took=0.01, status=200)
REFUSED = Answer(at=ago(1), took=0.0, failure="refused", says="nobody listens")
LATE = Answer(at=ago(1), took=3.0, failure="timeout", says="connected, but no answer in 3 s")


def seen(**changes: Any) -> Witnesses:
    plain: dict[str, Any] = {
        "container": container(),
        "launch": launch(),
        "scrape": GOOD,
        "scrape_ok_at": ago(1),
        "load": Load(running=0, waiting=0, kv_usage=0.0),
        "progress_at": ago(1),
    }
    return Witnesses(**{**plain, **changes})


def exited(ending: EndedAs, *, policy: str = "no", finished: float = 60, **more: Any) -> Witnesses:
    box = container(Status.EXITED, exit_code=0, finished_at=ago(finished), restart_policy=policy)
    return seen(container=box, launch=launch(ending=ending), **more)


BUSY = Load(running=8, waiting=3, kv_usage=0.5)
NO_TOKEN = Completion(at=ago(5), took=20, ok=False, says="no answer in 20 s")


@pytest.mark.parametrize(
    ("witnesses", "state"),
    [
        pytest.param(seen(), State.IDLE, id="answers, no work"),
        pytest.param(seen(load=BUSY), State.SERVING, id="works"),
        pytest.param(
            seen(load=Load(running=5, waiting=30, kv_usage=0.99)), State.SATURATED, id="full"
        ),
        pytest.param(seen(load=Load(running=0, asleep=True)), State.SLEEPING, id="asleep"),
        pytest.param(seen(launch=launch(ready=False)), State.STARTING, id="loading"),
        pytest.param(
            seen(launch=launch(ready=False), scrape=REFUSED, scrape_ok_at=None),
            State.STARTING,
            id="loading for an hour is still loading",
        ),
        pytest.param(exited(EndedAs.CRASH), State.FAILED, id="crashed"),
        pytest.param(exited(EndedAs.OOM), State.FAILED, id="out of memory"),
        pytest.param(exited(EndedAs.UNWITNESSED), State.FAILED, id="nobody saw it stop"),
        pytest.param(exited(EndedAs.PERSON), State.STOPPED, id="a person stopped it"),
        pytest.param(
            exited(EndedAs.CRASH, policy="always", finished=1),
            State.RESTARTING,
            id="Docker's turn first",
        ),
        pytest.param(
            exited(EndedAs.CRASH, policy="always", finished=30),
            State.FAILED,
            id="Docker did not take its turn",
        ),
        pytest.param(
            exited(EndedAs.CRASH, policy="on-failure", finished=1),
            State.FAILED,
            id="on-failure does nothing about code 0",
        ),
        pytest.param(
            exited(EndedAs.ENGINE_SHUTDOWN, engine_back_at=ago(5)),
            State.UNKNOWN,
            id="Docker is just back",
        ),
        pytest.param(
            exited(EndedAs.ENGINE_SHUTDOWN, policy="always", engine_back_at=ago(60)),
            State.FAILED,
            id="Docker should have started it",
        ),
        pytest.param(
            exited(EndedAs.ENGINE_SHUTDOWN, engine_back_at=ago(60)),
            State.STOPPED,
            id="Docker went down, and the policy is no",
        ),
        pytest.param(
            exited(EndedAs.CRASH, own_step="start"), State.RESTARTING, id="we are starting it"
        ),
        pytest.param(seen(own_step="stop"), State.STOPPING, id="we are stopping it"),
        pytest.param(seen(container=container(Status.PAUSED)), State.PAUSED, id="paused"),
        pytest.param(
            seen(container=container(Status.RESTARTING, exit_code=1)),
            State.RESTARTING,
            id="Docker waits before its next try",
        ),
        pytest.param(seen(container=container(Status.CREATED)), State.STOPPED, id="never started"),
        pytest.param(
            seen(scrape=LATE, scrape_ok_at=ago(30)), State.IDLE, id="slow is busy, not down"
        ),
        pytest.param(
            seen(scrape=LATE, scrape_ok_at=ago(90)), State.UNKNOWN, id="slow for too long"
        ),
        pytest.param(
            seen(scrape=REFUSED, scrape_ok_at=ago(6)), State.UNKNOWN, id="a port that closed"
        ),
        pytest.param(
            seen(dead_since=ago(11), health=Answer(at=ago(1), took=0, status=503)),
            State.FAILED,
            id="the server lives, its engine is dead",
        ),
        pytest.param(
            seen(dead_since=ago(3), health=Answer(at=ago(1), took=0, status=503)),
            State.IDLE,
            id="between the engine's death and the exit",
        ),
        pytest.param(seen(load=BUSY, progress_at=ago(130), probe=NO_TOKEN), State.HUNG, id="hung"),
        pytest.param(
            seen(load=BUSY, progress_at=ago(130)), State.SERVING, id="still, but not proved hung"
        ),
        pytest.param(
            seen(load=BUSY, progress_at=ago(100), probe=NO_TOKEN),
            State.SERVING,
            id="not long enough",
        ),
        pytest.param(
            seen(
                load=BUSY,
                progress_at=ago(130),
                probe=Completion(at=ago(5), took=0, ok=False, unauthorised=True, says="401"),
            ),
            State.SERVING,
            id="a wrong key proves nothing",
        ),
        pytest.param(
            seen(engine_lost_at=ago(60)), State.IDLE, id="Docker is lost, the target answers"
        ),
        pytest.param(
            seen(engine_lost_at=ago(60), scrape=REFUSED, scrape_ok_at=ago(50)),
            State.UNKNOWN,
            id="neither answers",
        ),
        pytest.param(
            exited(EndedAs.PERSON, engine_lost_at=ago(60)),
            State.STOPPED,
            id="stopped stays stopped",
        ),
        pytest.param(seen(container=None), State.UNKNOWN, id="not seen yet"),
    ],
)
def test_judge(witnesses: Witnesses, state: State) -> None:
    standing = judge(witnesses, NOW)

    assert standing.state is state
    assert standing.because


def test_a_crash_counts_until_it_serves_again() -> None:
    before = Ending(kind=EndedAs.CRASH, because="x", cause="unknown", at=ago(60), exit_code=0)
    loading = seen(launch=launch(ready=False), previous_ending=before)
    serving = seen(previous_ending=before)

    assert is_crashed(loading, judge(loading, NOW))
    assert not is_crashed(serving, judge(serving, NOW))


@pytest.mark.parametrize("ending", [EndedAs.PERSON, EndedAs.OWN, EndedAs.UNWITNESSED])
def test_other_endings_are_no_crash_while_it_loads(ending: EndedAs) -> None:
    before = Ending(kind=ending, because="x", cause="unknown", at=ago(60), exit_code=0)
    loading = seen(launch=launch(ready=False), previous_ending=before)

    assert not is_crashed(loading, judge(loading, NOW))


def test_a_clock_set_back_makes_nobody_hung() -> None:
    witnesses = seen(load=BUSY, progress_at=NOW + timedelta(hours=1), probe=NO_TOKEN)

    assert judge(witnesses, NOW).state is State.SERVING
