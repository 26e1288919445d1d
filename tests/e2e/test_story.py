"""The whole of it, with a real vLLM: it fails, somebody is told, and it is proved to serve again."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from deploy.testbed import Box, Testbed, wait_until
from tests.blackbox import Hook, Json
from tests.e2e.clients import asking
from tests.e2e.conftest import Start
from tests.e2e.real_vllm import Vllm, run_real_vllm
from tests.e2e.watching import Listener

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]

HUNG_AFTER = timedelta(seconds=20)
# Each is smaller than a worker, which is therefore the one that the kernel ends.
HOGS = """
import os, time
for _ in range(8):
    if not os.fork():
        held = [b"x" * (1 << 20) for _ in range(500)]
        time.sleep(60)
time.sleep(60)
"""


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def running(box: Box) -> float:
    found = re.search(
        r"^vllm:num_requests_running\{.*\} (\S+)$", box.get("/metrics")[1], re.MULTILINE
    )
    return float(found[1]) if found else 0.0


def told_of(hook: Hook, alertname: str) -> datetime:
    return next(
        at
        for at, message in zip(hook.times, hook.messages, strict=True)
        if any(alert["labels"]["alertname"] == alertname for alert in message["alerts"])
    )


def told_after(hook: Hook, box: Box) -> timedelta:
    return hook.times[0] - datetime.fromisoformat(box.state["FinishedAt"][:26] + "+00:00")


def is_proved(incident: Json, box: Box) -> bool:
    outcomes = [intent["outcome"] for intent in incident["intents"]]
    return outcomes == ["verified"] and box.complete()[0] == 200


def test_an_engine_that_stands_still_is_called_hung_once_somebody_waits_for_it(
    server: Box, daemon: Start, hook: Hook
) -> None:
    """No gauge tells of those who come after it stopped: their connections do."""
    sentinel = daemon(server.name)
    sentinel.wait_for_state(server.name, "idle")

    with stopped(server.host_pid()):
        while_idle = Listener(sentinel, server.name).listen(30)
        since = datetime.now(UTC)
        with asking(server, 2, prompt=60, tokens=20, once=True):
            wait_until(lambda: "VllmEngineHung" in hook.alertnames, 60)
            incident = sentinel.wait_for_incident("resolved", seconds=300)

    assert while_idle.words == {"idle"}
    assert told_of(hook, "VllmEngineHung") - since <= HUNG_AFTER + timedelta(seconds=15)
    assert is_proved(incident, server)


def test_a_hang_with_requests_in_flight_is_found_cured_and_proved(
    server: Box, daemon: Start, hook: Hook
) -> None:
    sentinel = daemon(server.name)
    sentinel.wait_for_state(server.name, "idle")
    began = server.state["StartedAt"]

    with asking(server, 4, prompt=60, tokens=1500, once=True):
        wait_until(lambda: running(server) >= 1, 20)
        since = datetime.now(UTC)
        with stopped(server.host_pid()):
            wait_until(lambda: "VllmEngineHung" in hook.alertnames, 60)
            assert server.get("/health")[0] in (200, 0)  # 0: its restart is under way
            incident = sentinel.wait_for_incident("resolved", seconds=300)

    assert (
        HUNG_AFTER <= told_of(hook, "VllmEngineHung") - since <= HUNG_AFTER + timedelta(seconds=15)
    )
    assert server.state["StartedAt"] != began
    assert is_proved(incident, server)


@pytest.mark.parametrize(
    ("title", "cause"),
    [("VLLM::EngineCore", "engine_died"), ("VLLM::Worker", "worker_died")],
    ids=["engine", "worker"],
)
def test_in_act_mode_a_killed_process_is_told_at_once_and_the_server_proved_again(
    server: Box, daemon: Start, hook: Hook, title: str, cause: str
) -> None:
    sentinel = daemon(server.name)
    sentinel.wait_for_state(server.name, "idle")

    os.kill(server.host_pid(title), signal.SIGKILL)
    incident = sentinel.wait_for_incident("resolved", seconds=400)

    assert incident["subject"]["name"] == server.name
    assert incident["diagnosis"]["cause"] == cause
    assert "exited with code 0" in str(incident["diagnosis"]["evidence"])
    assert is_proved(incident, server)
    wait_until(lambda: "resolved" in hook.kinds, 60, "the webhook to hear the end")


def test_in_watch_mode_a_worker_killed_at_the_memory_limit_is_told_and_nothing_is_touched(
    server: Box, daemon: Start, hook: Hook
) -> None:
    sentinel = daemon(server.name, mode="watch")
    sentinel.wait_for_state(server.name, "idle")
    began = server.state["StartedAt"]

    server.container.exec_run(["python3", "-c", HOGS], detach=True)
    server.wait_exit(60)
    sentinel.wait_for_state(server.name, "failed")
    wait_until(lambda: "held" in hook.kinds, 30, "the decision to be told")

    assert told_after(hook, server) < timedelta(seconds=1)
    assert {"VllmOOM", "VllmContainerExited"} <= hook.alertnames
    kinds = {a["labels"].get("kind") for m in hook.messages for a in m["alerts"]}
    assert kinds == {"cgroup", None}
    held = hook.messages[hook.kinds.index("held")]["sentinel"]
    assert held["incident"]["diagnosis"]["cause"] == "cgroup_oom"
    decision = held["decision"]
    assert (decision["action"], decision["would"], decision["guard"]) == ("restart", True, "mode")
    assert (server.state["Status"], server.state["StartedAt"]) == ("exited", began)


def test_a_server_that_cannot_start_is_named_the_cause_and_not_started_again(
    bench: Testbed, vllm: Vllm, daemon: Start, hook: Hook
) -> None:
    sentinel = daemon(bench.full_name("narrow"))
    args = ["--max-model-len", "4096", "--num-gpu-blocks-override", "4"]
    box = run_real_vllm(bench, vllm, "narrow", args=args)
    sentinel.wait_for_state(box.name, "starting", seconds=60)
    began = box.state["StartedAt"]

    assert box.wait_exit(300) == 1
    wait_until(lambda: "held" in hook.kinds, 30, "the decision to be told")

    assert hook.alertnames == {"VllmContainerExited", "VllmStartupFailed"}
    decision = hook.messages[hook.kinds.index("held")]["sentinel"]["decision"]
    assert decision["guard"] == "restart_cannot_help"
    (listed,) = sentinel.ask("incidents")["incidents"]
    found = sentinel.ask("incidents", "show", listed["id"])
    assert found["diagnosis"]["cause"] == "kv_cache_too_small"
    assert (box.state["Status"], box.state["StartedAt"]) == ("exited", began)
