"""Logs followed and memory watched, over real Docker: nothing lost, nothing counted twice."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from deploy.testbed import Box, Testbed, host_mounts, wait_until
from tests.blackbox import Daemon, Hook, Json
from tests.docker.engine import VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

Start = Callable[..., Daemon]


@pytest.fixture
def daemon(tmp_path: Path, testbed: Testbed, hook: Hook) -> Iterator[Start]:
    made: list[Daemon] = []

    def start(**settings: str) -> Daemon:
        wanted = {"prefix": testbed.prefix, "hook": hook.url, "mode": "watch", **settings}
        found = Daemon(tmp_path, **wanted)
        made.append(found)
        return found.start()

    yield start
    for each in made:
        each.close()


def count(sentinel: Daemon, series: str) -> float:
    """The value of one series; -1 where there is none."""
    status, answer = sentinel.tell("GET", f"/api/v1/query?query={quote(series)}")
    found = answer["data"]["result"] if status == 200 else []
    return float(found[0]["value"][1]) if found else -1.0


def told(hook: Hook, alertname: str) -> datetime:
    """When the hook first heard of an alert."""
    wait_until(lambda: alertname in hook.alertnames, 20, f"{alertname} to be told")
    heard = zip(hook.times, hook.messages, strict=True)
    return next(
        at
        for at, message in heard
        if any(alert["labels"]["alertname"] == alertname for alert in message["alerts"])
    )


def oom_series(box: Box, kind: str) -> str:
    return f'sentinel_oom_events_total{{target="{box.name}",kind="{kind}"}}'


def restarts_of(box: Box) -> int:
    box.container.reload()
    return int(box.container.attrs["RestartCount"])


def test_cuda_out_of_memory_is_told_within_a_second_and_counted_once(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")
    wait_until(lambda: count(sentinel, oom_series(box, "cuda_runtime")) == 0, 20, "a zero")

    began = datetime.now(UTC)
    box.fault("cuda_oom")
    at = told(hook, "VllmOOM")
    box.wait_exit()
    incident = named(sentinel, "cuda_oom_runtime")
    wait_until(lambda: sentinel.target(box.name).get("state") == "failed", 20, "the end")

    assert at - began < timedelta(seconds=1)
    assert count(sentinel, oom_series(box, "cuda_runtime")) == 1
    assert "1.96 GiB were asked for and 1.68 GiB" in incident["diagnosis"]["advice"]


def test_a_process_killed_for_memory_while_its_server_lives(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a", mem_limit="160m", memswap_limit="160m")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")
    wait_until(lambda: count(sentinel, oom_series(box, "cgroup")) == 0, 20, "a zero")

    began = datetime.now(UTC)
    hog = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    box.container.exec_run(["python3", "-S", "-c", hog])
    at = told(hook, "VllmOOM")
    named(sentinel, "cgroup_oom")

    assert at - began < timedelta(seconds=3)  # the hog needs a while to fill it
    assert count(sentinel, oom_series(box, "cgroup")) == 1
    assert sentinel.target(box.name)["state"] == "idle"


def named(sentinel: Daemon, cause: str) -> Json:
    """The open incident, once that is its cause: it may be open, or have a lesser one, before."""
    opened = sentinel.wait_for_incident("open")

    def there() -> Json:
        found = sentinel.ask("incidents", "show", opened["id"])
        return found if found.get("diagnosis", {}).get("cause") == cause else {}

    return wait_until(there, 60, f"{cause} to be named:\n{sentinel.tail()}")


def test_each_turn_of_dockers_restart_loop_is_counted_and_its_cause_named(
    vllm_box: VllmBox, daemon: Start
) -> None:
    sentinel = daemon()
    wait_until(lambda: sentinel.ask("status"), 20, "the daemon")
    box = vllm_box("a", restart_policy="always", env={"SIM_FAULT": "cuda_oom@0.1"})
    named(sentinel, "cuda_oom_runtime")
    wait_until(lambda: restarts_of(box) >= 3, 40, "three turns")
    box.container.stop()
    sentinel.wait_for_state(box.name, "stopped")
    restarts = restarts_of(box)

    def counted() -> bool:
        return count(sentinel, oom_series(box, "cuda_runtime")) >= restarts

    wait_until(counted, 10, f"each to be counted:\n{sentinel.tail()}")
    assert count(sentinel, oom_series(box, "cuda_runtime")) <= restarts + 1


LINE = "ERROR 11-30 12:00:00 [core.py:1] ValueError: number"


@pytest.mark.parametrize("tty", [False, True], ids=["frames", "terminal"])
def test_no_line_is_lost_or_counted_twice_when_the_daemon_is_killed(
    testbed: Testbed,
    daemon: Start,
    tty: bool,
) -> None:
    sentinel = daemon()
    wait_until(lambda: sentinel.ask("status"), 20, "the daemon")
    lines = (
        f'i=0; while [ $i -lt 400 ]; do echo "{LINE} $i"; i=$((i+1)); sleep 0.02; done; sleep 99'
    )
    box = testbed.start(
        "a", ["sh", "-c", lines], mounts=host_mounts(), env={}, host_port=None, tty=tty
    )
    series = f'sentinel_log_events_total{{target="{box.name}",event="error"}}'

    def reached(wanted: int) -> None:
        wait_until(lambda: count(sentinel, series) >= wanted, 40, f"{wanted}:\n{sentinel.tail()}")

    for written in (80, 200):
        reached(written)
        sentinel.kill()
        sentinel.start()
    reached(400)

    assert count(sentinel, series) == 400


def test_a_log_that_cannot_be_read_is_said_and_nothing_else_suffers(
    vllm_box: VllmBox, daemon: Start
) -> None:
    box = vllm_box("a", log_config={"Type": "none"})
    sentinel = daemon()

    sentinel.wait_for_state(box.name, "idle")
    wait_until(lambda: sentinel.ask("status")["problems"], 20, "the problem")
    problems: Any = sentinel.ask("status")["problems"]
    assert [text for text in problems if box.name in text and "log driver" in text]
