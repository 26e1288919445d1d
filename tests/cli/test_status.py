import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.api.snapshot import Snapshot, to_json
from sentinel.cli.text import cells, moment, paragraph, span
from tests.api.fake_house import NOW, FakeHouse, a_snapshot, a_target, an_alert, an_approval
from tests.cli.conftest import Sentinel

TROUBLE: dict[str, Any] = {
    "targets": [
        a_target(),
        a_target(
            "t1-b",
            "hung",
            because="no progress for 130 s with 3 requests running",
            last_action={
                "action": "restart",
                "outcome": "verified",
                "at": "2030-01-01T11:00:00Z",
                "because": "the engine hung",
            },
            held=[
                {"action": "restart", "guard": "cooldown", "because": "restarted 1h ago", "until": "2030-01-01T12:15:00Z"},
                {"action": "restart", "guard": "mode", "because": "mode is watch", "until": None},
            ],
            incident="i-000007",
        ),
    ],
    "alerts": [an_alert("VllmEngineHung"), an_alert("KVHigh", state="pending", severity="warning")],
    "approvals": [an_approval()],
    "problems": ["Docker does not answer since 11:59"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param({}, 0, id="serving"),
        pytest.param({"targets": []}, 1, id="no target"),
        *(
            pytest.param({"targets": [a_target(state=state)]}, code, id=state)
            for state, code in {
                "stopped": 0, "starting": 0, "restarting": 0, "idle": 0, "serving": 0, "saturated": 0,
                "hung": 1, "failed": 1, "sleeping": 0, "stopping": 0, "paused": 0, "unknown": 1,
            }.items()
        ),
        pytest.param({"targets": [a_target(), a_target("b", "failed")]}, 1, id="one of two"),
        pytest.param({"alerts": [an_alert(severity="critical")]}, 1, id="critical fires"),
        pytest.param({"alerts": [an_alert(severity="warning")]}, 1, id="warning fires"),
        pytest.param({"alerts": [an_alert(severity="info")]}, 0, id="info fires"),
        pytest.param({"alerts": [an_alert(severity=None)]}, 0, id="no severity"),
        pytest.param({"alerts": [an_alert(state="pending")]}, 0, id="only pending"),
        pytest.param({"alerts": [an_alert(silenced=True)]}, 0, id="silenced"),
        pytest.param({"alerts": [an_alert(silenced=True), an_alert()]}, 1, id="one not silenced"),
        pytest.param({"approvals": [an_approval()]}, 1, id="approval waits"),
        pytest.param({"problems": ["x"]}, 1, id="problem"),
    ],
)  # fmt: skip
def test_the_exit_status_is_the_answer(
    sentinel: Sentinel, house: FakeHouse, status: dict[str, Any], code: int
) -> None:
    house.show(**status)

    human, machine = sentinel("status"), sentinel("status", "--json")

    assert (human.exit_code, machine.exit_code) == (code, code)
    assert json.loads(machine.stdout)["ok"] is (code == 0)
    assert ("NOT OK" in human.stdout) is (code == 1)


def test_json_is_what_the_api_says(sentinel: Sentinel, house: FakeHouse) -> None:
    house.show(**TROUBLE)

    got = json.loads(sentinel("status", "--json").stdout)

    assert got == json.loads(to_json(house.picture.as_status(NOW)))
    assert got["daemon"]["reachable"] is True


def test_at_80_columns_nothing_is_lost_and_nothing_is_wider(
    sentinel: Sentinel, house: FakeHouse
) -> None:
    house.show(**TROUBLE)

    shown = sentinel("status").stdout

    assert max(map(cells, shown.splitlines())) <= 80
    for fact in (
        "mode act", "t1-a", "serving", "Qwen/Qwen2.5-7B-Instruct", "3m", "3/0", "41%", "0.80s", "5a3b1c9d",
        "t1-b", "hung", "no progress for 130 s with 3 requests running",
        "restart, verified, 1h ago: the engine hung",
        "restart, by cooldown until 2030-01-01 12:15:00Z: restarted 1h ago",
        "restart, by mode: mode is watch", "sentinel incidents show i-000007",
        "sentinel approve n-000012", "VllmEngineHung", "KVHigh", "pending", "Docker does not answer since 11:59",
        "NOT OK: 1 hung, 1 firing, 1 waiting for approval, 1 problem",
    ):  # fmt: skip
        assert fact in " ".join(shown.split()), fact


@pytest.mark.parametrize("columns", ["60", "80", "200"])
def test_long_and_wide_names_are_wrapped_and_never_cut(
    sentinel: Sentinel, house: FakeHouse, columns: str
) -> None:
    name, model = "vllm-" + "n" * 70, "通义千问" * 20
    house.show(targets=[a_target(name, "failed", model=model, because="显存不足" * 30)])

    lines = sentinel("status", COLUMNS=columns).stdout.splitlines()

    joined = "".join(line.strip() for line in lines)
    assert model in joined
    assert "显存不足" * 30 in joined
    assert name in joined
    assert max(cells(line) for line in lines if name not in line) <= int(columns)


def test_what_is_unknown_is_a_dash(sentinel: Sentinel, house: FakeHouse) -> None:
    empty = dict.fromkeys(a_target(), None) | {"name": "t1-a", "state": "unknown"}
    house.show(targets=[empty], alerts=[an_alert(value=None, labels={})])

    result = sentinel("status")

    assert result.exit_code == 1
    assert "None" not in result.stdout
    assert "-/-" in result.stdout


def test_a_container_cannot_drive_the_terminal(sentinel: Sentinel, house: FakeHouse) -> None:
    house.show(
        targets=[a_target("t1-a", "failed", model="m\x1b[2J", because="\x1b]0;x\x07 \u202egnp")],
        problems=["line\nbreak \x1b[31m"],
    )

    shown = sentinel("status").stdout

    assert not set("\x1b\x07\u202e") & set(shown)


def test_a_terminal_that_knows_only_ascii_gets_something(
    sentinel: Sentinel, house: FakeHouse
) -> None:
    house.show(problems=["显存 不足 \U0001f525"])

    assert json.loads(sentinel("status", "--json").stdout)["problems"] == ["显存 不足 \U0001f525"]


def test_a_pause_and_an_old_picture_are_said(sentinel: Sentinel, house: FakeHouse) -> None:
    house.picture = replace(
        a_snapshot(
            daemon={"version": "0.1.0", "mode": "act", "paused": True, "paused_until": None}
        ),
        at=NOW - timedelta(seconds=75),
    )

    shown = sentinel("status").stdout

    assert "PAUSED until sentinel resume" in shown
    assert "1m 15s old" in shown


def written(state: Path, snapshot: Snapshot, at: datetime) -> None:
    (state / "status.json").write_bytes(to_json(snapshot.as_status(at)))


def test_with_the_daemon_down_the_last_known_state_is_shown_with_its_age(
    alone: Sentinel, tmp_path: Path
) -> None:
    then = datetime.now(UTC) - timedelta(minutes=12)
    written(tmp_path, replace(a_snapshot(**TROUBLE), at=then), then)
    where = ("--socket", str(tmp_path / "none.sock"), "--state-dir", str(tmp_path))

    human, machine = alone("status", *where), alone("status", *where, "--json")

    assert (human.exit_code, machine.exit_code) == (3, 3)
    assert "THE DAEMON DOES NOT ANSWER" in human.stdout
    assert "12m" in human.stdout
    assert "t1-b" in human.stdout
    assert "systemctl status sentinel" in human.stderr
    got = json.loads(machine.stdout)
    assert got["daemon"]["reachable"] is False
    assert 700 < got["age_seconds"] < 800
    assert got["ok"] is False
    assert got["targets"] == TROUBLE["targets"]


def test_old_good_news_is_no_news(alone: Sentinel, tmp_path: Path) -> None:
    written(tmp_path, a_snapshot(), NOW)

    result = alone(
        "status", "--json", "--socket", str(tmp_path / "x"), "--state-dir", str(tmp_path)
    )

    assert result.exit_code == 3
    assert json.loads(result.stdout)["ok"] is False


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b'{"at": "yesterday"}', b'{"at": null}', b"\xff"]
)
def test_without_a_last_known_state_the_shape_is_the_same(
    alone: Sentinel, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "status.json").write_bytes(content)
    where = ("--socket", str(tmp_path / "x"), "--state-dir", str(tmp_path))

    human, machine = alone("status", *where), alone("status", *where, "--json")

    assert (human.exit_code, machine.exit_code) == (3, 3)
    got = json.loads(machine.stdout)
    assert set(got) == set(a_snapshot().as_status(NOW))
    assert got["at"] is None
    assert "status.json" in got["problems"][0]


def test_the_state_folder_is_found_as_the_daemon_finds_it(alone: Sentinel, tmp_path: Path) -> None:
    for name in ("flag", "env", "state"):
        (tmp_path / name).mkdir()
        written(tmp_path / name, a_snapshot(problems=[name]), NOW)
    (tmp_path / "sentinel.yaml").write_text("state_dir: state\napi: {socket: none.sock}\n")

    def problem(*args: str, **env: str) -> Any:
        return json.loads(alone("status", "--json", *args, **env).stdout)["problems"][0]

    assert problem() == "state"
    assert problem(STATE_DIRECTORY=f"{tmp_path / 'env'}:/other") == "env"
    assert problem("--state-dir", str(tmp_path / "flag"), STATE_DIRECTORY="/other") == "flag"


def test_a_daemon_that_is_not_ready_is_not_reachable_yet(
    sentinel: Sentinel, house: FakeHouse, tmp_path: Path
) -> None:
    house.picture = Snapshot(at=NOW, ready=False)

    result = sentinel("status", "--state-dir", str(tmp_path))

    assert result.exit_code == 3
    assert "has not looked" in result.stderr


def test_alerts_lists_what_fires_first(sentinel: Sentinel, house: FakeHouse) -> None:
    house.show(**TROUBLE)

    human, machine = sentinel("alerts"), sentinel("alerts", "--json")

    assert human.exit_code == machine.exit_code == 0
    assert human.stdout.index("VllmEngineHung") < human.stdout.index("KVHigh")
    assert json.loads(machine.stdout) == {"alerts": TROUBLE["alerts"]}
    house.show()
    assert "No alert" in sentinel("alerts").stdout


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (60, "1m"), (95, "1m 35s"), (3600, "1h"), (90061, "1d 1h"), (-5, "0s"), (None, "-")],
)  # fmt: skip
def test_a_span_is_its_two_largest_units(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("at", "text"),
    [
        ("2030-01-01T12:00:00Z", "2030-01-01 12:00:00Z"),
        ("2030-01-01T12:00:00.123Z", "2030-01-01 12:00:00Z"),
        ("2030-01-01T12:00:00.123456+00:00", "2030-01-01 12:00:00Z"),
        (None, "-"),
    ],
)
def test_a_moment_is_in_utc_to_the_second(at: str | None, text: str) -> None:
    assert moment(at) == text


@given(st.text(), st.integers(0, 20))
def test_wrapping_loses_nothing(text: str, indent: int) -> None:
    lines = paragraph(text, first=" " * indent).splitlines()

    shown = "".join("".join(lines).split())
    wanted = "".join("".join(c if c.isprintable() else " " for c in text).split())
    assert shown == wanted or (not text and shown == "-")
