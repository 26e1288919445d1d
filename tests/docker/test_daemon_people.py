"""The daemon as a black box while people do to its containers what people do."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.testbed import Testbed
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(120)]


@pytest.fixture
def sentinel(tmp_path: Path, testbed: Testbed, hook: Hook) -> Iterator[Daemon]:
    made = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url)
    yield made.start()
    made.close()


def test_a_docker_restart_is_a_persons_and_no_incident(
    sentinel: Daemon, vllm_box: VllmBox, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    first_start = box.state["StartedAt"]

    box.container.restart(timeout=10)
    assert box.state["StartedAt"] != first_start
    sentinel.wait_for_state(box.name, "idle")

    assert sentinel.ask("incidents")["incidents"] == []
    assert hook.messages == []


def test_a_renamed_container_is_looked_after_under_its_new_name(
    sentinel: Daemon, vllm_box: VllmBox
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    box.container.rename(f"{box.name}-new")
    sentinel.wait_for_state(f"{box.name}-new", "idle")
    assert sentinel.target(box.name) == {}

    box.kill_engine()
    incident = sentinel.wait_for_incident("resolved")

    assert incident["subject"]["name"] == f"{box.name}-new"
    assert [i["outcome"] for i in incident["intents"]] == ["verified"]


def test_a_stop_while_docker_keeps_restarting_it_is_believed(
    sentinel: Daemon, vllm_box: VllmBox
) -> None:
    box = vllm_box("a", restart_policy="always", env={"SIM_FAIL_START": "port"})
    sentinel.wait_for_incident("open")

    box.container.stop(timeout=5)
    seen = sentinel.wait_for_state(box.name, "stopped")

    assert "stopped by a person" in seen["because"]
    assert box.state["Status"] == "exited"
