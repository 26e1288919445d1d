"""The daemon as a black box whose state directory is not what it should be."""

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.testbed import Testbed, wait_until
from tests.blackbox import Daemon, Hook
from tests.docker.engine import VllmBox

pytestmark = [pytest.mark.docker, pytest.mark.timeout(120)]


@pytest.fixture
def sentinel(tmp_path: Path, testbed: Testbed, hook: Hook) -> Iterator[Daemon]:
    made = Daemon(tmp_path, prefix=testbed.prefix, hook=hook.url)
    yield made
    made.close()


def test_with_a_damaged_state_file_it_watches_and_tells_and_does_not_act(
    sentinel: Daemon, vllm_box: VllmBox, hook: Hook
) -> None:
    box = vllm_box("a")
    state = sentinel.folder / "state"
    state.mkdir()
    (state / "state.db").write_bytes(b"this is no database" * 1000)
    sentinel.start().wait_for_state(box.name, "idle")
    assert any("acts on nothing" in each for each in sentinel.ask("status")["problems"])

    box.kill_engine()
    seen = sentinel.wait_for_state(box.name, "failed")
    wait_until(lambda: "held" in hook.kinds, 20, "the decision to be told")

    assert seen["held"][0]["guard"] == "journal_unreadable"
    assert box.state["Status"] == "exited"
    assert (state / "state.db").read_bytes().startswith(b"this is no database")
    on_disk = json.loads((state / "status.json").read_text())
    assert any("acts on nothing" in each for each in on_disk["problems"])


def test_a_second_daemon_over_one_state_directory_says_so_and_goes(
    sentinel: Daemon, vllm_box: VllmBox
) -> None:
    box = vllm_box("a")
    sentinel.start().wait_for_state(box.name, "idle")
    flags = ["--config", str(sentinel.config), "--state-dir", str(sentinel.folder / "state")]

    second = sentinel.run("run", *flags, "--socket", str(sentinel.folder / "other.sock"))

    assert second.returncode == 2
    assert "another Sentinel holds" in second.stdout + second.stderr
    assert sentinel.target(box.name)["state"] == "idle"


def test_status_json_is_what_status_says_and_evidence_is_saved(
    sentinel: Daemon, vllm_box: VllmBox
) -> None:
    box = vllm_box("a", env={"HF_TOKEN": "s3cr3t"})
    sentinel.start().wait_for_state(box.name, "idle")
    on_disk = json.loads((sentinel.folder / "state" / "status.json").read_text())
    said = sentinel.ask("status")
    assert on_disk.keys() == said.keys()
    assert on_disk["targets"][0].keys() == said["targets"][0].keys()

    box.kill_engine()
    incident = sentinel.wait_for_incident("resolved")

    folder = Path(incident["evidence"])
    assert "evidence_saved" in [line["event"] for line in incident["timeline"]]
    assert len(list(folder.iterdir())) == 4
    for file in folder.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "s3cr3t" not in file.read_text()
