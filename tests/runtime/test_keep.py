"""The state directory: whose it is, and what others find in it."""

import json
import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sentinel.api.snapshot import Snapshot
from sentinel.core.model.errors import Permanent
from sentinel.runtime.keep import StateDir

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def picture(at: datetime = NOW, **status: object) -> Snapshot:
    return Snapshot(at=at, ready=True, status={"targets": [], **status})


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDir]:
    found = StateDir(tmp_path / "state")
    found.take()
    yield found
    found.close()


def test_a_directory_is_one_daemons(state: StateDir) -> None:
    with pytest.raises(Permanent, match="another Sentinel holds"):
        StateDir(state.path).take()


def test_a_new_directory_is_closed_to_others(state: StateDir) -> None:
    assert mode_of(state.path) == 0o750


def test_a_directory_that_was_there_is_closed_to_others_too(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o755)
    found = StateDir(tmp_path / "state")
    found.take()
    found.close()

    assert mode_of(found.path) == 0o750


def test_status_json_is_whole_and_readable_by_the_group_whatever_the_umask(
    state: StateDir,
) -> None:
    before = os.umask(0o077)
    try:
        state.show(picture(problems=["x"]), NOW)
    finally:
        os.umask(before)

    file = state.path / "status.json"
    assert mode_of(file) == 0o640
    assert json.loads(file.read_text()) == json.loads(
        json.dumps(picture(problems=["x"]).as_status(NOW))
    )


def test_status_json_holds_no_number_that_is_none_in_json(state: StateDir) -> None:
    state.show(picture(alerts=[{"value": float("nan")}]), NOW)

    text = (state.path / "status.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["alerts"] == [{"value": None}]


def test_status_json_is_written_when_it_changes_and_at_least_every_half_minute(
    state: StateDir,
) -> None:
    def at() -> str:
        return str(json.loads((state.path / "status.json").read_text())["at"])

    state.show(picture(), NOW)
    first = at()
    state.show(picture(NOW + timedelta(seconds=29)), NOW + timedelta(seconds=29))
    assert at() == first
    state.show(picture(NOW + timedelta(seconds=30)), NOW + timedelta(seconds=30))
    assert at() > first
    later = NOW + timedelta(seconds=31)
    state.show(picture(later, problems=["new"]), later)
    assert at() == "2030-01-01T12:00:31.000Z"
    hour_back = NOW - timedelta(hours=1)
    state.show(picture(hour_back, problems=["new"]), hour_back)
    assert at() == "2030-01-01T11:00:00.000Z"


def test_what_a_kill_left_half_written_is_replaced(state: StateDir) -> None:
    (state.path / "status.json").write_text('{"at": "20')
    (state.path / "status.json.new").write_text('{"at')
    (state.path / "status.json.new").chmod(0o400)

    state.show(picture(), NOW)

    assert json.loads((state.path / "status.json").read_text())["targets"] == []
    assert mode_of(state.path / "status.json") == 0o640


def test_a_disk_that_takes_nothing_costs_the_files_and_is_said(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        patched.setattr(os, "utime", full)
        state.show(picture(), NOW)
        assert state.trouble == "No space left on device"
        state.beat(NOW)
    state.show(picture(), NOW)

    assert state.trouble == ""
    assert (state.path / "status.json").exists()


def test_the_last_beat_is_when_somebody_last_watched(state: StateDir) -> None:
    assert state.last_beat() is None
    state.beat(NOW)
    state.beat(NOW + timedelta(milliseconds=500))
    assert state.last_beat() == NOW


def test_a_lock_that_may_only_be_read_still_locks(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def read_only(self: Path, mode: str = "r", *rest: object, **named: object) -> object:
        if "r" not in mode:
            raise OSError(30, "Read-only file system")
        return real(self, mode, *rest, **named)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", read_only)
    with pytest.raises(Permanent, match="another Sentinel holds"):
        StateDir(state.path).take()
