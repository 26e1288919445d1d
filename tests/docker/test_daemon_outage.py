"""Docker is lost, from the daemon's side only, and comes back: a daemon as a black box.

Losing Docker is never taken for a target's fault; nothing that happened meanwhile is missed.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from deploy.testbed import Testbed, wait_until
from sentinel.client.daemon import Daemon as Client
from tests.blackbox import Daemon, Hook
from tests.docker.docker_proxy import DockerProxy
from tests.docker.engine import VllmBox
from tests.docker.test_daemon_killed import starts_since

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

FAILURES: Mapping[str, Callable[[DockerProxy], None]] = {
    "refuses": DockerProxy.refuse,
    "hangs": DockerProxy.hang,
}
how = pytest.mark.parametrize("fail", FAILURES.values(), ids=FAILURES)
Fail = Callable[[DockerProxy], None]


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[DockerProxy]:
    made = DockerProxy(tmp_path / "docker.sock")
    yield made
    made.close()


@pytest.fixture
def sentinel(tmp_path: Path, testbed: Testbed, hook: Hook, proxy: DockerProxy) -> Iterator[Daemon]:
    made = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url, docker=proxy.url)
    yield made.start()
    made.close()


def problems(sentinel: Daemon) -> list[str]:
    return [str(problem) for problem in sentinel.ask("status").get("problems", [])]


def wait_until_lost(sentinel: Daemon) -> None:
    wait_until(lambda: "docker_lost" in sentinel.events(), 30, "Docker to be given up")


def wait_until_said_lost(sentinel: Daemon) -> None:
    says = "Docker does not answer since"
    wait_until(lambda: any(says in each for each in problems(sentinel)), 10, says)


def wait_until_back(sentinel: Daemon) -> None:
    wait_until(lambda: "docker_back" in sentinel.events(), 30, "Docker to be found again")


def incident_of(sentinel: Daemon, kind: str, status: str) -> dict[str, Any]:
    """The incident about a target, or about the host, once it has come to this."""

    def there() -> dict[str, Any]:
        found = sentinel.ask("incidents").get("incidents", [])
        return next(
            (i for i in found if i["subject"]["kind"] == kind and i["status"] == status), {}
        )

    return wait_until(there, 90, f"an incident of the {kind} to be {status}:\n{sentinel.tail()}")


@how
def test_an_engine_that_is_lost_is_told_once_and_no_target_is_blamed(
    vllm_box: VllmBox, sentinel: Daemon, proxy: DockerProxy, hook: Hook, fail: Fail
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    first_start = box.state["StartedAt"]

    fail(proxy)
    wait_until_lost(sentinel)
    wait_until_said_lost(sentinel)
    assert sentinel.run("status").returncode == 1
    assert sentinel.target(box.name)["state"] == "idle"  # its own answers go on being heard
    incident = incident_of(sentinel, "host", "open")
    time.sleep(5)  # longer than group_interval: a second message would have come

    proxy.go_on()
    incident_of(sentinel, "host", "resolved")
    wait_until(lambda: "resolved" in hook.kinds, 20, "the webhook to hear the end")

    assert hook.alertnames == {"DockerUnreachable"}
    assert [(message["status"], message["sentinel"]["kind"]) for message in hook.messages] == [
        ("firing", "alert"),
        ("resolved", "resolved"),
    ]
    assert {m["sentinel"]["incident"]["id"] for m in hook.messages} == {incident["id"]}
    assert problems(sentinel) == []
    assert sentinel.run("status").returncode == 0
    assert box.state["StartedAt"] == first_start


@how
def test_a_target_that_dies_meanwhile_is_found_and_put_right(
    vllm_box: VllmBox, sentinel: Daemon, proxy: DockerProxy, fail: Fail
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    fail(proxy)
    wait_until_lost(sentinel)

    box.kill_engine()
    assert box.wait_exit() == 0
    sentinel.wait_for_state(box.name, "unknown", seconds=20)
    proxy.go_on()
    incident = incident_of(sentinel, "target", "resolved")

    assert [i["outcome"] for i in incident["intents"]] == ["verified"]
    assert incident["diagnosis"]["cause"] == "engine_died"
    assert box.complete()[0] == 200


@how
def test_a_stop_by_a_person_meanwhile_stays_a_stop(
    vllm_box: VllmBox, sentinel: Daemon, proxy: DockerProxy, hook: Hook, fail: Fail
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    fail(proxy)
    wait_until_lost(sentinel)

    box.container.stop(timeout=10)
    proxy.go_on()
    wait_until_back(sentinel)
    seen = sentinel.wait_for_state(box.name, "stopped")

    assert "stopped by a person" in seen["because"]
    assert hook.messages == []
    assert box.state["Status"] == "exited"


def test_connections_that_are_cut_are_made_again_and_nobody_is_told(
    vllm_box: VllmBox, sentinel: Daemon, proxy: DockerProxy, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")

    for _ in range(3):
        proxy.cut()
        time.sleep(1)
    box.container.stop(timeout=10)
    sentinel.wait_for_state(box.name, "stopped", seconds=10)

    assert hook.messages == []
    assert problems(sentinel) == []


def test_while_docker_hangs_the_loop_goes_on_and_ends_when_told(
    vllm_box: VllmBox, sentinel: Daemon, proxy: DockerProxy, tmp_path: Path
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    client = Client(sentinel.socket, answer_within=1)
    proxy.hang()

    until = time.monotonic() + 16  # past the deadline of a call, so both while it waits and after
    while time.monotonic() < until:
        status = client.status()
        assert status["age_seconds"] < 2.5
        assert time.time() - (tmp_path / "state" / "beat").stat().st_mtime < 2.5
        time.sleep(0.5)

    assert "docker_lost" in sentinel.events()
    assert sentinel.process is not None
    sentinel.process.terminate()
    assert sentinel.process.wait(5) == 0


def test_a_daemon_started_while_docker_is_down_waits_for_it(
    vllm_box: VllmBox, testbed: Testbed, proxy: DockerProxy, hook: Hook, tmp_path: Path
) -> None:
    box = vllm_box("a")
    proxy.refuse()
    made = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url, docker=proxy.url)
    with contextlib.closing(made.start()) as sentinel:
        wait_until(lambda: problems(sentinel), 20, "the daemon to answer")
        wait_until_said_lost(sentinel)

        proxy.go_on()
        sentinel.wait_for_state(box.name, "idle")

        assert problems(sentinel) == []
        assert hook.messages == []


@pytest.mark.parametrize("answer", ["late", "never"])
def test_a_restart_whose_answer_does_not_come_is_not_done_twice(
    vllm_box: VllmBox, testbed: Testbed, sentinel: Daemon, proxy: DockerProxy, answer: str
) -> None:
    box = vllm_box("a")
    sentinel.wait_for_state(box.name, "idle")
    began = time.time()
    proxy.hang_after(b"/start HTTP")

    box.kill_engine()
    wait_until(lambda: proxy.hangs, 30, "the restart to be asked for")
    if answer == "late":
        wait_until_lost(sentinel)
    else:
        wait_until(lambda: box.state["Running"], 10, "the engine to have done it")
        proxy.cut()
    proxy.go_on()
    incident = incident_of(sentinel, "target", "resolved")

    assert [i["outcome"] for i in incident["intents"]] == ["verified"]
    assert starts_since(testbed.client, box, began) == 1
    assert box.complete()[0] == 200
