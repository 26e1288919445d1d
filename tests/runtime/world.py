"""What Docker and people do to containers behind Sentinel's back."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sentinel.core.model.container import Status
from tests.fakes import CRASH_LOG, FakeDocker


def dead_engine(docker: FakeDocker, name: str) -> None:
    """The server lives and says that its engine is dead: a restart has a step of stopping."""
    docker.boxes[name].health = 503


def after(docker: FakeDocker, step: str, act: Callable[[], None]) -> None:
    """Something happens right after Sentinel's next `stop` or `start`."""
    real = getattr(docker, step)

    def then(*args: Any, **named: Any) -> None:
        setattr(docker, step, real)
        real(*args, **named)
        act()

    setattr(docker, step, then)


def before(docker: FakeDocker, step: str, act: Callable[[], None]) -> None:
    """Something happens right before Sentinel's next `stop` or `start`."""
    real = getattr(docker, step)

    def first(*args: Any, **named: Any) -> None:
        setattr(docker, step, real)
        act()
        real(*args, **named)

    setattr(docker, step, first)


def crash_loop(docker: FakeDocker, name: str, *, times: int, code: int = 1) -> None:
    """It dies and Docker starts it again, `times` times, within a second each."""
    for _ in range(times):
        docker.clock.advance(seconds=0.2)
        docker.die(name, code=code, log="")
        docker.clock.advance(seconds=0.2)
        started_by_docker(docker, name)


def started_by_docker(docker: FakeDocker, name: str) -> None:
    box = docker.boxes[name]
    box.seen = replace(
        box.seen,
        status=Status.RUNNING,
        started_at=docker.clock.now(),
        exit_code=0,
        restart_count=box.seen.restart_count + 1,
    )
    box.started_tick = docker.clock.monotonic()
    docker._say("start", box)


def waits_for_docker(docker: FakeDocker, name: str, *, code: int = 1) -> None:
    """It has died, and Docker waits a while before it starts it again."""
    docker.die(name, code=code, log=CRASH_LOG)
    box = docker.boxes[name]
    box.seen = replace(box.seen, status=Status.RESTARTING)


def stop_of_the_loop(docker: FakeDocker, name: str) -> None:
    """`docker stop` while Docker waits: one `stop` event, as seen on 20.10."""
    box = docker.boxes[name]
    box.seen = replace(box.seen, status=Status.EXITED, manually_stopped=True)
    docker._say("stop", box)


def started_by_person(docker: FakeDocker, name: str) -> None:
    box = docker.boxes[name]
    box.seen = replace(
        box.seen,
        status=Status.RUNNING,
        started_at=docker.clock.now(),
        exit_code=0,
        restart_count=0,
        manually_stopped=False,
    )
    box.started_tick = docker.clock.monotonic()
    docker._say("start", box)


def rename(docker: FakeDocker, name: str, to: str) -> None:
    box = docker.boxes.pop(name)
    box.seen = replace(box.seen, name=to)
    docker.boxes[to] = box
    docker._say("rename", box)


def remove(docker: FakeDocker, name: str, *, by_person: bool = True) -> None:
    """`docker rm -f`, or what `--rm` does at the end."""
    box = docker.boxes[name]
    if by_person and box.seen.status is Status.RUNNING:
        docker._say("kill", box, signal="9")
        docker._say("die", box, exit_code=137)
    docker._say("destroy", box)
    del docker.boxes[name]


def recreate(docker: FakeDocker, name: str, **options: Any) -> None:
    """Another container under the same name, started now."""
    old = docker.boxes.pop(name)
    box = docker.add(name, **options)
    docker.boxes[name] = box
    box.seen = replace(
        box.seen,
        id=f"{int(old.seen.id, 16) + 1000:064x}",
        started_at=docker.clock.now(),
        created_at=docker.clock.now(),
        ports=old.seen.ports,
    )
    box.started_tick = docker.clock.monotonic()
    docker._say("start", box)


def long_ago(docker: FakeDocker, name: str) -> None:
    box = docker.boxes[name]
    assert box.seen.started_at is not None
    box.seen = replace(box.seen, started_at=box.seen.started_at - timedelta(days=2))
