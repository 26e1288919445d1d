"""Guards as they hold in a running daemon: in the log, in `explain` and in messages alike."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.dispatch.interval import Interval, Minutes, Times
from sentinel.core.model.command import PostAlerts, PostedAlert
from sentinel.core.model.container import EngineEvent
from sentinel.core.model.incident import Subject
from sentinel.core.model.intent import Action, Mode
from sentinel.core.policy.guard import GUARDS, Held
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan
from tests.runtime.test_act import LIMITED, act, events_of, limit_of, outcomes, tell
from tests.runtime.world import dead_engine, recreate

NIGHTS = {"nights": Interval((Times(minutes=(Minutes(0, 300),)),))}
POOL: dict[str, Any] = {"pool_of": lambda _name: "main", "min_healthy": {"main": 1}}


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    docker.add("t1-b")
    return docker


def daemon(tmp_path: Path, docker: FakeDocker, mode: Mode = Mode.ACT, **changes: Any) -> Daemon:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(mode, **changes))
    house.run(5)
    return house


def held_by(house: Daemon) -> list[str]:
    """Guards that hold t1-a, said the same in the status, the explanation and the log."""
    assert house.shown is not None
    explained = house.shown.explain["t1-a"]["guards"]
    holding = {guard["guard"]: guard["because"] for guard in explained if guard["holds"]}
    held = house.target("t1-a")["held"]
    assert all(holding[one["guard"]] == one["because"] for one in held)
    if held:
        rows = house.memory.db.execute("SELECT because FROM record WHERE event = 'intent_held'")
        assert held[0]["because"] in [row["because"] for row in rows]
    return [one["guard"] for one in held]


@pytest.mark.parametrize("guard", GUARDS)
def test_what_a_guard_says_is_the_same_wherever_it_is_read(
    tmp_path: Path, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    house, says = daemon(tmp_path, docker), f"{guard} has its reason"
    monkeypatch.setitem(GUARDS, guard, lambda _now: Held(guard=guard, because=says))
    with capture_logs() as lines:
        docker.die("t1-a")
        house.run(3)

    assert docker.done == []
    assert held_by(house) == [guard]  # in status, explain and the timeline
    assert [line["because"] for line in lines if line["event"] == "intent_held"] == [says]
    told = [notice.decision for notice in house.receiver.took if notice.kind == "held"]
    silent = guard in ("external_alert", "unconfirmed")
    assert [one.because for one in told if one is not None] == ([] if silent else [says])
    refused = act(house, Action.RESTART, dry_run=True)["held"]  # to a person
    assert [one["because"] for one in refused] == ([] if guard == "mode" else [says])
    metrics = house.metrics.exposition(()).decode()
    assert f'sentinel_guard_holds{{guard="{guard}"}} 1' in metrics or silent


def test_in_a_time_of_maintenance_a_target_is_left_alone(
    tmp_path: Path, docker: FakeDocker
) -> None:
    docker.clock = FakeClock(datetime(2030, 1, 1, 4, 58, tzinfo=UTC))
    house = daemon(tmp_path, docker, intervals=NIGHTS, maintenance=(("nights", ("t1-*",)),))
    docker.die("t1-a")
    house.run(60)
    assert held_by(house)[0] == "maintenance"
    assert docker.done == []
    house.run(90)

    assert docker.done == ["start t1-a"]


def test_what_is_being_deployed_is_given_time(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker)
    recreate(docker, "t1-a", loads_for=3600)
    house.run(5)
    docker.die("t1-a")
    house.run(30)
    assert "deploy_in_progress" in held_by(house)
    house.run(200, step=5)

    assert docker.done == ["start t1-a"]


@pytest.mark.parametrize("found_before", [True, False])
def test_a_pull_of_its_image_is_a_deploy(
    tmp_path: Path, docker: FakeDocker, found_before: bool
) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(Mode.ACT))
    house.run(5 if found_before else 0)
    at = docker.clock.now()
    pulled = EngineEvent(
        at=at, at_ns=0, action="pull", container_id="", name="vllm/vllm-openai:v0.33.0"
    )
    house.loop.parts.watch.heard(pulled)
    house.run(5)
    docker.die("t1-a")
    house.run(30)
    assert held_by(house)[0] == "deploy_in_progress"
    assert "somebody pulled its image" in house.target("t1-a")["held"][0]["because"]
    house.run(200, step=5)

    assert docker.done == ["start t1-a"]


def test_the_last_healthy_one_of_a_pool_is_not_restarted(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.WATCH, **POOL)
    docker.die("t1-b")
    house.run(5)
    answer = act(house, Action.RESTART)

    assert [held["guard"] for held in answer["held"]] == ["last_healthy"]
    assert "pool main would be left with nobody" in answer["held"][0]["because"]
    assert act(house, Action.RESTART, dry_run=True, force=("last_healthy",))["held"] == []


def test_one_that_has_failed_itself_is_restarted_though_it_is_the_last(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(
        tmp_path,
        docker,
        **POOL,
    )
    docker.stop_by_person("t1-b")
    dead_engine(docker, "t1-a")
    house.run(30)

    assert docker.done == ["stop t1-a", "start t1-a"]


@pytest.mark.parametrize(
    ("accepts", "guard"), [(False, "external_alert"), (True, "unconfirmed")], ids=["no", "if"]
)
def test_what_others_post_is_held_without_a_word_of_its_own(
    tmp_path: Path, docker: FakeDocker, accepts: bool, guard: str
) -> None:
    house = daemon(tmp_path, docker, accept_external=accepts)
    labels = {"alertname": "VllmEngineHung", "target": "t1-a", "severity": "critical"}
    tell(house, PostAlerts(by="prom", alerts=(PostedAlert(labels=labels),)))
    house.run(5)

    assert held_by(house)[0] == guard
    assert docker.done == []
    assert {notice.kind for notice in house.receiver.took} == {"alert"}


def test_a_fault_of_its_gpu_is_not_the_containers(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker)
    alert = ActiveAlert(
        key="xid",
        alertname="GPUXid",
        labels={"gpu": "0", "target": "t1-a"},
        annotations={"summary": "GPU 0 of gpu1 has a fault that needs a reset"},
        state="firing",
        value=1.0,
        active_at=docker.clock.now(),
        last_seen_at=docker.clock.now(),
        rule="gpu/GPUXid",
    )
    subject = Subject(kind="gpu", name="GPU-1")
    number = house.loop.parts.casebook.open(subject, "critical", "x", docker.clock.now())
    house.loop.parts.casebook.cases[number].alerts["xid"] = alert
    docker.die("t1-a")
    docker.die("t1-b")
    house.run(30)

    assert held_by(house)[0] == "beyond_container"
    assert "a fault that needs a reset: no container" in house.target("t1-a")["held"][0]["because"]
    assert docker.done == ["start t1-b"]


def test_two_do_not_start_at_once_on_one_gpu(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker)
    house.loop.parts.decider.circumstances._gpus_of = lambda _name: ("GPU-1",)
    docker.die("t1-b")
    docker.boxes["t1-b"].loads_for = 60
    house.run(10)
    answer = act(house, Action.RESTART, force=("budget_host",))
    assert [held["guard"] for held in answer["held"]] == ["gpu_start"]
    assert "t1-b is loading onto the same GPU" in answer["held"][0]["because"]
    house.run(90)

    assert act(house, Action.RESTART, dry_run=True)["held"] == []


def test_a_lowered_limit_is_set_back_in_a_time_of_maintenance(
    tmp_path: Path, docker: FakeDocker
) -> None:
    docker.clock = FakeClock(datetime(2030, 1, 1, 23, 30, tzinfo=UTC))
    docker.boxes["t1-a"].seen = replace(docker.boxes["t1-a"].seen, argv=LIMITED)
    house = daemon(tmp_path, docker, intervals=NIGHTS, maintenance=(("nights", ("t1-*",)),))
    act(house, to=64)
    house.run(60)
    house.run(1200, step=10)
    assert (outcomes(house), limit_of(docker)) == (["verified"], "64")
    house.run(900, step=5)

    assert (outcomes(house), limit_of(docker)) == (["verified"] * 2, "256")
    assert "limit_restored" in events_of(house)


def test_hindsight_says_what_became_of_what_was_only_watched(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.WATCH)
    dead_engine(docker, "t1-a")  # and then it heals by itself
    docker.die("t1-b")  # and nobody does anything
    house.run(60)
    docker.boxes["t1-a"].health = 200
    house.run(3700, step=20)
    rows = house.memory.db.execute("SELECT target, remedy, verdict FROM held_step ORDER BY target")

    assert [(row["target"], row["verdict"]) for row in rows] == [
        ("t1-a", "healed"),
        ("t1-b", "went_on"),
    ]


@pytest.mark.parametrize(
    ("lets_go_after", "waited"), [(30, 30), (3600, 120)], ids=["soon", "never"]
)
def test_what_was_stopped_has_to_let_go_of_its_gpu_before_it_is_started(
    tmp_path: Path, docker: FakeDocker, lets_go_after: float, waited: float
) -> None:
    house = daemon(tmp_path, docker)

    def is_held(container_ids: Collection[str], since: float) -> bool:
        assert docker.boxes["t1-a"].seen.id in container_ids
        return docker.clock.monotonic() - since < lets_go_after

    house.loop.parts.actor._bench._gpus_held = is_held
    act(house, Action.RESTART)
    house.run(2)
    assert docker.done == ["stop t1-a"]
    house.run(waited - 10)
    assert docker.done == ["stop t1-a"]
    house.run(20)

    assert docker.done == ["stop t1-a", "start t1-a"]
