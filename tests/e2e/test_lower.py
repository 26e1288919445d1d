"""A real vLLM that runs more than its KV cache holds: its limit is lowered and proved, given back
at the next restart, and taken back where it does not start."""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from docker.models.containers import Container

from deploy.testbed import Box, Testbed, wait_until
from tests.blackbox import Daemon, Hook, Json
from tests.e2e.clients import asking
from tests.e2e.conftest import READY_WITHIN, Start
from tests.e2e.real_vllm import Vllm, run_real_vllm

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

LIMIT, TOO_LOW = 64, 8
OURS = ("sentinel.tx", "sentinel.original-max-num-seqs")
RULES = Path(__file__).parents[2] / "rules"
CROWDED = ("--max-model-len", "2048", "--num-gpu-blocks-override", "48")
LOAD: dict[str, Any] = {"count": 48, "prompt": 100, "tokens": 300}  # 4 blocks each in the end
WATCHED = 15.0  # seconds
SOONER = {"[5m]": "[15s]", "2m": "15s"}
AT_ONCE = """
guards: {{cooldown: 1s}}
rules: {{shipped: false, files: ["{rules}/*.yaml"]}}
"""
ALONE = f"""
remedies:
  - name: too-low
    match: [alertname="VllmPreemptionStorm"]
    ladder: [{{lower_max_num_seqs: {{to: {TOO_LOW}}}}}, {{page: {{}}}}]
"""


@dataclass(frozen=True, slots=True)
class Crowded:
    """One name, whichever container bears it, and the model that it loads."""

    bench: Testbed
    name: str
    port: int | None
    model: Path

    @property
    def box(self) -> Box:
        return Box(self.bench.client.containers.get(self.name), self.port)

    @property
    def raw(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.bench.client.api.inspect_container(self.name)
        return found

    @property
    def containers(self) -> list[str]:
        """The ids of all that have this name, or a swap name of it."""
        rows = self.bench.client.api.containers(all=True)
        return [row["Id"] for row in rows if row["Names"][0].lstrip("/").startswith(self.name)]

    def started_beside(self, old_id: str) -> Container | None:
        """Another container of this name that is running, if there is one."""
        found = self.bench.client.containers.list(filters={"name": self.name})
        return next((container for container in found if container.id != old_id), None)

    @contextmanager
    def unreadable(self) -> Iterator[None]:
        """Whoever loads its model meanwhile cannot."""
        config, aside = self.model / "config.json", self.model / "config.aside"
        config.rename(aside)
        try:
            yield
        finally:
            aside.rename(config)

    @property
    def limit(self) -> int:
        words = self.raw["Config"]["Cmd"]
        return int(words[words.index("--max-num-seqs") + 1])

    @property
    def preemptions(self) -> float:
        found = re.search(
            r"^vllm:num_preemptions_total\{.*\} (\S+)$", self.box.get("/metrics")[1], re.MULTILINE
        )
        return float(found[1]) if found else 0.0


@pytest.fixture(scope="module")
def only_crowded(
    bench: Testbed, vllm: Vllm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crowded]:
    model = tmp_path_factory.mktemp("model") / "tiny"
    shutil.copytree(vllm.model, model)
    box = run_real_vllm(bench, replace(vllm, model=model), "crowded", args=CROWDED)
    yield Crowded(bench, box.name, box.port, model)
    for container in bench.boxes():
        if str(container.name).startswith(box.name):
            Box(container, None).remove()


@pytest.fixture
def crowded(only_crowded: Crowded) -> Crowded:
    if not only_crowded.box.state["Running"]:
        only_crowded.box.container.start()
    only_crowded.box.wait_ready(READY_WITHIN)
    return only_crowded


@pytest.fixture
def quick(daemon: Start, crowded: Crowded, tmp_path: Path) -> Callable[..., Daemon]:
    """Starts a daemon with the shipped rules, of which that about preemptions looks back less."""
    rules, drop_ins = tmp_path / "rules", tmp_path / "sentinel.d"
    shutil.copytree(RULES, rules)
    (rules / "load.yaml").write_text(sooner((RULES / "load.yaml").read_text()))
    drop_ins.mkdir()
    (drop_ins / "at-once.yaml").write_text(AT_ONCE.format(rules=rules))

    def start(**settings: str) -> Daemon:
        sentinel = daemon(crowded.name, **settings)
        sentinel.wait_for_state(crowded.name, "idle", seconds=60)
        return sentinel

    return start


def sooner(rule_file: str) -> str:
    rules = [rule for group in yaml.safe_load(rule_file)["groups"] for rule in group["rules"]]
    text = json.dumps(next(r for r in rules if r.get("alert") == "VllmPreemptionStorm"))
    for late, soon in SOONER.items():
        assert late in text
        text = text.replace(late, soon)
    return json.dumps({"groups": [{"name": "sooner", "rules": [json.loads(text)]}]})


def preempted_in(crowded: Crowded, seconds: float) -> float:
    """How many requests it throws out in that time."""
    before = crowded.preemptions
    time.sleep(seconds)
    return crowded.preemptions - before


def given(raw: Mapping[str, Any]) -> dict[str, Any]:
    """All that its owner gave it, but for its arguments."""
    config = {k: v for k, v in raw["Config"].items() if k not in ("Cmd", "Hostname", "Labels")}
    labels = raw["Config"]["Labels"].items()
    return {
        **config,
        "Labels": {k: v for k, v in labels if k not in OURS},
        "HostConfig": raw["HostConfig"],
        "Mounts": sorted(json.dumps(mount, sort_keys=True) for mount in raw["Mounts"]),
        "Networks": sorted(raw["NetworkSettings"]["Networks"]),
        "Ports": raw["NetworkSettings"]["Ports"],
    }


def changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The words of the command that are others."""
    pairs = zip(before["Config"]["Cmd"], after["Config"]["Cmd"], strict=True)
    return [pair for pair in pairs if pair[0] != pair[1]]


def first_asked(sentinel: Daemon) -> str:
    approvals = sentinel.ask("status").get("approvals") or []
    return str(approvals[0]["intent"]) if approvals else ""


def incident_with(sentinel: Daemon, action: str, status: str = "resolved") -> Json:
    """The incident in which that was done, once it has that status."""

    def there() -> Json:
        listed = sentinel.ask("incidents").get("incidents", [])
        found = [i for i in listed if i["status"] == status]
        return next((i for i in found if action in [n["action"] for n in i["intents"]]), {})

    what = f"{action} and then {status}"
    found = wait_until(there, 2 * READY_WITHIN, f"{what}:\n{sentinel.tail()}")
    shown = sentinel.run("incidents", "show", found["id"], "--json")
    incident: Json = json.loads(shown.stdout)
    return incident


def card(sentinel: Daemon, remedy: str) -> Json:
    cards = json.loads(sentinel.run("scorecard", "--json").stdout)["remedies"]
    found: Json = next(each["done"] for each in cards if each["remedy"] == remedy)
    return found


def test_a_storm_is_lowered_once_and_the_limit_comes_back_with_the_next_restart(
    crowded: Crowded, quick: Callable[..., Daemon]
) -> None:
    sentinel, before = quick(), crowded.raw

    with asking(crowded.box, **LOAD):
        asked = wait_until(lambda: first_asked(sentinel), 240, "a storm to be seen")
        in_the_storm = preempted_in(crowded, WATCHED)
        assert sentinel.run("approve", asked).returncode == 0
        incident = incident_with(sentinel, "lower_max_num_seqs")
        sentinel.wait_for_state(crowded.name, "serving", "saturated")
        lowered = preempted_in(crowded, WATCHED)

    after, limit = crowded.raw, str(crowded.limit)
    print(f"{in_the_storm} preempted in {WATCHED} s with {LIMIT}, {lowered} with {limit}")
    assert crowded.containers == [after["Id"]] != [before["Id"]]
    assert changed(before, after) == [(str(LIMIT), limit)]
    assert given(after) == given(before)
    assert after["Config"]["Labels"]["sentinel.original-max-num-seqs"] == str(LIMIT)
    assert in_the_storm > WATCHED / 2
    assert lowered < in_the_storm / 3
    (intent,) = incident["intents"]
    assert (intent["id"], intent["outcome"]) == (asked, "verified")
    assert f"its log confirms {limit}" in intent["outcome_because"]
    assert sentinel.target(crowded.name)["last_action"]["outcome"] == "verified"
    assert card(sentinel, "preemption-storm")["verified"] == 1

    crowded.box.kill_engine()
    incident = incident_with(sentinel, "restart")

    restored = crowded.raw
    assert crowded.containers == [restored["Id"]] != [after["Id"]]
    assert changed(before, restored) == []
    assert given(restored) == given(before)
    assert "sentinel.original-max-num-seqs" not in restored["Config"]["Labels"]
    assert [intent["outcome"] for intent in incident["intents"]] == ["verified"]
    assert "limit_restored" in [record["event"] for record in incident["timeline"]]
    assert crowded.box.complete()[0] == 200


def test_one_that_does_not_start_is_taken_back(
    crowded: Crowded, quick: Callable[..., Daemon], hook: Hook
) -> None:
    sentinel, before = quick(more=ALONE), crowded.raw

    with crowded.unreadable():
        with asking(crowded.box, **LOAD):
            new = wait_until(lambda: crowded.started_beside(before["Id"]), 240, "a new container")
        assert new is not None
        assert new.wait(timeout=READY_WITHIN)["StatusCode"] == 1
    incident = incident_with(sentinel, "lower_max_num_seqs")

    crowded.box.wait_ready(READY_WITHIN)
    assert [intent["outcome"] for intent in incident["intents"]] == ["rolled_back"]
    assert crowded.containers == [before["Id"]]
    assert changed(before, crowded.raw) == []
    assert given(crowded.raw) == given(before)
    assert crowded.box.complete()[0] == 200
    assert card(sentinel, "too-low")["rolled_back"] == 1
    assert {"alert", "action", "resolved"} <= set(hook.kinds)
