"""The daemon as a black box over real Docker and simulated vLLM servers."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from deploy.testbed import Box, Testbed, wait_until
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

Start = Callable[..., Daemon]


@pytest.fixture
def daemon(tmp_path: Path, testbed: Testbed, hook: Hook) -> Iterator[Start]:
    made: list[Daemon] = []

    def start(**settings: str) -> Daemon:
        wanted = {"prefix": testbed.prefix, "hook": hook.url, **settings}
        found = Daemon(tmp_path, **wanted)
        made.append(found)
        return found.start()

    yield start
    for each in made:
        each.close()


def finished_at(box: Box) -> datetime:
    return datetime.fromisoformat(box.state["FinishedAt"][:26] + "+00:00")


def test_in_act_mode_a_dead_engine_is_told_within_a_second_and_put_right(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")
    first_start = box.state["StartedAt"]

    box.kill_engine()
    incident = sentinel.wait_for_incident("resolved")

    assert box.state["StartedAt"] != first_start
    assert box.complete()[0] == 200
    assert incident["diagnosis"]["cause"] == "engine_died"
    assert [i["outcome"] for i in incident["intents"]] == ["verified"]
    happened = [line["event"] for line in incident["timeline"]]
    wanted = [
        "target_state_changed",
        "incident_opened",
        "alert_firing",
        "diagnosis_made",
        "intent_reserved",
        "step_started",
        "step_done",
        "intent_closed",
        "alert_resolved",
        "incident_resolved",
    ]
    assert next(event for event in happened if event in wanted) == "target_state_changed"
    assert set(wanted) <= set(happened)
    wait_until(lambda: "resolved" in hook.kinds, 20, "the webhook to hear the end")
    assert hook.kinds == ["alert", "action", "action", "resolved"]
    assert hook.messages[0]["version"] == "4"
    assert hook.messages[0]["sentinel"]["incident"]["id"] == incident["id"]


def test_the_webhook_hears_of_a_death_within_a_second(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = daemon(mode="watch")
    sentinel.wait_for_state(box.name, "idle")

    box.kill_engine()
    assert box.wait_exit() == 0
    wait_until(lambda: hook.messages, 20, "the webhook to hear of it")

    assert hook.times[0] - finished_at(box) < timedelta(seconds=1)


def test_in_watch_mode_nothing_is_touched_and_the_message_says_what_would_be(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = daemon(mode="watch")
    sentinel.wait_for_state(box.name, "idle")
    first_start = box.state["StartedAt"]

    box.kill_engine()
    seen = sentinel.wait_for_state(box.name, "failed")
    wait_until(lambda: "held" in hook.kinds, 20, "the decision to be told")

    assert (box.state["Status"], box.state["StartedAt"]) == ("exited", first_start)
    decision = hook.messages[hook.kinds.index("held")]["sentinel"]["decision"]
    assert (decision["action"], decision["would"], decision["guard"]) == ("restart", True, "mode")
    assert seen["held"][0]["guard"] == "mode"
    assert decision["because"] == seen["held"][0]["because"]
    assert sentinel.run("status").returncode == 1


def test_a_stop_by_a_person_is_left_alone(vllm_box: VllmBox, daemon: Start, hook: Hook) -> None:
    box = vllm_box("a")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")

    box.container.stop(timeout=10)
    seen = sentinel.wait_for_state(box.name, "stopped")

    assert "stopped by a person" in seen["because"]
    assert "stopped by a person" in sentinel.run("status").stdout
    assert hook.messages == []
    assert box.state["Status"] == "exited"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_stop_while_sentinel_is_down_is_left_alone(
    vllm_box: VllmBox, daemon: Start, hook: Hook, how: str
) -> None:
    box = vllm_box("a")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")
    sentinel.kill()

    if how == "stop":
        box.container.stop(timeout=10)
    else:
        box.container.kill()
    sentinel.start()
    seen = sentinel.wait_for_state(box.name, "stopped")

    assert "stopped by a person" in seen["because"]
    assert hook.messages == []


def test_a_death_while_sentinel_is_down_is_put_right(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")
    sentinel.kill()

    box.kill_engine()
    assert box.wait_exit() == 0
    sentinel.start()
    incident = sentinel.wait_for_incident("resolved")

    assert [i["outcome"] for i in incident["intents"]] == ["verified"]


def test_a_loading_model_is_left_to_load(vllm_box: VllmBox, daemon: Start, hook: Hook) -> None:
    box = vllm_box("slow", env={"SIM_START_SECONDS": "20"})
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "starting")
    first_start = box.state["StartedAt"]

    sentinel.wait_for_state(box.name, "idle")

    assert box.state["StartedAt"] == first_start
    assert hook.messages == []


def test_dockers_own_restart_is_told_and_not_doubled(
    vllm_box: VllmBox, daemon: Start, hook: Hook
) -> None:
    box = vllm_box("a", restart_policy="always")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")

    box.kill_engine()
    incident = sentinel.wait_for_incident("resolved")

    assert incident["alerts"] == ["VllmContainerExited"]
    assert incident["diagnosis"]["cause"] == "engine_died"
    assert incident["intents"] == []
    assert box.complete()[0] == 200


def test_a_malformed_configuration_is_refused_and_on_reload_the_old_one_stays(
    vllm_box: VllmBox, daemon: Start
) -> None:
    box = vllm_box("a")
    sentinel = daemon()
    sentinel.wait_for_state(box.name, "idle")
    good = sentinel.config.read_text()
    bad = good + "modus: act\n"
    sentinel.config.write_text(bad)

    checked = sentinel.run("config", "check", str(sentinel.config))
    line = len(good.splitlines()) + 1
    assert checked.returncode == 2
    assert f"{sentinel.config}:{line}:1: modus:" in checked.stdout
    assert "allowed:" in checked.stdout

    reloaded = sentinel.run("reload")
    assert reloaded.returncode == 2
    assert "stays in force" in reloaded.stdout + reloaded.stderr
    wait_until(lambda: "config_refused" in sentinel.events(), 5, "the refusal in the log")
    assert sentinel.target(box.name)["state"] == "idle"

    sentinel.config.write_text(good.replace("mode: act", "mode: watch"))
    assert sentinel.run("reload").returncode == 0
    wait_until(lambda: sentinel.ask("status")["daemon"]["mode"] == "watch", 5, "the new mode")


def test_a_daemon_that_cannot_have_its_configuration_exits_2(
    daemon: Start, testbed: Testbed
) -> None:
    sentinel = daemon(mode="actt")
    assert sentinel.process is not None
    assert sentinel.process.wait(20) == 2
    assert "sentinel.yaml:2:7: mode:" in sentinel.log_file.read_text()


OK = b"HTTP/1.1 200 OK\r\n"
LINES = b"vllm:x 1\n" * 9999
RUDE: dict[str, list[bytes]] = {
    "garbage": [OK + b"\r\n" + bytes(range(256)) * 64],
    "no http": [b"\x00\xff" * 4096],
    "endless": [OK + b"\r\n", *[LINES] * 500],
    "dribble": [OK + b"\r\n", *[b"a"] * 2000],
    "claims to be huge": [OK + b"Content-Length: 99999999999\r\n\r\n#"],
}


class RudeServer:
    """Answers every request in one of the ways of `RUDE`, for as long as anybody listens."""

    def __init__(self, what: str) -> None:
        self._pieces = RUDE[what]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._be_rude, args=(connection,), daemon=True).start()

    def _be_rude(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            for piece in self._pieces:
                connection.sendall(piece)
                time.sleep(0.02 if len(piece) == 1 else 0.0)

    def close(self) -> None:
        self._listener.close()


@pytest.mark.parametrize("what", RUDE)
def test_a_rude_answer_harms_nothing_but_its_own_up(
    vllm_box: VllmBox, daemon: Start, what: str
) -> None:
    rude, polite = vllm_box("rude"), vllm_box("polite")
    server = RudeServer(what)
    override = f"""  overrides: [{{name: {rude.name}, endpoint: "{server.url}"}}]"""
    sentinel = daemon(override=override)
    sentinel.wait_for_state(polite.name, "idle")

    wait_until(lambda: _scrape_fails(sentinel, rude.name), 30, "the scrape to fail")

    assert sentinel.target(polite.name)["state"] == "idle"
    assert sentinel.target(rude.name)["state"] == "starting"
    assert sentinel.process is not None
    assert sentinel.process.poll() is None
    assert _resident_mb(sentinel) < 200
    server.close()


def _scrape_fails(sentinel: Daemon, name: str) -> bool:
    witnesses = sentinel.ask("explain", name).get("witnesses", [])
    return any(w["name"] == "scrape" and not w["says"].startswith("200") for w in witnesses)


def _resident_mb(sentinel: Daemon) -> float:
    assert sentinel.process is not None
    status = Path(f"/proc/{sentinel.process.pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024
