"""Killed with SIGKILL before and after every word of the remedy: one restart in all."""

import time
from pathlib import Path

import docker
import pytest

from deploy.testbed import Box, Testbed, wait_until
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

POINTS = [
    ("reserve", 1),
    ("begin", 1),
    ("stop", 1),
    ("done", 1),
    ("begin", 2),
    ("start", 1),
    ("done", 2),
    ("expect_proof", 1),
    ("close", 1),
]


def starts_since(client: docker.DockerClient, box: Box, since: float) -> int:
    """How often Docker says that the container was started."""
    events = client.api.events(
        since=int(since),
        until=int(time.time()) + 1,
        decode=True,
        filters={"container": box.id, "event": "start", "type": "container"},
    )
    return len(list(events))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("point", "nth"), POINTS, ids=[f"{p} {n}" for p, n in POINTS])
def test_one_restart_in_all(
    tmp_path: Path, testbed: Testbed, vllm_box: VllmBox, point: str, nth: int, when: str
) -> None:
    hook = Hook()
    box = vllm_box("a")
    sentinel = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url)
    sentinel.start_mortal(point, when, nth)
    sentinel.wait_for_state(box.name, "idle")
    began = time.time()

    box.kill_engine()
    assert sentinel.process is not None
    assert sentinel.process.wait(60) == -9, sentinel.tail()
    sentinel.start()
    incident = sentinel.wait_for_incident("resolved")

    assert [i["outcome"] for i in incident["intents"]] == ["verified"]
    assert box.state["Status"] == "running"
    assert starts_since(testbed.client, box, began) == 1
    wait_until(lambda: hook.kinds[-1:] == ["resolved"], 20, "the end to be told")
    assert hook.kinds.count("alert") <= 2  # at most one message repeated
    sentinel.close()
    hook.close()
