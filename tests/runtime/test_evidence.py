"""Evidence first: before a container is touched, what it looked like is saved; privately."""

import os
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentinel.core.model.errors import Transient
from sentinel.runtime.evidence import Evidence, Scene
from sentinel.store.picture import Reader
from tests.fakes import CRASH_LOG, IDLE, FakeClock, FakeDocker
from tests.runtime.house import Daemon

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
PROMPT = "INFO Received request cmpl-1: prompt: 'my s3cr3t life', params: SamplingParams()\n"


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    return docker


def scene(docker: FakeDocker, incident: str = "i-000001") -> Scene:
    return Scene(
        incident=incident,
        intent="n-000001",
        container_id=docker.boxes["t1-a"].seen.id,
        started_at=None,
        metrics=IDLE,
        launches=[{"argv": ["vllm", "--api-key", "s3cr3t"], "by": "other"}],
    )


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_it_is_saved_before_the_first_step_and_said(tmp_path: Path, docker: FakeDocker) -> None:
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    docker.die("t1-a", log=CRASH_LOG + PROMPT)
    house.run(60)

    folder = tmp_path / "evidence" / "i-000001"
    names = ["inspect.json", "launches.json", "log.txt", "metrics.txt"]
    assert sorted(f.name for f in folder.iterdir()) == [f"n-000001-{name}" for name in names]
    assert "engine core" in (folder / "n-000001-log.txt").read_text().lower()
    assert (folder / "n-000001-metrics.txt").read_bytes() == IDLE
    found = Reader(tmp_path / "state.db", tmp_path / "evidence").incident("i-000001")
    assert found is not None
    assert found["evidence"] == str(folder)
    happened = [line["event"] for line in found["timeline"]]
    assert happened.count("evidence_saved") == 1
    house.memory.close()


def test_it_is_for_the_owner_alone_and_holds_no_secret_and_no_prompt(
    tmp_path: Path, docker: FakeDocker
) -> None:
    docker.boxes["t1-a"].log = PROMPT
    before = os.umask(0)
    try:
        saved = Evidence(tmp_path / "evidence", docker).save(scene(docker), NOW)
    finally:
        os.umask(before)

    folder = tmp_path / "evidence" / "i-000001"
    assert len(saved) == 4
    assert mode_of(folder) == mode_of(folder.parent) == 0o700
    for file in folder.iterdir():
        assert mode_of(file) == 0o600
        assert "s3cr3t" not in file.read_text()


def test_what_cannot_be_had_is_left_out(tmp_path: Path, docker: FakeDocker) -> None:
    docker.lost = True
    saved = Evidence(tmp_path / "evidence", docker).save(scene(docker), NOW)

    assert saved == ["n-000001-metrics.txt", "n-000001-launches.json"]


def test_no_room_for_it_keeps_nothing_from_being_done(
    tmp_path: Path, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    monkeypatch.setattr(Path, "mkdir", full)
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]
    house.memory.close()


def test_a_log_that_docker_will_not_give_keeps_nothing_from_being_done(
    tmp_path: Path, docker: FakeDocker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> str:
        raise Transient("the log cannot be read")

    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    house.run(5)
    monkeypatch.setattr(docker, "log_tail", refused)
    docker.die("t1-a")
    house.run(60)

    assert docker.done == ["start t1-a"]
    house.memory.close()


def test_it_grows_neither_old_nor_large(tmp_path: Path, docker: FakeDocker) -> None:
    evidence = Evidence(tmp_path / "evidence", docker)
    for number, days in enumerate((30, 3, 2, 1)):
        at = NOW - timedelta(days=days)
        evidence.save(scene(docker, f"i-00000{number}"), at)
        folder = tmp_path / "evidence" / f"i-00000{number}"
        os.utime(folder, (at.timestamp(), at.timestamp()))

    evidence.prune(NOW)
    assert sorted(f.name for f in evidence._folder.iterdir()) == [
        "i-000001",
        "i-000002",
        "i-000003",
    ]
    evidence.keep_bytes = len(IDLE) * 2
    evidence.prune(NOW)
    assert [f.name for f in evidence._folder.iterdir()] == ["i-000003"]


def test_one_file_is_bounded_and_keeps_its_end(tmp_path: Path, docker: FakeDocker) -> None:
    big = replace(scene(docker), metrics=b"x 1\n" * (1 << 20) + b"the_end 1\n")
    Evidence(tmp_path / "evidence", docker).save(big, NOW)

    file = tmp_path / "evidence" / "i-000001" / "n-000001-metrics.txt"
    assert file.stat().st_size <= 2 << 20
    assert file.read_text().endswith("the_end 1\n")
