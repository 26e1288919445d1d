"""The cause behind an incident: named from all there is, said once, and told without the log."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.diagnosis.pattern import Pattern, Rank
from sentinel.core.model.intent import Mode
from sentinel.core.voice.say import say
from sentinel.runtime.counts import Counts
from sentinel.store.picture import Reader
from tests.fakes import FIXTURES, FakeClock, FakeDocker, follow_inline
from tests.runtime.house import Daemon, plan
from tests.runtime.world import dead_engine, started_by_docker, started_by_person

CPU = FIXTURES / "vllm-0.32.0-cpu"
GPU = FIXTURES / "vllm-0.22.1-h200"
OOM = (GPU / "log_gpu_runtime_oom.txt").read_text()
WORKER = (CPU / "log_0.32_worker_sigkill_rc0.txt").read_text()
BAD = (CPU / "log_0.32_start_mns0.txt").read_text()
READY = "INFO 11-30 12:00:00 [launcher.py:1] Application startup complete."


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    return docker


@pytest.fixture
def build(tmp_path: Path, docker: FakeDocker) -> Iterator[Callable[..., Daemon]]:
    made: list[Daemon] = []

    def start(**changes: Any) -> Daemon:
        house = Daemon(
            folder=tmp_path,
            docker=docker,
            clock=docker.clock,
            world={"logs": docker, "follow": follow_inline},
            plan=plan(Mode.WATCH, **changes),
        )
        made.append(house)
        house.run(3)
        return house

    yield start
    for each in made:
        each.memory.close()


def incident(house: Daemon) -> dict[str, Any]:
    found = Reader(house.folder / "state.db").incident("1")
    assert found is not None
    return found


def causes_said(house: Daemon) -> list[str]:
    return [
        line["facts"]["cause"]
        for line in incident(house)["timeline"]
        if line["event"] == "diagnosis_made"
    ]


def test_a_death_is_diagnosed_whole_and_said_once(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.die("t1-a", log=OOM)
    house.run(120)

    found = incident(house)["diagnosis"]
    assert found["cause"] == "cuda_oom_runtime"
    assert found["kind"] == "oom"
    assert found["confidence"] >= 0.9
    assert {"says", "advice", "avoid", "act", "restart_helps", "lower_max_num_seqs_helps"} <= set(
        found
    )
    assert {one["source"] for one in found["evidence"]} >= {"log", "exit_code", "inspect"}
    assert causes_said(house) == ["cuda_oom_runtime"]


@pytest.mark.parametrize("share_logs", [False, True], ids=["private", "shared"])
def test_the_message_tells_cause_and_advice_and_of_the_log_only_what_may_leave(
    build: Callable[..., Daemon], docker: FakeDocker, share_logs: bool
) -> None:
    house = build(share_logs=share_logs)
    docker.boxes["t1-a"].loads_for = 1e9
    started_by_person(docker, "t1-a")
    house.run(2)
    docker.die("t1-a", code=1, log=BAD)
    house.run(5)

    notice = house.receiver.took[0]
    lines = {line.label: line.text for line in say(notice).lines}
    assert lines["Cause"] == "bad_arguments"
    assert "Correct the argument" in lines["Advice"]
    assert notice.incident is not None
    sources = {one["source"] for one in notice.incident["diagnosis"]["evidence"]}
    assert ("log" in sources) is share_logs
    quoted = "Input should be" in str(notice)
    assert quoted is share_logs
    assert "Input should be" in incident(house)["diagnosis"]["advice"]


def test_an_engine_that_is_dead_while_its_server_lives_is_known_by_its_log(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.write("t1-a", READY, WORKER)
    dead_engine(docker, "t1-a")
    house.run(60)

    assert incident(house)["diagnosis"]["cause"] == "worker_died"


def test_a_process_killed_for_memory_under_a_server_that_lives(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, memory_limit=8 << 30)
    house = build()
    docker._say("oom", box)
    house.run(3)

    found = incident(house)["diagnosis"]
    assert found["cause"] == "cgroup_oom"
    assert "8.0 GiB" in found["advice"]
    assert "out of memory at" in found["evidence"][0]["text"]


QUOTA = Pattern(
    cause="disk_full", match=re.compile("quota is used up"), rank=Rank.OPERATOR, says="no quota"
)
SAID = "INFO 11-30 12:00:01 [x.py:1] the quota is used up"


def test_a_pattern_of_ones_own_names_the_cause_of_a_death(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build(log_patterns=[QUOTA])
    started_by_docker(docker, "t1-a")
    docker.write("t1-a", READY, SAID)
    house.run(5)
    docker.die("t1-a", log=WORKER)
    house.run(10)

    found = incident(house)["diagnosis"]
    assert (found["cause"], found["says"]) == ("disk_full", "no quota")


def test_what_fails_for_the_same_reason_time_and_again_is_named_once(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    for _ in range(5):
        docker.die("t1-a", log=BAD)
        house.run(6)
        started_by_docker(docker, "t1-a")
        house.run(6)

    assert causes_said(house) == ["engine_died", "bad_arguments"]


@pytest.mark.parametrize(("ago", "cause"), [(1, "host_oom"), (600, "worker_died")])
def test_whom_the_kernel_killed_says_why_a_worker_died(
    build: Callable[..., Daemon], docker: FakeDocker, ago: int, cause: str
) -> None:
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, memory_limit=8 << 30)
    house = build()
    with house.memory.together():
        counts = Counts(house.memory, lambda: "gpu1")
        counts.oom("t1-a", "host", "x was killed", docker.clock.now(), knows=True)
    docker.clock.advance(seconds=ago)
    docker.die("t1-a", log=WORKER)
    house.run(10)

    found = incident(house)["diagnosis"]
    assert found["cause"] == cause
    assert "Its limit is" not in found["advice"]


def test_a_load_is_named_from_two_looks_at_the_metrics(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    body = (CPU / "metrics_0.32_saturated_t0.txt").read_bytes()
    docker.boxes["t1-a"].body = body
    house = build()
    for tokens in range(1000, 121_000, 1000):  # it works all the time, and its queue stays
        docker.boxes["t1-a"].body = re.sub(
            rb"(?m)^(vllm:generation_tokens_total\{.*\}) .*", rb"\1 %d" % tokens, body
        )
        house.run(5)

    found = incident(house)["diagnosis"]
    assert found["cause"] == "saturated"
    assert found["kind"] == "load"
    assert any(one["source"] == "metrics" for one in found["evidence"])
    assert causes_said(house) == ["saturated"]


def test_a_hang_is_named_though_health_and_log_say_nothing(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    box = docker.boxes["t1-a"]
    house = build()
    box.body = (CPU / "metrics_0.32_hung_inflight_t0.txt").read_bytes()
    box.answers = False
    house.run(400, step=2)

    assert house.state("t1-a") == "hung"
    found = incident(house)["diagnosis"]
    assert (found["cause"], found["kind"], found["act"]) == ("engine_hung", "hang", "restart")


def test_better_evidence_replaces_worse_and_a_guess_replaces_nothing(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    docker.mute = True  # its log comes late
    docker.write("t1-a", READY, OOM)
    docker.die("t1-a", code=1, log="")
    house.run(3)
    assert incident(house)["diagnosis"]["cause"] == "engine_died"
    docker.mute = False
    house.run(60)
    assert incident(house)["diagnosis"]["cause"] == "cuda_oom_runtime"
    started_by_docker(docker, "t1-a")
    house.run(1)
    docker.clock.advance(seconds=1)
    docker.die("t1-a", code=1, log="")
    house.run(40)

    assert incident(house)["diagnosis"]["cause"] == "cuda_oom_runtime"
    assert causes_said(house) == ["engine_died", "cuda_oom_runtime"]


def test_what_changed_since_it_was_healthy_is_in_the_incident(
    build: Callable[..., Daemon], docker: FakeDocker
) -> None:
    house = build()
    box = docker.boxes["t1-a"]
    docker.stop_by_person("t1-a")
    house.run(2)
    box.seen = replace(
        box.seen,
        image_id="sha256:2222222222222222",
        argv=(*box.seen.argv, "--max-model-len", "32768", "--api-key", "s3cr3t"),
        environment={"VLLM_USE_V1": "0"},
    )
    started_by_docker(docker, "t1-a")
    house.run(2)
    docker.die("t1-a", code=1, log=BAD)
    house.run(3)

    assert incident(house)["changed"] == [
        "image digest 1 → 222222222222",
        "--max-model-len 32768 added",
        "--api-key <secret> added",
        "VLLM_USE_V1 0 added",
    ]
    assert house.receiver.took[0].incident is not None
    assert house.receiver.took[0].incident["changed"] == incident(house)["changed"]
