"""What is published, against the contract: every key, every type, of the well and the unwell."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.intent import Mode
from sentinel.core.model.target import State, Traffic
from sentinel.core.policy.guard import GUARDS
from sentinel.store.picture import Reader
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan

Json = dict[str, Any]
TEXT, NUMBER, TRUTH = (str,), (int, float), (bool,)
TEXT_OR_NULL, NUMBER_OR_NULL = (str, type(None)), (int, float, type(None))

TARGET: dict[str, tuple[type, ...]] = {
    "name": TEXT,
    "container_id": TEXT,
    "model": TEXT_OR_NULL,
    "pool": TEXT_OR_NULL,
    "state": TEXT,
    "traffic": TEXT,
    "since": TEXT,
    "because": TEXT,
    "endpoint": TEXT_OR_NULL,
    "running": NUMBER_OR_NULL,
    "waiting": NUMBER_OR_NULL,
    "kv_cache_usage_ratio": NUMBER_OR_NULL,
    "ttft_p99_seconds": NUMBER_OR_NULL,
    "gpus": (list,),
    "last_action": (dict, type(None)),
    "held": (list,),
    "incident": TEXT_OR_NULL,
}
HELD = {"action": TEXT, "guard": TEXT, "because": TEXT, "until": TEXT_OR_NULL}
LAST = {"action": TEXT, "outcome": TEXT_OR_NULL, "at": TEXT, "because": TEXT}
ALERT = {
    "alertname": TEXT,
    "state": TEXT,
    "severity": TEXT_OR_NULL,
    "labels": (dict,),
    "active_at": TEXT,
    "value": NUMBER_OR_NULL,
    "silenced": TRUTH,
}
APPROVAL = {"intent": TEXT, "action": TEXT, "target": TEXT, "expires_at": TEXT}
INTENT = {
    "id": TEXT,
    "action": TEXT,
    "target": TEXT,
    "mode": TEXT,
    "because": TEXT,
    "reserved_at": TEXT_OR_NULL,
    "closed_at": TEXT_OR_NULL,
    "outcome": TEXT_OR_NULL,
    "by": TEXT,
}
INCIDENT = {
    "id": TEXT,
    "status": TEXT,
    "subject": (dict,),
    "severity": TEXT,
    "opened_at": TEXT,
    "resolved_at": TEXT_OR_NULL,
    "diagnosis": (dict,),
    "alerts": (list,),
    "intents": (list,),
    "timeline": (list,),
    "evidence": TEXT_OR_NULL,
}
LINE = {"at": TEXT, "event": TEXT, "because": TEXT, "by": TEXT, "facts": (dict,)}
EXPLANATION = {
    "subject": (dict,),
    "state": TEXT,
    "since": TEXT,
    "because": TEXT,
    "witnesses": (list,),
    "rules": (list,),
    "remedy": (dict,),
    "guards": (list,),
    "next": (dict,),
}
RULE = {
    "alertname": TEXT,
    "state": TEXT,
    "value": NUMBER_OR_NULL,
    "active_at": TEXT_OR_NULL,
    "fires_at": TEXT_OR_NULL,
}
GUARD = {"guard": TEXT, "holds": TRUTH, "because": TEXT, "until": TEXT_OR_NULL}
NEXT = {"what": TEXT_OR_NULL, "at": TEXT_OR_NULL, "because": TEXT}
WITNESS = {"name": TEXT, "says": TEXT, "at": TEXT_OR_NULL, "age_seconds": NUMBER_OR_NULL}


def fits(found: Json, shape: Mapping[str, tuple[type, ...]]) -> None:
    assert shape.keys() <= found.keys(), shape.keys() - found.keys()
    for key, allowed in shape.items():
        value = found[key]
        assert isinstance(value, allowed), (key, value)
        assert not (isinstance(value, bool) and bool not in allowed), (key, value)
        assert not (isinstance(value, str) and "None" in value), (key, value)
        if key in ("at", "since", "until") or key.endswith("_at"):
            assert value is None or str(value).endswith("Z"), (key, value)


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    docker.add("t1-b")
    return docker


def story(tmp_path: Path, docker: FakeDocker, what: str) -> Daemon:
    mode = {"approve": Mode.APPROVE, "watch": Mode.WATCH}.get(what, Mode.ACT)
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=plan(mode))
    house.run(5)
    if what == "stopped":
        docker.stop_by_person("t1-a")
    elif what == "removed":
        del docker.boxes["t1-a"]
    elif what != "well":
        docker.die("t1-a")
    house.run(90 if what == "healed" else 5)
    return house


WHAT = ["well", "watch", "approve", "proving", "healed", "stopped", "removed"]


@pytest.fixture(params=WHAT)
def house(request: pytest.FixtureRequest, tmp_path: Path, docker: FakeDocker) -> Iterator[Daemon]:
    made = story(tmp_path, docker, request.param)
    yield made
    made.memory.close()


def status_of(house: Daemon) -> Json:
    assert house.shown is not None
    found = house.shown.as_status(house.clock.now())
    return dict(json.loads(json.dumps(found, allow_nan=False)))


def test_status(house: Daemon) -> None:
    status = status_of(house)

    assert {"at", "age_seconds", "ok", "daemon", "targets", "alerts", "approvals", "problems"} <= (
        status.keys()
    )
    daemon = {"reachable": TRUTH, "version": TEXT, "mode": TEXT, "paused_until": TEXT_OR_NULL}
    fits(status["daemon"], daemon)
    for target in status["targets"]:
        fits(target, TARGET)
        assert target["state"] in list(State)
        assert target["traffic"] in list(Traffic)
        for held in target["held"]:
            fits(held, HELD)
        if target["last_action"]:
            fits(target["last_action"], LAST)
    for alert in status["alerts"]:
        fits(alert, ALERT)
        assert alert["state"] in ("pending", "firing")
    for approval in status["approvals"]:
        fits(approval, APPROVAL)
    assert all(isinstance(problem, str) for problem in status["problems"])


def test_incidents(house: Daemon) -> None:
    for incident in Reader(house.folder / "state.db").incidents():
        fits(incident, INCIDENT)
        assert incident["subject"].keys() == {"kind", "name"}
        for intent in incident["intents"]:
            fits(intent, INTENT)
        for line in incident["timeline"]:
            fits(line, LINE)


def test_explanations(house: Daemon) -> None:
    assert house.shown is not None
    for name in house.shown.explain:
        found = house.shown.as_explanation(name, house.clock.now())
        assert found is not None
        fits(found, EXPLANATION)
        for shape, rows in (
            (WITNESS, found["witnesses"]),
            (RULE, found["rules"]),
            (GUARD, found["guards"]),
        ):
            assert rows
            for row in rows:
                fits(row, shape)
        fits(found["next"], NEXT)
        assert found["remedy"].keys() >= {"match", "ladder"}
        for step in found["remedy"]["ladder"]:
            fits(step, {"step": TEXT, "status": TEXT})
        assert [row["guard"] for row in found["guards"]] == list(GUARDS)


def explanation(house: Daemon, name: str = "t1-a") -> Json:
    assert house.shown is not None
    found = house.shown.as_explanation(name, house.clock.now())
    assert found is not None
    return found


def test_of_the_well_it_says_what_would_be_done_and_what_watches_it(
    tmp_path: Path, docker: FakeDocker
) -> None:
    found = explanation(story(tmp_path, docker, "well"))

    assert not any(guard["holds"] for guard in found["guards"])
    assert [s["step"] for s in found["remedy"]["ladder"]] == ["restart", "page"]
    assert [s["status"] for s in found["remedy"]["ladder"]] == ["next", "later"]
    states = {rule["alertname"]: rule["state"] for rule in found["rules"]}
    assert states["VllmContainerExited"] == "inactive"
    assert "DockerUnreachable" not in states
    assert found["next"]["what"] is None


def test_of_the_held_it_says_by_what(tmp_path: Path, docker: FakeDocker) -> None:
    house = story(tmp_path, docker, "watch")
    found = explanation(house)

    holding = [guard["guard"] for guard in found["guards"] if guard["holds"]]
    assert holding == ["mode"] == [held["guard"] for held in house.target("t1-a")["held"]]
    assert found["next"]["what"] == "restart"
    firing = next(rule for rule in found["rules"] if rule["state"] == "firing")
    assert (firing["alertname"], firing["value"]) == ("VllmContainerExited", 1)


def test_of_what_is_under_way_it_says_the_step(tmp_path: Path, docker: FakeDocker) -> None:
    found = explanation(story(tmp_path, docker, "proving"))

    assert found["next"]["what"] == "verify"
    assert found["next"]["at"] is not None
    assert found["remedy"]["ladder"][0]["status"] == "reserved"


def test_of_what_waits_for_a_person_it_says_so(tmp_path: Path, docker: FakeDocker) -> None:
    found = explanation(story(tmp_path, docker, "approve"))

    assert found["remedy"]["ladder"][0]["status"] == "proposed"
    assert "waits for a person" in found["next"]["because"]


def test_a_pending_alert_says_when_it_will_fire(tmp_path: Path, docker: FakeDocker) -> None:
    house = story(tmp_path, docker, "well")
    docker.boxes["t1-a"].body = b"# nothing of vLLM in here\n"
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, env_port=None)
    house.run(60)

    pending = [r for r in explanation(house)["rules"] if r["state"] == "pending"]
    assert pending
    assert all(rule["fires_at"] > rule["active_at"] for rule in pending)
