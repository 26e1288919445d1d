"""A limit is lowered on a real engine by a real daemon: proved, taken back, killed half-way."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.testbed import HERE, Box, Testbed, _launcher, bind, free_port, host_mounts, wait_until
from tests.blackbox import Daemon, Hook
from tests.docker.engine import QUICK, VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

LIMITED = ("--served-model-name", "tiny", "--max-num-seqs", "256")
FATAL = 13  # with this limit the program ends at once
PICKY = f"""#!/bin/sh
case "$*" in *"--max-num-seqs {FATAL}") echo "out of memory" >&2; exit 1;; esac
exec /vllm/bin/patient "$@"
"""


@pytest.fixture
def sentinel(tmp_path: Path, testbed: Testbed, hook: Hook) -> Iterator[Daemon]:
    daemon = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url, mode="watch")
    yield daemon
    daemon.close()


def named(testbed: Testbed, name: str) -> list[Mapping[str, Any]]:
    """All containers of that name, or of a swap name of it."""
    rows = testbed.client.api.containers(all=True)
    return [row for row in rows if row["Names"][0].lstrip("/").startswith(name)]


def arguments(testbed: Testbed, name: str) -> list[str]:
    return list(testbed.client.api.inspect_container(name)["Config"]["Cmd"])


def act(sentinel: Daemon, *words: str) -> tuple[int, Any]:
    done = sentinel.run("act", *words, "--json")
    return done.returncode, json.loads(done.stdout or "null")


def picky_box(testbed: Testbed, tmp_path: Path) -> Box:
    """Starts with any limit but one."""
    script = tmp_path / "picky"
    script.write_text(PICKY)
    script.chmod(0o755)
    mounts = [
        *host_mounts(),
        bind(script, "/vllm/bin/vllm"),
        bind(_launcher(), "/vllm/bin/patient"),
        bind(HERE, "/vllm/lib"),
    ]
    environment = {**QUICK, "PATH": "/vllm/bin:/usr/local/bin:/usr/bin:/bin"}
    command = ["vllm", "serve", "/models/tiny", *LIMITED]
    return testbed.start("a", command, mounts=mounts, env=environment, host_port=free_port())


def preemptions(box: Box) -> float:
    lines = box.get("/metrics")[1].splitlines()
    told = [line for line in lines if line.startswith("vllm:num_preemptions_total{")]
    return sum(float(line.rpartition(" ")[2]) for line in told)


def test_a_storm_is_lowered_once_and_preemptions_fall(
    testbed: Testbed, vllm_box: VllmBox, sentinel: Daemon
) -> None:
    crowded = {"SIM_KV_BLOCKS": "120", "SIM_LOAD": "30", "SIM_LOAD_TOKENS": "120"}
    box = vllm_box("a", args=LIMITED, env=crowded)
    sentinel.start()
    sentinel.wait_for_state(box.name, "serving", "saturated")
    wait_until(lambda: preemptions(box) > 30, 30, "a storm")

    def fits() -> Any:  # until it has seen enough of what really runs
        status, found = act(sentinel, "lower-max-num-seqs", box.name, "--dry-run")
        return found if status == 0 else None

    dry = wait_until(fits, 40, "a limit that fits")
    assert (dry["held"], dry["intent"]) == ([], None)
    assert dry["diff"][0] == "-command: --max-num-seqs 256"
    limit = int(dry["diff"][1].rpartition(" ")[2])
    status, done = act(sentinel, "lower-max-num-seqs", box.name, "--to", str(limit), "--wait")

    assert (status, done["diff"]) == (0, dry["diff"]), done
    assert limit < 256
    assert arguments(testbed, box.name)[-1] == str(limit)
    assert f"its log confirms {limit}" in done["intent"]["outcome_because"]
    (row,) = named(testbed, box.name)
    assert row["Id"] != box.id
    assert row["Labels"]["sentinel.original-max-num-seqs"] == "256"
    before = preemptions(box)
    sentinel.wait_for_state(box.name, "serving", "saturated")
    assert preemptions(box) - before < 30

    status, held = act(sentinel, "lower-max-num-seqs", box.name, "--to", str(limit))
    assert status == 4
    assert {"changes_nothing", "cooldown"} <= {one["guard"] for one in held["held"]}
    assert act(sentinel, "lower-max-num-seqs", box.name, "--to", "0")[0] == 2
    assert act(sentinel, "restart", "nobody")[0] == 2


def test_one_that_does_not_start_is_taken_back(
    testbed: Testbed, sentinel: Daemon, tmp_path: Path
) -> None:
    box = picky_box(testbed, tmp_path).wait_ready()
    sentinel.start()
    sentinel.wait_for_state(box.name, "idle")

    status, done = act(sentinel, "lower-max-num-seqs", box.name, "--to", str(FATAL), "--wait")

    assert (status, done["intent"]["outcome"]) == (1, "rolled_back"), done
    (row,) = named(testbed, box.name)
    assert row["Id"] == box.id
    sentinel.wait_for_state(box.name, "idle")
    assert box.complete()[0] == 200


POINTS = [
    ("recreate", 1, "after"),
    ("deed", 1, "after"),  # created
    ("deed", 2, "after"),  # stopped
    ("deed", 4, "after"),  # the old one renamed
    ("deed", 6, "after"),  # started
    ("deed", 7, "after"),  # removed
]


@pytest.mark.parametrize(
    ("point", "nth", "when"), POINTS, ids=[f"{w} {p} {n}" for p, n, w in POINTS]
)
def test_killed_anywhere_there_is_one_container_that_serves(
    testbed: Testbed, vllm_box: VllmBox, sentinel: Daemon, point: str, nth: int, when: str
) -> None:
    box = vllm_box("a", args=LIMITED, restart_policy="unless-stopped")
    sentinel.start_mortal(point, when, nth)
    sentinel.wait_for_state(box.name, "idle")

    path = f"/api/sentinel/v1/act/lower-max-num-seqs/{box.name}"
    assert sentinel.tell("POST", path, {"to": "64"})[0] in (0, 200)
    assert sentinel.process is not None
    assert sentinel.process.wait(60) == -9, sentinel.tail()
    sentinel.start()
    incident = sentinel.wait_for_incident("resolved")

    assert [intent["outcome"] for intent in incident["intents"]] == ["verified"]
    (row,) = named(testbed, box.name)
    assert arguments(testbed, row["Id"])[-1] == "64"
    found = testbed.client.api.inspect_container(row["Id"])
    assert found["HostConfig"]["RestartPolicy"]["Name"] == "unless-stopped"
    assert box.complete()[0] == 200
    assert "target_gone" not in sentinel.events(), sentinel.tail()
