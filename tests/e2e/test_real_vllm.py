"""What Sentinel takes for granted about vLLM, seen on a real one, and the simulation beside it."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.testbed import Box, Testbed, wait_until
from tests.e2e.real_vllm import Vllm, run_real_vllm

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]
READY_WITHIN = 300.0


@pytest.fixture(scope="module")
def real(bench: Testbed, vllm: Vllm) -> Iterator[Box]:
    box = run_real_vllm(bench, vllm, "real")
    yield box
    box.remove()


@pytest.fixture(scope="module")
def simulated(bench: Testbed) -> Box:
    args = ["--served-model-name", "tiny", "--enforce-eager", "--max-num-seqs", "64"]
    return bench.run_simulated("simulated", args=args)


def families(box: Box) -> dict[str, str]:
    return {f.name: f.type for f in text_string_to_metric_families(box.get("/metrics")[1])}


def kinds_of_lines(text: str, since: str) -> list[str]:
    """The [file:line]-less skeleton of a log: who, how grave, and from which file."""
    found = re.findall(
        r"^\((\w+) pid=\d+\) ([A-Z]+) [\d: -]+\[(\w+\.py):\d+\]",
        text[text.index(since) :],
        re.MULTILINE,
    )
    return [" ".join(each) for each in found if each[0] != "Worker"]


def test_it_becomes_ready_and_completes(real: Box) -> None:
    began = time.monotonic()
    real.wait_ready(READY_WITHIN)
    print(f"ready after {time.monotonic() - began:.0f} s")

    status, text = real.complete(tokens=3)

    assert status == 200, text


def test_the_simulation_shows_the_same_metrics(real: Box, simulated: Box) -> None:
    assert simulated.wait_ready().complete(tokens=3)[0] == 200
    ours, theirs = families(simulated), families(real)

    assert {k: v for k, v in ours.items() if k.startswith(("vllm:", "http_"))} == {
        k: v for k, v in theirs.items() if k.startswith(("vllm:", "http_"))
    }


def test_a_stopped_engine_is_invisible_to_health_and_gauges(real: Box) -> None:
    engine = real.host_pid()
    os.kill(engine, signal.SIGSTOP)
    try:
        assert real.complete(seconds=2)[0] == 0
        assert real.get("/health")[0] == 200
    finally:
        os.kill(engine, signal.SIGCONT)
    assert real.complete(seconds=30)[0] == 200


def test_a_killed_engine_ends_both_with_code_0_and_the_same_lines(
    real: Box, simulated: Box
) -> None:
    took = {}
    for box in (real, simulated):
        thread = threading.Thread(target=box.complete, kwargs={"tokens": 3000, "seconds": 60})
        thread.start()
        wait_until(lambda: running(box) >= 1, 10)  # noqa: B023 - used at once
        began = time.monotonic()
        box.kill_engine()
        assert box.wait_exit() == 0
        took[box.name] = time.monotonic() - began
        thread.join(60)
    print(took, real.logs()[-3000:])

    since = "[core_client.py:817]"
    assert kinds_of_lines(simulated.logs(), since) == kinds_of_lines(real.logs(), since)
    assert max(took.values()) < 5


def running(box: Box) -> float:
    found = re.search(
        r"^vllm:num_requests_running\{.*\} (\S+)$", box.get("/metrics")[1], re.MULTILINE
    )
    return float(found[1]) if found else 0.0
