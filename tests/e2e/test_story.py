"""The whole of it, with a real vLLM: its engine is killed, and somebody is told it serves again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.testbed import Testbed, wait_until
from tests.e2e.real_vllm import Vllm, run_real_vllm
from tests.e2e.story import Hook, Sentinel

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    yield made
    made.close()


@pytest.fixture
def sentinel(bench: Testbed, hook: Hook, tmp_path: Path) -> Iterator[Sentinel]:
    made = Sentinel(tmp_path, prefix=bench.prefix, hook=hook.url)
    yield made
    made.close()


def test_a_killed_engine_is_started_again_verified_and_told(
    bench: Testbed, vllm: Vllm, sentinel: Sentinel, hook: Hook
) -> None:
    box = run_real_vllm(bench, vllm, "story")
    sentinel.wait_for_state(box.name, "starting", seconds=60)
    box.wait_ready(300)
    sentinel.wait_for_state(box.name, "idle", "serving", seconds=60)
    first_start = box.state["StartedAt"]

    box.kill_engine()

    assert box.wait_exit(20) == 0
    sentinel.wait_for_state(box.name, "idle", "serving", seconds=400)
    assert box.state["StartedAt"] != first_start
    assert box.complete()[0] == 200
    done = wait_until(
        lambda: [
            i for i in sentinel.ask("incidents").get("incidents", []) if i["status"] == "resolved"
        ],
        120,
        "the incident to be resolved",
    )
    (incident,) = done
    assert incident["subject"]["name"] == box.name
    assert incident["diagnosis"]["cause"] == "engine_died"
    assert [i["outcome"] for i in incident["intents"] if i["action"] == "restart"] == ["verified"]
    wait_until(lambda: "resolved" in hook.kinds(), 60, "the webhook to hear the end")
    assert hook.messages[0]["version"] == "4"
