"""Who waits at a real container, and whether anything listens in it, seen from inside."""

import os
import signal
import threading
from pathlib import Path

import pytest

from deploy.testbed import Box, Testbed, wait_until
from sentinel.adapters.connections import Connections
from sentinel.adapters.docker_eyes import DockerEyes
from sentinel.core.endpoint import endpoint_of
from sentinel.core.sockets import Sockets, port_inside
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox
from tests.docker.test_docker_adapters import HOST

pytestmark = pytest.mark.docker


def look(box: Box) -> Sockets:
    container = DockerEyes(HOST).inspect(box.id)
    assert container is not None
    assert container.pid is not None
    endpoint = endpoint_of(container)
    assert endpoint is not None
    port = port_inside(container, endpoint)
    assert port is not None
    seen = Connections().look(container.pid, container.id, port)
    assert seen is not None
    return seen


def test_clients_of_a_hung_engine_are_seen_and_a_closed_port_is(vllm_box: VllmBox) -> None:
    box = vllm_box("a", env={"SIM_START_SECONDS": "2"})
    assert not look(box).listening
    box.wait_ready()
    wait_until(lambda: not look(box).ends, 5, "our own connections to be gone")
    assert look(box).listening

    box.hang_engine()
    waiting = [threading.Thread(target=box.complete, kwargs={"seconds": 3}) for _ in range(3)]
    for thread in waiting:
        thread.start()
    wait_until(lambda: len(look(box).ends) == 3, 5, "three clients to be connected")
    for thread in waiting:
        thread.join()
    wait_until(lambda: not look(box).ends, 5, "them to be gone")
    os.kill(box.host_pid(), signal.SIGCONT)


SHORT = """
  overrides:
    - name: "*"
      hung_after: 8s
      hung_after_in_first_minutes: {minutes: 1, hung_after: 8s}
      probe: {deadline: 2s}
"""


def test_an_engine_that_hung_while_idle_is_found_by_its_clients(
    tmp_path: Path, testbed: Testbed, vllm_box: VllmBox, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = Daemon(
        tmp_path, prefix=testbed.prefix, hook=hook.url, mode="watch", override=SHORT
    ).start()
    try:
        sentinel.wait_for_state(box.name, "idle")
        box.hang_engine()
        waiting = threading.Thread(target=box.complete, kwargs={"seconds": 20})
        waiting.start()

        said = sentinel.wait_for_state(box.name, "hung", seconds=20)

        assert "1 client connected whose work nothing counts" in said["because"]
        told = {one["name"] for one in sentinel.ask("explain", box.name)["witnesses"]}
        assert {"progress", "connections", "probe", "health"} <= told
        os.kill(box.host_pid(), signal.SIGCONT)
        waiting.join()
    finally:
        sentinel.close()
