"""Witnesses of a vLLM that serves and has no work, to be changed by each test."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel.core.model.container import Container, Status
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.model.target import Answer, Completion
from sentinel.core.policy.progress import Counted, Pace
from sentinel.core.policy.witness import Load, Witnesses
from sentinel.core.sockets import Connections

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


def launch(*, ready: bool = True, ending: EndedAs | None = None, up_for: float = 3600) -> Launch:
    found = None
    if ending is not None:
        found = Ending(kind=ending, because="it ended", cause="unknown", at=ago(60), exit_code=0)
    return Launch(
        target="t1-a",
        container_id="c",
        started_at=ago(up_for),
        by=By.OTHER,
        ready_at=ago(up_for - 60) if ready else None,
        ending=found,
    )


GOOD = Answer(at=ago(1), took=0.01, status=200)
REFUSED = Answer(at=ago(1), took=0.0, failure="refused", says="nobody listens")
LATE = Answer(at=ago(1), took=3.0, failure="timeout", says="connected, but no answer in 3 s")
NOT_THERE = Answer(at=ago(1), took=0.01, status=404)
DEAD = Answer(at=ago(1), took=0.01, status=503)
BUSY = Load(running=8, waiting=3, kv_usage=0.5)
TOKEN = Completion(at=ago(5), took=0.1, ok=True)
NO_TOKEN = Completion(at=ago(5), took=20, ok=False, says="no answer in 20 s")
NO_KEY = Completion(at=ago(5), took=0.1, ok=False, unauthorised=True, says="HTTP 401")
NO_API = Completion(at=ago(5), took=0.1, ok=False, unsupported=True, says="HTTP 404")


def engine(
    running: float = 0,
    waiting: float = 0,
    *,
    still: float = 1,
    seen: float = 1,
    own: int = 0,
    **counted: float,
) -> Pace:
    """`still`: seconds since anything moved."""
    return Pace(
        counted=Counted(running=running, waiting=waiting, **counted),
        demand=max(running + waiting - own, 0),
        moved_at=ago(still),
        still_since=ago(still),
        seen_at=ago(seen),
        decoded_at=ago(still),
        own=own,
    )


def clients(
    several: int = 0,
    *,
    waiting: float | None = None,
    listening: bool = True,
    looked: float = 1,
) -> Connections:
    """`waiting`: seconds since they are there and nothing of theirs is counted."""
    return Connections(
        at=ago(looked),
        port=8000,
        listening=listening,
        ends=frozenset(),
        clients=frozenset(str(each) for each in range(several)),
        waiting_since=None if waiting is None else ago(waiting),
    )


def seen(**changes: Any) -> Witnesses:
    plain: dict[str, Any] = {
        "container": container(),
        "launch": launch(),
        "scrape": GOOD,
        "scrape_ok_at": ago(1),
        "health": GOOD,
        "load": Load(running=0, waiting=0, kv_usage=0.0, asleep=False),
        "engines": {"0": engine(still=900)},
    }
    return Witnesses(**{**plain, **changes})


def stuck(still: float = 130, **changes: Any) -> Witnesses:
    """Work waits, and nothing moves for so long."""
    return seen(**{"load": BUSY, "engines": {"0": engine(8, 3, still=still)}, **changes})


def exited(ending: EndedAs, *, policy: str = "no", finished: float = 60, **more: Any) -> Witnesses:
    box = container(Status.EXITED, exit_code=0, finished_at=ago(finished), restart_policy=policy)
    return seen(container=box, launch=launch(ending=ending), **more)
