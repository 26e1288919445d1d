"""The daemon as a black box, and a child that the kernel kills while its parent lives."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.testbed import Testbed, wait_until
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(120)]

_GREEDY = "x = bytearray(600 << 20)\nfor at in range(0, len(x), 4096): x[at] = 1"


@pytest.fixture
def sentinel(tmp_path: Path, testbed: Testbed, hook: Hook) -> Iterator[Daemon]:
    made = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url)
    yield made
    made.close()


def oom_kinds(sentinel: Daemon) -> dict[str, str]:
    """Of each alert that stands, with its state."""
    alerts = sentinel.ask("status")["alerts"]
    return {a["labels"]["kind"]: a["state"] for a in alerts if a["alertname"] == "VllmOOM"}


def test_a_child_killed_at_the_limit_is_told_while_the_container_runs(
    sentinel: Daemon, vllm_box: VllmBox
) -> None:
    box = vllm_box("a", mem_limit="256m", memswap_limit="256m")
    sentinel.start().wait_for_state(box.name, "idle")

    killed = box.container.exec_run(["python3", "-c", _GREEDY])
    wait_until(lambda: oom_kinds(sentinel), 10, "memory that ran out to be told")

    assert killed.exit_code == 137
    assert oom_kinds(sentinel) == {"cgroup": "firing"}
    assert box.state["Status"] == "running"
    assert sentinel.target(box.name)["state"] == "idle"
    with sqlite3.connect(sentinel.folder / "state" / "state.db") as db:
        rows = db.execute("SELECT kind FROM oom").fetchall()
    assert rows == [("cgroup",)]  # once, however many tell of it
