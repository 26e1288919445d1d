"""A limit is lowered, proved, taken back, restored: over a fake engine that forgives nothing."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.command import Act, Approve, Command, Pause
from sentinel.core.model.container import Status
from sentinel.core.model.errors import Ambiguous, Permanent, Transient
from sentinel.core.model.intent import Action, Mode, Wish
from sentinel.core.policy.discover import Sieve
from sentinel.runtime.obey import Obedience
from sentinel.runtime.order import Later
from sentinel.store.journal import Journal
from tests.fake_recreation import FakeRecreation
from tests.fakes import FakeClock, FakeContainer, FakeDocker, Killed, follow_inline
from tests.runtime.house import Daemon, plan
from tests.runtime.test_crash import Trap
from tests.runtime.world import rename, started_by_docker, started_by_person

LOWER = Action.LOWER_MAX_NUM_SEQS
LIMITED = ("vllm", "serve", "tiny", "--port", "8000", "--max-num-seqs", "256")
SWAP = [
    "create t1-a.sn-1-00000000",
    "stop t1-a",
    "start t1-a",
    "remove t1-a.so-1-00000000",
]


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    for name in ("t1-a", "t1-b"):
        box = docker.add(name, policy="unless-stopped")
        box.seen = replace(box.seen, argv=LIMITED)
    return docker


@pytest.fixture
def house(tmp_path: Path, docker: FakeDocker) -> Daemon:
    return daemon(tmp_path, docker)


def daemon(tmp_path: Path, docker: FakeDocker, mode: Mode = Mode.WATCH, **changes: Any) -> Daemon:
    found = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(mode, **changes))
    found.run(5)
    return found


def tell(house: Daemon, command: Command) -> Any:
    parts = house.loop.parts
    obedience = Obedience(
        house.clock,
        house.memory,
        parts.history,
        parts.watch,
        parts.decider,
        parts.casebook,
        parts.dispatch,
        lambda _by: {},
    )
    return obedience.obey(command)


def act(house: Daemon, action: Action = LOWER, target: str = "t1-a", **how: Any) -> dict[str, Any]:
    """What such an order is answered, once what it would change has been looked at."""
    answer = tell(house, Act(by="ada", action=action, target=target, **how))
    if isinstance(answer, Later):
        told: list[Any] = []
        answer.then(told.append)
        house.turn()
        (answer,) = told
    if isinstance(answer, BaseException):
        raise answer
    return dict(answer)


def outcomes(house: Daemon) -> list[str]:
    rows = house.memory.db.execute("SELECT outcome FROM intent ORDER BY number")
    return [row["outcome"] for row in rows]


def closed_because(house: Daemon) -> str:
    rows = house.memory.db.execute("SELECT closed_because FROM intent ORDER BY number DESC")
    return str(rows.fetchone()["closed_because"])


def events_of(house: Daemon) -> list[str]:
    rows = house.memory.db.execute("SELECT event FROM record WHERE target = 't1-a'")
    return [row["event"] for row in rows]


def told_of(house: Daemon, alertname: str) -> list[str]:
    rows = house.memory.db.execute("SELECT event, facts FROM record WHERE event LIKE 'alert_%'")
    return [row["event"] for row in rows if alertname in row["facts"]]


def limit_of(docker: FakeDocker, name: str = "t1-a") -> str:
    return docker.boxes[name].seen.argv[-1]


# lowered


def test_a_lower_limit_is_proved_and_the_old_container_goes(
    house: Daemon, docker: FakeDocker
) -> None:
    answer = act(house, to=64)
    assert answer["held"] == []
    assert answer["diff"] == ["-command: --max-num-seqs 256", "+command: --max-num-seqs 64"]
    assert answer["intent"]["action"] == "lower_max_num_seqs"
    assert answer["intent"]["by"] == "ada"
    house.run(60)

    assert docker.done == SWAP
    assert outcomes(house) == ["verified"]
    assert "its log confirms 64" in closed_because(house)
    assert sorted(docker.boxes) == ["t1-a", "t1-b"]
    assert limit_of(docker) == "64"
    assert docker.boxes["t1-a"].seen.labels["sentinel.original-max-num-seqs"] == "256"
    assert docker.boxes["t1-a"].seen.restart_policy == "unless-stopped"
    assert house.state("t1-a") == "idle"


def test_it_is_one_incident_of_severity_info_and_no_alarm(house: Daemon) -> None:
    act(house, to=64)
    house.run(60)

    (incident,) = [house.memory.incidents.get(1)]
    assert incident is not None
    assert (incident.severity, incident.resolved_at is not None) == ("info", True)
    assert house.receiver.took == []
    told = events_of(house)
    assert {"target_gone", "alert_firing"}.isdisjoint(told)
    assert told.count("step_started") == 3
    assert told.count("step_done") == 3
    assert told.index("evidence_saved") < told.index("step_started")


def test_what_the_container_was_given_stays_nowhere(house: Daemon) -> None:
    act(house, to=64)
    house.run(2)
    kept = house.memory.db.execute("SELECT recreation FROM intent").fetchone()[0]
    assert "s3cr3t" in kept
    house.run(60)

    assert house.memory.db.execute("SELECT recreation FROM intent").fetchone()[0] is None
    rows = house.memory.db.execute("SELECT because, facts FROM record")
    assert not any("s3cr3t" in row["because"] + row["facts"] for row in rows)


def test_a_dry_run_says_what_would_be_and_touches_nothing(
    house: Daemon, docker: FakeDocker
) -> None:
    answer = act(house, to=64, dry_run=True)
    house.run(30)

    assert (answer["intent"], answer["held"]) == (None, [])
    assert answer["diff"][1] == "+command: --max-num-seqs 64"
    assert docker.done == []
    assert outcomes(house) == []


def test_the_port_of_the_host_that_docker_chose_anew_is_said(
    house: Daemon, docker: FakeDocker
) -> None:
    docker.boxes["t1-a"].chosen_port = True
    act(house, to=64)
    house.run(60)

    assert outcomes(house) == ["verified"]
    assert "it has port 9000 of the host for its 8000 now" in closed_because(house)


# taken back


def test_one_that_dies_of_it_is_taken_back(house: Daemon, docker: FakeDocker) -> None:
    docker.boxes["t1-a"].dies_with = frozenset({64})
    act(house, to=64)
    house.run(60)

    assert outcomes(house) == ["rolled_back"]
    assert docker.done[-2:] == ["remove t1-a", "start t1-a"]
    for alertname in ("VllmContainerExited", "VllmStartupFailed"):
        assert told_of(house, alertname) == ["alert_firing", "alert_resolved"]
    assert limit_of(docker) == "256"
    assert docker.boxes["t1-a"].seen.restart_policy == "unless-stopped"
    assert house.state("t1-a") == "idle"


def test_one_that_never_serves_is_taken_back_by_the_deadline(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, verify_within=timedelta(minutes=2))
    docker.boxes["t1-a"].loads_for = 600
    act(house, to=64)
    house.run(60)
    assert outcomes(house) == [None]
    house.run(120)

    assert outcomes(house) == ["rolled_back"]
    assert limit_of(docker) == "256"


def test_a_start_that_is_refused_three_times_is_taken_back(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FakeRecreation.do
    refused: list[Any] = []

    def do(self: FakeRecreation, deed: Any) -> None:
        if type(deed).__name__ == "Start" and len(refused) < 3:
            refused.append(deed)
            raise Transient("no such device")
        real(self, deed)

    monkeypatch.setattr(FakeRecreation, "do", do)
    act(house, to=64)
    house.run(90)

    assert outcomes(house) == ["rolled_back"]
    assert "no such device" in closed_because(house)
    assert (limit_of(docker), house.state("t1-a")) == ("256", "idle")


def test_an_engine_that_says_another_limit_is_taken_back(
    house: Daemon, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tests.fake_recreation._SAYS", "non-default args: {'max_num_seqs': 999%.0s}"
    )
    act(house, to=64)
    house.run(90)

    assert outcomes(house) == ["rolled_back"]
    assert "999" in closed_because(house)
    assert limit_of(docker) == "256"


def test_a_person_who_stops_it_meanwhile_is_not_overruled(
    house: Daemon, docker: FakeDocker
) -> None:
    act(house, to=64)
    house.run(10)
    assert docker.done[-1] == "start t1-a"
    docker.stop_by_person("t1-a")
    house.run(60)

    assert outcomes(house) == ["refused"]
    assert limit_of(docker) == "256"
    assert docker.boxes["t1-a"].seen.status is Status.EXITED
    assert house.state("t1-a") == "stopped"


def test_a_person_who_starts_it_anew_first_is_left_alone(house: Daemon, docker: FakeDocker) -> None:
    act(house, to=64)
    started_by_person(docker, "t1-a")
    house.run(60)

    assert outcomes(house) == ["rolled_back"]
    assert [done for done in docker.done if not done.startswith(("create", "remove"))] == []
    assert limit_of(docker) == "256"


@pytest.mark.parametrize(
    ("forced", "outcome"), [((), "refused"), (("deploy_in_progress",), "verified")]
)
def test_a_deploy_that_has_begun_since_it_was_decided_is_not_disturbed(
    house: Daemon, docker: FakeDocker, forced: tuple[str, ...], outcome: str
) -> None:
    seen = docker.boxes["t1-a"].seen
    assert seen.started_at is not None
    wish = Wish(
        target="t1-a",
        action=LOWER,
        mode=Mode.ACT,
        because="x",
        by="ada",
        container_id=seen.id,
        saw_started_at=seen.started_at,
        limit=64,
        forced=forced,
    )
    house.memory.journal.reserve(wish, house.clock.now())
    composes = docker.add(f"{seen.id[:12]}_t1-a")
    composes.seen = replace(composes.seen, id="c" * 64, status=Status.CREATED)
    house.run(60)

    assert outcomes(house) == [outcome]
    if not forced:
        assert "Docker Compose is making t1-a anew" in closed_because(house)
        assert docker.done == []


# restored


def test_a_limit_is_restored_when_a_person_says_so(house: Daemon, docker: FakeDocker) -> None:
    act(house, to=64)
    house.run(60)
    house.clock.advance(minutes=16)
    house.run(2)
    answer = act(house, Action.RESTORE)
    assert answer["diff"][1] == "+command: --max-num-seqs 256"
    house.run(60)

    assert outcomes(house) == ["verified", "verified"]
    assert limit_of(docker) == "256"
    assert "sentinel.original-max-num-seqs" not in docker.boxes["t1-a"].seen.labels
    assert "limit_restored" in events_of(house)


def test_a_limit_is_restored_at_the_next_restart_for_another_reason(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.ACT)
    act(house, to=64)
    house.run(60)
    house.clock.advance(minutes=16)
    house.run(2)
    docker.die("t1-a")
    house.run(60)

    assert outcomes(house) == ["verified", "verified"]
    assert limit_of(docker) == "256"
    assert "limit_restored" in events_of(house)
    assert house.state("t1-a") == "idle"
    assert told_of(house, "VllmContainerExited") == ["alert_firing", "alert_resolved"]


def test_nothing_to_restore_changes_nothing(house: Daemon) -> None:
    answer = act(house, Action.RESTORE, dry_run=True)

    assert [held["guard"] for held in answer["held"]] == ["changes_nothing"]


# held


@pytest.mark.parametrize(
    ("guard", "prepare"),
    [
        pytest.param("changes_nothing", lambda h, d: {"to": 256}, id="not below what runs"),
        pytest.param(
            "arguments_unclear", lambda h, d: runs(d, ("/start.sh", "--fast")), id="a wrapper"
        ),
        pytest.param(
            "foreign_orchestrator",
            lambda h, d: labelled(d, {"com.docker.swarm.task.id": "x"}),
            id="swarm",
        ),
        pytest.param(
            "other_owner", lambda h, d: labelled(d, {"PODMAN_SYSTEMD_UNIT": "x"}), id="a unit"
        ),
        pytest.param("paused", lambda h, d: paused(h), id="paused"),
    ],
)
def test_a_guard_holds_an_order_with_its_own_words(
    house: Daemon,
    docker: FakeDocker,
    guard: str,
    prepare: Callable[[Daemon, FakeDocker], dict[str, Any] | None],
) -> None:
    how = prepare(house, docker) or {}
    answer = act(house, **{"to": 64, **how})
    house.run(10)

    assert guard in [held["guard"] for held in answer["held"]]
    assert all(held["because"] for held in answer["held"])
    assert (answer["intent"], docker.done) == (None, [])


def runs(docker: FakeDocker, argv: tuple[str, ...]) -> None:
    docker.boxes["t1-a"].seen = replace(docker.boxes["t1-a"].seen, argv=argv)


def labelled(docker: FakeDocker, labels: dict[str, str]) -> None:
    docker.boxes["t1-a"].seen = replace(docker.boxes["t1-a"].seen, labels=labels)


def paused(house: Daemon) -> None:
    tell(house, Pause(by="ada"))


def test_a_limit_from_a_file_that_its_log_tells_is_not_raised(
    tmp_path: Path, docker: FakeDocker
) -> None:
    runs(docker, ("vllm", "serve", "tiny", "--config", "/etc/vllm.yaml"))
    docker.write("t1-a", "INFO [utils.py:286] non-default args: {'max_num_seqs': 32}\n")
    logs = {"logs": docker, "follow": follow_inline}
    house = Daemon(
        folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(Mode.WATCH), world=logs
    )
    house.run(5)

    answer = act(house, to=64, dry_run=True)
    assert [held["because"] for held in answer["held"]] == ["64 is not below the 32 it runs with"]
    answer = act(house, to=16, dry_run=True)
    assert answer["diff"] == ["-command: no --max-num-seqs", "+command: --max-num-seqs=16"]


def test_a_person_may_force_one_guard_by_name_and_never_the_stop_file(
    tmp_path: Path, docker: FakeDocker
) -> None:
    stop = tmp_path / "STOP"
    house = daemon(tmp_path, docker, stop_files=(str(stop),))
    paused(house)
    assert act(house, to=64, force=("paused",), dry_run=True)["held"] == []

    stop.touch()
    answer = act(house, to=64, force=("paused", "stop_file"))

    assert [held["guard"] for held in answer["held"]] == ["stop_file"]
    with pytest.raises(Permanent, match="there is no guard"):
        act(house, to=64, force=("pause",))


def test_once_somebody_has_taken_it_back_only_the_patch_is_given(
    house: Daemon, docker: FakeDocker
) -> None:
    composed = {
        "com.docker.compose.project": "llm",
        "com.docker.compose.service": "vllm",
        "com.docker.compose.project.config_files": "/srv/llm/docker-compose.yml",
    }
    labelled(docker, composed)
    answer = act(house, to=64)
    house.run(60)
    assert outcomes(house) == ["verified"]
    assert "+++ /srv/llm/docker-compose.yml\n" in answer["patch"]
    assert "-  … --max-num-seqs 256\n+  … --max-num-seqs 64\n" in answer["patch"]

    box = docker.boxes["t1-a"]  # `docker compose up` with the file as it was
    box.seen = replace(box.seen, id="f" * 64, argv=LIMITED, labels=composed)
    house.clock.advance(minutes=16)
    house.run(30)
    answer = act(house, to=64)

    assert [held["guard"] for held in answer["held"]] == ["other_owner"]
    assert "Docker Compose (llm) took the limit of 64 back" in answer["held"][0]["because"]
    assert answer["patch"]


def test_an_unknown_target_is_said_so(house: Daemon) -> None:
    with pytest.raises(Permanent, match="there is no target t9"):
        act(house, target="t9", to=64)


# restart


def test_a_person_restarts_a_healthy_target_in_watch_mode(
    house: Daemon, docker: FakeDocker
) -> None:
    answer = act(house, Action.RESTART)
    assert answer["intent"]["because"] == "ada asked for restart"
    house.run(60)

    assert docker.done == ["stop t1-a", "start t1-a"]
    assert outcomes(house) == ["verified"]
    assert house.receiver.took == []


# killed

JOURNAL = {
    "reserve": (1,),
    "differ": (1,),
    "recreate": (1, 2, 3),
    "begin": (1, 2, 3),
    "done": (1, 3),
    "expect_proof": (1,),
    "close": (1,),
}
HANDS = {"describe": (2,), "look": (2,), "raw": (3,), "do": range(1, 8)}
POINTS = [(point, nth) for owner in (JOURNAL, HANDS) for point in owner for nth in owner[point]]
TAKEN_BACK = [("recreate", 3), *(("do", nth) for nth in range(6, 11))]


def kill_and_go_on(
    tmp_path: Path,
    docker: FakeDocker,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    nth: int,
    *,
    before: bool,
) -> Daemon:
    """Lower it, be killed at that word, and start again over the same state."""
    del docker.boxes["t1-b"]
    house = daemon(tmp_path, docker)
    owner = Journal if point in JOURNAL else FakeRecreation
    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(owner, point, Trap(nth, before=before).around(getattr(owner, point)))
        act(house, to=64)
        house.run(60, step=2)
    docker.clock.advance(seconds=3)
    house.again()
    house.run(90, step=2)
    assert list(docker.boxes) == ["t1-a"]
    assert docker.boxes["t1-a"].seen.restart_policy == "unless-stopped"
    assert house.state("t1-a") == "idle"
    assert house.memory.journal.open() == []
    return house


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("point", "nth"), POINTS, ids=[f"{p} {n}" for p, n in POINTS])
def test_a_kill_anywhere_leaves_one_container_that_serves(
    tmp_path: Path,
    docker: FakeDocker,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    nth: int,
    before: bool,
) -> None:
    house = kill_and_go_on(tmp_path, docker, monkeypatch, point, nth, before=before)

    was_written_down = outcomes(house) != []  # else the order was never taken
    assert was_written_down == (point not in ("reserve", "differ"))
    assert limit_of(docker) == ("64" if was_written_down else "256")
    assert docker.done == (SWAP if was_written_down else [])


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize(("point", "nth"), TAKEN_BACK, ids=[f"{p} {n}" for p, n in TAKEN_BACK])
def test_a_kill_while_it_is_taken_back_leaves_the_old_one(
    tmp_path: Path,
    docker: FakeDocker,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    nth: int,
    before: bool,
) -> None:
    docker.boxes["t1-a"].dies_with = frozenset({64})
    house = kill_and_go_on(tmp_path, docker, monkeypatch, point, nth, before=before)

    assert outcomes(house) == ["rolled_back"]
    assert limit_of(docker) == "256"
    assert docker.done.count("start t1-a") == 2  # the new one, and the old one again


@pytest.mark.parametrize(
    ("works_for", "outcome"),
    [
        pytest.param(90, "verified", id="it gets on"),
        pytest.param(5, None, id="it stood still before ours was given up"),
        pytest.param(0, None, id="it never did"),
    ],
)
def test_under_a_load_in_which_ours_waits_its_turn_what_others_get_is_proof(
    house: Daemon, docker: FakeDocker, works_for: int, outcome: str | None
) -> None:
    act(house, to=64)
    house.run(5)
    for second in range(90):
        box, worked = docker.boxes["t1-a"], min(second, works_for)
        box.answers = False  # a long queue is before whoever comes now
        says(
            box,
            num_requests_running=64,
            num_requests_waiting=300,
            generation_tokens_total=worked * 100,
            request_success_total=worked // 5,
        )
        house.run(1)

    assert outcomes(house) == [outcome]
    assert ("requests of others were completed" in closed_because(house)) is (outcome == "verified")


# by itself


def says(box: FakeContainer, **told: float) -> None:
    """Of these of vLLM's series, whatever their labels."""
    body = [
        f"{line.rpartition(' ')[0]} {told[name]}"
        if (name := line.partition("{")[0].removeprefix("vllm:")) in told
        else line
        for line in box.body.decode().splitlines()
    ]
    box.body = ("\n".join(body) + "\n").encode()


def storm(docker: FakeDocker, name: str, seconds: int, house: Daemon) -> None:
    """Preemptions rise with every second that passes."""
    for second in range(0, seconds, 5):
        says(
            docker.boxes[name],
            num_preemptions_total=second * 3,
            num_requests_running=100 if second % 10 else 60,
            generation_tokens_total=second * 100,
        )
        house.run(5, step=5)


def test_a_storm_asks_a_person_and_lowers_to_what_fits(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker, Mode.ACT)
    storm(docker, "t1-a", 400, house)
    assert docker.done == []
    assert house.shown is not None
    (asked,) = house.shown.status["approvals"]
    assert asked["action"] == "lower_max_num_seqs"
    assert "--max-num-seqs 256 → " in asked["because"]

    tell(house, Approve(by="ada", intent=asked["intent"]))
    house.run(90)

    assert outcomes(house) == ["verified"]
    assert int(limit_of(docker)) < 100


def test_what_has_expired_is_not_agreed_to_because_docker_was_away_meanwhile(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.APPROVE)
    docker.die("t1-a")
    house.run(5)
    docker.lost = True
    house.run(1900, step=20)
    with pytest.raises(Permanent, match="nobody agreed by"):
        tell(house, Approve(by="ada", intent="n-000001"))
    docker.lost = False
    house.run(30)

    assert outcomes(house)[0] == "expired"
    assert docker.done == []


OOM = (
    "(EngineCore pid=25) ERROR 11-30 20:52:35 [core.py:1510] RuntimeError: CUDA out of memory "
    "occurred when warming up sampler with 256 dummy requests. Please try lowering `max_num_seqs` "
    "or `gpu_memory_utilization` when initializing the engine.\n"
)


def dies_in_a_loop(house: Daemon, docker: FakeDocker, log: str = OOM) -> None:
    docker.die("t1-a", code=1, log=log)
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, status=Status.RESTARTING)
    house.run(3)
    started_by_docker(docker, "t1-a")
    house.run(5)


def test_a_start_that_its_limit_kills_is_cured_by_half_of_it_in_the_middle_of_the_loop(
    tmp_path: Path, docker: FakeDocker
) -> None:
    docker.boxes["t1-a"].loads_for = 7200  # it never gets there
    house = daemon(tmp_path, docker, Mode.ACT)
    asked: list[Any] = []
    for _ in range(10):
        dies_in_a_loop(house, docker)
        assert house.shown is not None
        asked = asked or list(house.shown.status["approvals"])
    assert [each["action"] for each in asked] == ["lower_max_num_seqs"]
    assert "--max-num-seqs 256 → --max-num-seqs 128" in asked[0]["because"]
    rows = house.memory.db.execute("SELECT count(*) FROM intent").fetchone()
    assert rows[0] == 1, "asked once, however often it dies meanwhile"

    tell(house, Approve(by="ada", intent=asked[0]["intent"]))
    house.run(1)
    docker.boxes["t1-a.sn-1-00000000"].loads_for = 5
    house.run(90)

    assert outcomes(house) == ["verified"]
    assert limit_of(docker) == "128"
    assert house.state("t1-a") == "idle"


def loops(tmp_path: Path, docker: FakeDocker) -> tuple[Daemon, Approve]:
    """A crash loop that Docker keeps up, and the word that ends it."""
    docker.boxes["t1-a"].loads_for = 7200
    house = daemon(tmp_path, docker, Mode.ACT)
    asked: list[Any] = []
    for _ in range(10):
        dies_in_a_loop(house, docker, "vllm serve: error: unrecognized arguments: --fast\n")
        assert house.shown is not None
        asked = asked or list(house.shown.status["approvals"])
    assert [each["action"] for each in asked] == ["stop_loop"]
    return house, Approve(by="ada", intent=asked[0]["intent"])


def test_a_crash_loop_is_ended_once_a_person_agrees_and_stays_ended(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house, agreed = loops(tmp_path, docker)
    tell(house, agreed)
    house.run(1200, step=20)

    assert docker.done == ["stop t1-a"]
    assert outcomes(house) == ["verified"]
    assert house.state("t1-a") == "stopped"
    assert "stopped, so that Docker does not start it again" in house.target("t1-a")["because"]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("point", ["begin", "do", "done", "close"])
def test_a_kill_while_a_crash_loop_is_ended_leaves_it_ended_by_one_stop(
    tmp_path: Path, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch, point: str, before: bool
) -> None:
    house, agreed = loops(tmp_path, docker)
    owner = FakeRecreation if point == "do" else Journal
    with monkeypatch.context() as patched, contextlib.suppress(Killed):
        patched.setattr(owner, point, Trap(1, before=before).around(getattr(owner, point)))
        tell(house, agreed)
        house.run(60, step=2)
        pytest.fail("it was not killed")
    house.clock.advance(seconds=3)
    house.again()
    house.run(60, step=2)

    assert docker.done == ["stop t1-a"]
    assert outcomes(house) == ["verified"]
    assert house.state("t1-a") == "stopped"


def test_a_stop_whose_answer_never_came_is_still_ours(
    tmp_path: Path, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, agreed = loops(tmp_path, docker)
    real, lost = FakeRecreation.do, list[Any]()

    def do(self: FakeRecreation, deed: Any) -> None:
        real(self, deed)
        if not lost:
            lost.append(deed)
            raise Ambiguous("no answer")

    monkeypatch.setattr(FakeRecreation, "do", do)
    tell(house, agreed)
    house.run(60)

    assert outcomes(house) == ["verified"]
    assert house.state("t1-a") == "stopped"


def test_a_crash_loop_that_a_person_ends_first_is_settled(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house, agreed = loops(tmp_path, docker)
    tell(house, agreed)
    docker.stop_by_person("t1-a")
    house.run(30)

    assert docker.done == []
    assert outcomes(house) == ["refused"]
    assert "stopped by a person" in closed_because(house)


def test_what_was_left_half_way_by_a_state_file_that_is_lost_is_said(
    tmp_path: Path, docker: FakeDocker
) -> None:
    rename(docker, "t1-a", "t1-a.so-1-00000000")
    house = daemon(tmp_path, docker)

    assert house.shown is not None
    assert [t["name"] for t in house.shown.status["targets"]] == ["t1-b"]
    assert any("t1-a.so-1-00000000 was set aside" in p for p in house.shown.status["problems"])


def test_what_another_set_aside_of_what_is_not_looked_after_here_is_not_said(
    tmp_path: Path, docker: FakeDocker
) -> None:
    rename(docker, "t1-a", "t1-a.so-1-00000000")
    house = daemon(tmp_path, docker, discover=(Sieve(name="t1-b"),))

    assert house.shown is not None
    assert not any("set aside" in problem for problem in house.shown.status["problems"])


def test_a_dead_target_whose_old_limit_kills_it_runs_again_with_the_lowered_one(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.ACT)
    act(house, to=64)
    house.run(60)
    house.clock.advance(minutes=16)
    docker.boxes["t1-a"].dies_with = frozenset({256})
    docker.die("t1-a")
    house.run(90)

    assert outcomes(house) == ["verified", "rolled_back"]
    assert (limit_of(docker), house.state("t1-a")) == ("64", "idle")
