"""A real vLLM that has much to do, or is slow, is called busy and left alone."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from deploy.testbed import Box
from tests.e2e.clients import asking
from tests.e2e.conftest import Start
from tests.e2e.watching import Listener

pytestmark = [pytest.mark.e2e, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]


def kv_cache_usage(server: Box) -> str:
    found = re.search(
        r"^vllm:kv_cache_usage_perc\{.*\} (\S+)$", server.get("/metrics")[1], re.MULTILINE
    )
    return found[1] if found else ""


@contextmanager
def slowed(server: Box) -> Iterator[Callable[[], None]]:
    """Every eight seconds its worker runs for as long as it takes to fill one more block.

    Until the end of the block, or until what it yields is called.
    """
    over, pid = threading.Event(), server.host_pid("VLLM::Worker")

    def hold() -> None:
        while not over.is_set():
            os.kill(pid, signal.SIGSTOP)
            over.wait(8)
            before = kv_cache_usage(server)
            os.kill(pid, signal.SIGCONT)
            deadline = time.monotonic() + 0.2
            while kv_cache_usage(server) == before and time.monotonic() < deadline:
                pass

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        yield over.set
    finally:
        over.set()
        thread.join()


def test_saturation_is_no_fault(server: Box, daemon: Start) -> None:
    sentinel = daemon(server.name)
    sentinel.wait_for_state(server.name, "idle")
    began = server.state["StartedAt"]

    with asking(server, 24, prompt=60, tokens=400) as clients:
        said = Listener(sentinel, server.name).listen(40)

    assert "saturated" in said.words
    assert said.claims == set()
    assert set(clients.answers) == {200}
    assert server.state["StartedAt"] == began


def test_a_long_prefill_is_no_fault(server: Box, daemon: Start) -> None:
    sentinel = daemon(server.name)
    sentinel.wait_for_state(server.name, "idle")
    began = server.state["StartedAt"]

    with (
        slowed(server) as let_go,
        asking(server, 1, prompt=1900, tokens=1, once=True) as clients,
    ):
        said = Listener(sentinel, server.name).listen(30)
        answered_early = bool(clients.answers)
        let_go()

    assert not answered_early  # else it was no long one
    assert "serving" in said.words
    assert said.claims == set()
    assert clients.answers == {200: 1}
    assert server.state["StartedAt"] == began
