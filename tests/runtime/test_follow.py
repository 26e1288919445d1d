"""Logs followed in the fake world: what counts, what is news, and what goes on over restarts."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.container import Status
from sentinel.core.model.intent import Mode
from sentinel.runtime.follow import _DroppedError
from tests.fakes import CRASH_LOG, FIXTURES, FakeClock, FakeDocker, follow_inline
from tests.runtime.house import Daemon, plan
from tests.runtime.world import started_by_docker

GPU = FIXTURES / "vllm-0.22.1-h200"
HEALTHY = (GPU / "log_gpu_healthy.txt").read_text()
OOM = (GPU / "log_gpu_runtime_oom.txt").read_text()
OOM_LINE = (
    "(EngineCore pid=114) ERROR 11-30 19:08:27 [core.py:1167] torch.OutOfMemoryError: CUDA out of "
    "memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 139.80 GiB of which 1.68 "
    "GiB is free."
)
ERROR = "ERROR 11-30 12:00:00 [core.py:1] ValueError: number"
READY = "INFO 11-30 12:00:00 [launcher.py:1] Application startup complete."
LOAD = (
    "INFO 11-30 12:00:00 [loggers.py:1] Engine 000: Avg prompt throughput: 10.0 tokens/s, Avg "
    "generation throughput: 9.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs"
)
PROMPT = "INFO Received request cmpl-1: prompt: 'my s3cr3t life', params: SamplingParams()"


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    return docker


@pytest.fixture
def build(tmp_path: Path, docker: FakeDocker) -> Iterator[Callable[..., Daemon]]:
    made: list[Daemon] = []

    def start(**changes: Any) -> Daemon:
        world = {"logs": docker, "follow": follow_inline}
        house = Daemon(
            folder=tmp_path, docker=docker, clock=docker.clock, world=world, plan=plan(**changes)
        )
        made.append(house)
        house.run(3)
        return house

    yield start
    for each in made:
        each.memory.close()


def counted(house: Daemon, series: str, **labels: str) -> dict[str, float]:
    """Values of one counter of t1-a that are not 0, by its label."""
    (name,) = labels or {"event": ""}
    found = zip(
        house.memory.counters.frame("t1-a"), house.memory.counters.values("t1-a"), strict=True
    )
    return {each[1][name]: value for each, value in found if each[0] == series and value}


def log_events(house: Daemon) -> dict[str, float]:
    return counted(house, "sentinel_log_events_total", event="")


def ooms(house: Daemon) -> dict[str, float]:
    return counted(house, "sentinel_oom_events_total", kind="")


def relaunched(docker: FakeDocker) -> None:
    """It is started anew while Sentinel watches."""
    docker.die("t1-a", log=CRASH_LOG)
    docker.clock.advance(seconds=1)
    started_by_docker(docker, "t1-a")


def test_every_counter_stands_at_zero_before_the_first_line(build: Callable[..., Daemon]) -> None:
    house = build()

    frame = [labels for name, labels in house.memory.counters.frame("t1-a") if "log" in name]
    assert {"oom", "engine_died", "ready", "stop_told", "other"} <= {row["event"] for row in frame}
    assert log_events(house) == {}


def test_telling_lines_are_counted_and_the_rest_is_not(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.write("t1-a", ERROR, LOAD, ERROR, "nothing of note", READY)
    docker.write("t1-a", "ERROR 11-30 12:00:00 [core.py:1] OSError: [Errno 98] Address in use")
    house.run(3)

    assert log_events(house) == {"error": 2, "ready": 1, "other": 1}


def test_memory_that_ran_out_is_told_at_once_and_counted_once(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.write("t1-a", OOM_LINE)
    house.run(2)
    assert [
        alert.labels["alertname"] for notice in house.receiver.took for alert in notice.alerts
    ] == ["VllmOOM"]
    docker.die("t1-a", log=OOM)
    docker.write("t1-a", OOM_LINE, OOM_LINE)
    house.run(5)

    assert ooms(house) == {"cuda_runtime": 1}
    assert house.memory.launches.before("t1-a", "", docker.clock.now()) is not None


def test_an_end_by_memory_is_counted_where_the_log_was_not_followed(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.boxes["t1-a"].unreadable = True
    docker.die("t1-a", log=OOM)
    house.run(3)
    docker.boxes["t1-a"].unreadable = False
    docker.write("t1-a", OOM_LINE)
    house.run(60)

    assert ooms(house) == {"cuda_runtime": 1}


def test_what_was_written_before_sentinel_came_is_no_news(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    docker.write("t1-a", HEALTHY)
    docker.write("t1-a", OOM_LINE)
    docker.clock.advance(seconds=60)
    house = build()

    assert log_events(house) == {}
    assert ooms(house) == {}
    launch = house.loop.parts.watch.targets["t1-a"].launch
    assert launch is not None
    assert launch.facts["version"] == "0.22.1"


def test_facts_of_a_launch_are_kept_and_a_start_says_how_far_it_is(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.boxes["t1-a"].loads_for = 1e9
    relaunched(docker)
    house.run(1)
    docker.write("t1-a", "INFO 11-30 12:00:00 [gpu_model_runner.py:1] Starting to load model m...")
    house.run(2)
    assert "loading the weights" in str(house.target("t1-a")["because"])
    docker.write("t1-a", "Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:01<?]")
    house.run(2)
    assert "50 % of the weights loaded" in str(house.target("t1-a")["because"])
    docker.write("t1-a", HEALTHY)
    house.run(2)

    (launch,) = house.memory.launches.facts("t1-a", 1)
    facts: Any = launch["facts"]
    assert facts["version"] == "0.22.1"
    assert {"kv_tokens", "concurrency", "weights_gib", "load_seconds"} <= facts.keys()


def test_a_restart_of_the_daemon_neither_loses_a_line_nor_counts_one_twice(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.write("t1-a", ERROR)
    house.run(2)
    docker.write("t1-a", ERROR)  # within the same instant as the next
    docker.write("t1-a", ERROR)
    house.again()
    docker.write("t1-a", ERROR)
    house.run(5)
    assert log_events(house) == {"error": 4}
    house.again()
    house.run(5)

    assert log_events(house) == {"error": 4}


def test_a_death_while_the_daemon_was_down_is_read_when_it_is_back(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.clock.advance(seconds=5)
    docker.write("t1-a", OOM_LINE)
    docker.die("t1-a", log=OOM)
    house.heard = len(docker.events)  # nobody hears of it
    house.again()
    house.run(5)

    assert ooms(house) == {"cuda_runtime": 1}
    assert log_events(house)["oom"] == 1


def test_the_cause_of_a_launch_that_docker_replaced_at_once_comes_from_its_log(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, restart_policy="always")
    docker.write("t1-a", OOM_LINE)
    house.run(1)
    docker.clock.advance(seconds=1)
    docker.die("t1-a", log="")
    docker.clock.advance(seconds=0.2)
    started_by_docker(docker, "t1-a")
    house.run(3)

    ended = house.loop.parts.watch.targets["t1-a"].previous_ending
    assert ended is not None
    assert ended.cause == "cuda_oom_runtime"
    assert ooms(house) == {"cuda_runtime": 1}


def test_each_launch_has_its_own_memory_to_run_out(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    for _ in range(3):
        docker.write("t1-a", OOM_LINE)
        house.run(1, step=0.5)
        relaunched(docker)
        house.run(2)

    assert ooms(house) == {"cuda_runtime": 1, "cuda_startup": 2}


def test_an_error_that_it_got_over_did_not_kill_it(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build(mode=Mode.WATCH)
    docker.write("t1-a", READY, OOM_LINE, LOAD, LOAD, LOAD, LOAD)
    house.run(3)
    docker.die("t1-a", code=139, log="")
    house.run(3)

    launch = house.loop.parts.watch.targets["t1-a"].launch
    assert launch is not None
    assert launch.ending is not None
    assert launch.ending.cause == "engine_died"


def test_a_log_that_cannot_be_read_is_a_problem_said_and_tried_rarely(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    docker.boxes["t1-a"].unreadable = True
    house = build()
    house.run(120)

    assert [text for text in house.loop.problems() if text.startswith("t1-a: its log cannot")]
    assert len(docker.follows) == 1
    assert house.state("t1-a") == "idle"


def test_an_engine_that_does_not_answer_is_asked_less_and_less(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    opened = len(docker.follows)
    follow = docker.follow

    async def refused(*args: Any, **named: Any) -> None:
        docker.lost = True
        try:
            await follow(*args, **named)
        finally:
            docker.lost = False
            docker.follows.append("refused")

    house.loop.parts.follower._logs.follow = refused  # type: ignore[method-assign]
    house.run(300)

    assert len(docker.follows) - opened < 15


def test_a_target_that_is_let_go_is_followed_no_more(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    tail = next(iter(house.loop.parts.follower._streams.values())).tail
    house.loop.parts.watch.targets.clear()
    house.loop.parts.follower.follow({}, docker.clock.now())

    assert tail.dropped
    with pytest.raises(_DroppedError):
        house.loop.parts.follower._heard(tail, docker.boxes["t1-a"].written)


def test_nothing_that_users_sent_is_kept(build: Callable[..., Daemon], docker: FakeDocker) -> None:
    house = build()
    docker.write("t1-a", PROMPT, OOM_LINE, PROMPT)
    docker.die("t1-a", log=CRASH_LOG)
    house.run(10)

    dump = "\n".join(house.memory.db.iterdump())
    assert "Tried to allocate" in dump
    assert "s3cr3t" not in dump


def test_a_quiet_log_costs_the_disk_one_write_a_minute(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    writes: list[str] = []
    reached = house.memory.logbook.reached

    def noted(container_id: str, position: Any) -> None:
        writes.append(container_id)
        reached(container_id, position)

    house.memory.logbook.reached = noted  # type: ignore[method-assign]
    for _ in range(120):
        docker.write("t1-a", LOAD)
        house.run(1)

    assert len(writes) <= 3


@pytest.mark.parametrize(
    ("limit", "kind"),
    [(1 << 30, "cgroup"), (0, "host"), (None, "cgroup")],
    ids=["of its own", "none: the host's", "not said"],
)
def test_whose_memory_it_was_is_told_by_the_limit(
    build: Callable[..., Daemon], docker: FakeDocker, limit: int | None, kind: str
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, memory_limit=limit)
    house = build()
    docker._say("oom", box)
    house.run(2)
    assert ooms(house) == {kind: 1}
    assert house.state("t1-a") == "idle"
    docker.die("t1-a", code=137, log="")
    box.seen = replace(box.seen, oom_killed=True)
    house.run(3)

    assert ooms(house) == {kind: 1}
    incident = house.memory.incidents.get(1)
    assert incident is not None
    assert incident.diagnosis["cause"] == f"{kind}_oom"


def test_several_witnesses_of_one_event_count_once(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    ledger, now = house.loop.parts.watch.ledger, docker.clock.now()

    assert ledger.count_oom("t1-a", "cgroup", "the kernel's log", now)
    assert not ledger.count_oom("t1-a", "host", "its control group", now + timedelta(seconds=3))
    assert not ledger.count_oom("t1-a", "cgroup", "Docker", now - timedelta(seconds=3))
    assert ledger.count_oom("t1-a", "cuda_runtime", "its log", now + timedelta(seconds=1))
    assert ledger.count_oom("t1-a", "cgroup", "again", now + timedelta(minutes=1))
    house.again()
    ledger = house.loop.parts.watch.ledger
    assert not ledger.count_oom("t1-a", "cgroup", "after a restart", now + timedelta(seconds=5))

    assert ooms(house) == {"cgroup": 2, "cuda_runtime": 1}


def test_a_container_that_waits_for_docker_is_read_to_its_end(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    box = docker.boxes["t1-a"]
    docker.die("t1-a", log=CRASH_LOG)
    docker.write("t1-a", ERROR)
    box.seen = replace(box.seen, status=Status.RESTARTING)
    house.run(30)
    asked = len(docker.follows)
    house.run(30)

    assert log_events(house)["error"] == 1
    assert len(docker.follows) == asked  # once it was read to the end, nothing is asked again
