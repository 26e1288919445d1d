"""The whole of it, with a real vLLM: its engine is killed, and somebody is told it serves again."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from deploy.testbed import Box, Testbed, wait_until
from tests.blackbox import Daemon, Hook
from tests.e2e.real_vllm import Vllm, run_real_vllm

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

Start = Callable[..., Daemon]


@pytest.fixture
def daemon(bench: Testbed, hook: Hook, tmp_path: Path) -> Iterator[Start]:
    made: list[Daemon] = []

    def start(**settings: str) -> Daemon:
        found = Daemon(tmp_path, prefix=bench.prefix, hook=hook.url, **settings)
        made.append(found)
        return found.start()

    yield start
    for each in made:
        each.close()


def serving(bench: Testbed, vllm: Vllm, sentinel: Daemon, name: str) -> Box:
    """A real vLLM that Sentinel has seen loading, left to load, and seen serve."""
    box = run_real_vllm(bench, vllm, name)
    sentinel.wait_for_state(box.name, "starting", seconds=60)
    box.wait_ready(300)
    sentinel.wait_for_state(box.name, "idle", "serving", seconds=60)
    return box


def told_after(hook: Hook, box: Box) -> timedelta:
    died = datetime.fromisoformat(box.state["FinishedAt"][:26] + "+00:00")
    return hook.times[0] - died


def test_in_act_mode_it_is_started_again_verified_and_told(
    bench: Testbed, vllm: Vllm, daemon: Start, hook: Hook
) -> None:
    sentinel = daemon(mode="act")
    box = serving(bench, vllm, sentinel, "act")
    first_start = box.state["StartedAt"]

    box.kill_engine()
    incident = sentinel.wait_for_incident("resolved", seconds=400)

    assert told_after(hook, box) < timedelta(seconds=1)
    assert box.state["StartedAt"] != first_start
    assert box.complete()[0] == 200
    assert incident["subject"]["name"] == box.name
    assert incident["diagnosis"]["cause"] == "engine_died"
    assert "exited with code 0" in incident["diagnosis"]["evidence"]
    assert [i["outcome"] for i in incident["intents"]] == ["verified"]
    wait_until(lambda: "resolved" in hook.kinds, 60, "the webhook to hear the end")
    bench.client.containers.get(box.name).remove(force=True)


def test_in_watch_mode_nothing_is_touched_and_it_says_what_would_be(
    bench: Testbed, vllm: Vllm, daemon: Start, hook: Hook
) -> None:
    sentinel = daemon(mode="watch")
    box = serving(bench, vllm, sentinel, "watch")
    first_start = box.state["StartedAt"]

    box.kill_engine()
    assert box.wait_exit(60) == 0
    sentinel.wait_for_state(box.name, "failed")
    wait_until(lambda: "held" in hook.kinds, 30, "the decision to be told")

    assert told_after(hook, box) < timedelta(seconds=1)
    assert (box.state["Status"], box.state["StartedAt"]) == ("exited", first_start)
    decision = hook.messages[hook.kinds.index("held")]["sentinel"]["decision"]
    assert (decision["action"], decision["would"], decision["guard"]) == ("restart", True, "mode")
