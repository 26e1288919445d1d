from dataclasses import replace
from pathlib import Path

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.rule import RuleGroup
from tests.fakes import IDLE, FakeDocker
from tests.runtime.house import Daemon, plan
from tests.runtime.world import recreate

LACKING = b"\n".join(line for line in IDLE.splitlines() if b"preemptions" not in line) + b"\n"


def missing(house: Daemon) -> dict[str, str]:
    return {
        labels["metric"]: labels["rules"]
        for name, labels, _ in house.samples
        if name == "sentinel_target_metric_missing"
    }


def mismatch(house: Daemon) -> list[float]:
    return [value for name, _, value in house.samples if name == "sentinel_target_model_mismatch"]


def alerts(house: Daemon) -> dict[str, str]:
    assert house.shown is not None
    return {a["alertname"]: a["state"] for a in house.shown.status["alerts"]}


def test_a_whole_vllm_lacks_nothing(house: Daemon) -> None:
    assert missing(house) == {}
    assert mismatch(house) == [0.0]


def test_what_is_missing_is_said_with_who_is_blind(house: Daemon, docker: FakeDocker) -> None:
    recreate(docker, "t1-a", loads_for=0.0)
    docker.boxes["t1-a"].body = LACKING
    house.run(330, step=5)

    assert missing(house) == {"vllm:num_preemptions_total": "VllmPreemptionStorm"}
    assert alerts(house) == {"VllmMetricIncomplete": "firing"}
    assert house.told("t1-a") == []  # for those who look


def test_what_goes_under_way_is_missed(house: Daemon, docker: FakeDocker) -> None:
    docker.boxes["t1-a"].body = LACKING
    house.run(70, step=5)

    assert missing(house) == {"vllm:num_preemptions_total": "VllmPreemptionStorm"}


def test_what_comes_later_is_missing_no_more(house: Daemon, docker: FakeDocker) -> None:
    recreate(docker, "t1-a", loads_for=0.0)
    docker.boxes["t1-a"].body = LACKING
    house.run(10)
    before = missing(house)
    docker.boxes["t1-a"].body = IDLE
    house.run(70, step=5)

    assert before
    assert missing(house) == {}


def test_another_model_on_the_port_is_told(house: Daemon, docker: FakeDocker) -> None:
    recreate(docker, "t1-a", loads_for=0.0)
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, argv=("vllm", "serve", "large", "--port", "8000"))
    house.run(150, step=5)

    assert mismatch(house) == [1.0]
    assert alerts(house)["VllmWrongModel"] == "firing"


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(("vllm", "serve", "x", "--config", "a.yaml"), id="a file may name another"),
        pytest.param(("./start.sh",), id="a script chooses"),
        pytest.param(("vllm", "serve", "x", "--served-model-name", "tiny"), id="another name"),
    ],
)
def test_a_name_that_is_not_known_is_none_that_differs(
    house: Daemon, docker: FakeDocker, argv: tuple[str, ...]
) -> None:
    recreate(docker, "t1-a", loads_for=0.0)
    box = docker.boxes["t1-a"]
    box.seen = replace(box.seen, argv=argv)
    house.run(10)

    assert mismatch(house) == [0.0]


def test_rules_of_a_reload_are_looked_for(house: Daemon, tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "groups: [{name: mine, rules: [{alert: Mine, expr: 'vllm:typo > 1'}]}]"
    )
    rules: list[RuleGroup] = load_rule_files([tmp_path / "mine.yaml"])

    house.loop.use(replace(plan(), rules=(*plan().rules, *rules)), house.book)
    house.run(3)

    assert missing(house) == {"vllm:typo": "Mine"}
