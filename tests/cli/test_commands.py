import json
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.command import (
    Acknowledge,
    Approve,
    Command,
    Pause,
    Reject,
    Reload,
    Resume,
)
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient
from tests.api.fake_house import FakeHouse, an_explanation, an_incident, an_intent
from tests.cli.conftest import Sentinel


def test_incidents_and_one_of_them(sentinel: Sentinel, house: FakeHouse) -> None:
    assert json.loads(sentinel("incidents", "--json").stdout) == {"incidents": [an_incident()]}
    for name in ("i-000007", "7", "i-7"):
        assert json.loads(sentinel("incidents", "show", name, "--json").stdout) == an_incident()
    listed = sentinel("incidents").stdout
    assert "i-000007" in listed
    assert "engine_hung" in listed
    told = sentinel("incidents", "show", "7").stdout
    for fact in (
        "2030-01-01 11:40:00",
        "intent_reserved",
        "the engine hangs",
        "evidence",
        "n-000012",
    ):
        assert fact in told
    sentinel("incidents", "--open", "--limit", "3")
    assert house.last_query == (3, "open")


def test_the_socket_may_stand_before_or_after_show(alone: Sentinel, path: Path) -> None:
    where = ("--socket", str(path))

    assert alone("incidents", *where, "show", "7").exit_code == 0
    assert alone("incidents", "show", "7", *where).exit_code == 0


def test_no_incident_is_said(sentinel: Sentinel, house: FakeHouse) -> None:
    house.past = []

    assert "No incident" in sentinel("incidents").stdout
    assert json.loads(sentinel("incidents", "--json").stdout) == {"incidents": []}


def test_intents(sentinel: Sentinel) -> None:
    assert json.loads(sentinel("intents", "--json").stdout) == {"intents": [an_intent()]}
    assert "n-000012" in sentinel("intents").stdout


def test_explain(sentinel: Sentinel) -> None:
    got = json.loads(sentinel("explain", "t1-a", "--json").stdout)
    assert set(got) == set(an_explanation())
    told = " ".join(sentinel("explain", "t1-a").stdout.split())
    for fact in (
        "target t1-a is hung since 2030-01-01 11:57:00Z",
        "no progress for 130 s",
        "health: 200 (2s ago)",
        "VllmEngineHung: pending, value 1",
        "fires at 2030-01-01 12:01:00Z",
        "restart: next",
        "cooldown holds: restarted 4m ago",
        "restart at 2030-01-01 12:11:00Z: cooldown ends",
    ):
        assert fact in told


def test_explaining_an_almost_empty_answer_does_not_break(
    sentinel: Sentinel, house: FakeHouse
) -> None:
    empty = dict.fromkeys(an_explanation()) | {"subject": {"kind": "target", "name": "x"}}
    house.picture.explain["x"] = empty  # type: ignore[index]

    result = sentinel("explain", "x")

    assert result.exit_code == 0, result.output
    assert "None" not in result.stdout


@pytest.mark.parametrize(
    ("args", "command"),
    [
        (["pause"], Pause(by="me")),
        (["pause", "--for", "2h"], Pause(by="me", for_=timedelta(hours=2))),
        (["pause", "t1-a", "--for", "1h30m"], Pause(by="me", target="t1-a", for_=timedelta(minutes=90))),
        (["resume"], Resume(by="me")),
        (["resume", "t1-a"], Resume(by="me", target="t1-a")),
        (["reload"], Reload(by="me")),
        (["ack", "7"], Acknowledge(by="me", incident="i-000007")),
        (["approve", "n-000012"], Approve(by="me", intent="n-000012")),
        (["reject", "12", "--because", "deploying"], Reject(by="me", intent="n-000012", because="deploying")),
        (["reject", "12"], Reject(by="me", intent="n-000012")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_command_is_asked_once_and_confirmed(
    sentinel: Sentinel, house: FakeHouse, args: list[str], command: Command, form: list[str]
) -> None:
    result = sentinel(*args, *form)

    assert result.exit_code == 0
    (asked,) = house.asked
    assert asked == type(command)(**{**_fields(command), "by": asked.by})
    assert result.stdout.strip()
    if form:
        assert json.loads(result.stdout) == {"done": True}


def _fields(command: Command) -> dict[str, Any]:
    return {name: getattr(command, name) for name in command.__dataclass_fields__}


@pytest.mark.parametrize(
    ("args", "error", "code"),
    [
        (["approve", "12"], Permanent("closed already", hint="See intents."), 1),
        (["approve", "12"], Permanent("held by mode", status=409, guard="mode"), 4),
        (["approve", "12"], Permanent("there is none", hint="See.", status=404), 2),
        (["approve", "12"], Transient("the loop is busy", hint="Again."), 3),
        (["approve", "12"], Ambiguous("no answer in time", hint="Look."), 5),
        (["approve", "12"], SentinelError("broken"), 1),
        (["reload"], Permanent("a.yaml:1:1: x: unknown key", hint="Correct it."), 2),
        (["incidents"], Transient("the history cannot be read", hint="Look."), 3),
    ],
)
def test_every_refusal_has_its_exit_status_and_a_way_out(
    sentinel: Sentinel, house: FakeHouse, args: list[str], error: SentinelError, code: int
) -> None:
    house.refuses = error

    result = sentinel(*args)

    assert result.exit_code == code
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) >= 2


def test_a_refused_reload_shows_every_fault_as_config_check_does(
    sentinel: Sentinel, house: FakeHouse
) -> None:
    faults = ["a.yaml:1:1: colour: unknown key", "a.yaml:2:1: x: unknown key"]
    house.refuses = Permanent("the configuration is refused", hint="Correct it.", faults=faults)

    result = sentinel("reload")

    assert result.exit_code == 2
    assert result.stdout.splitlines() == faults
    assert "refused" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ["pause", "t1-z"],
        ["pause", "--for", "soon"],
        ["pause", "--for", "0"],
        ["explain", "t1-z"],
        ["incidents", "show", "999"],
        ["incidents", "show", "../../x"],
        ["incidents", "--limit", "0"],
        ["explain"],
        ["paus"],
        ["status", "--jsn"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_2_and_says_what_to_try(
    sentinel: Sentinel, house: FakeHouse, args: list[str]
) -> None:
    result = sentinel(*args)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.strip()
    assert house.asked == []


@pytest.mark.parametrize(
    "args",
    [
        ["alerts"],
        ["incidents"],
        ["incidents", "show", "7"],
        ["intents"],
        ["explain", "t1-a"],
        ["query", "up"],
        ["pause"],
        ["resume"],
        ["reload"],
        ["ack", "7"],
        ["approve", "12"],
        ["reject", "12"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("kind", ["nothing", "a file", "nobody listens"])
def test_without_a_daemon_every_command_is_3_and_says_what_to_try(
    alone: Sentinel, tmp_path: Path, args: list[str], kind: str
) -> None:
    file = tmp_path / "s.sock"
    if kind == "a file":
        file.write_text("")
    elif kind == "nobody listens":
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(file))

    result = alone(*args, "--socket", str(file))

    assert result.exit_code == 3
    assert str(file) in result.stderr
    assert "systemctl status sentinel" in result.stderr


@pytest.mark.parametrize(
    "name",
    ["install", "doctor", "test-notify", "advise", "demo"],
)  # fmt: skip
def test_what_is_not_here_yet_says_so_and_what_to_use(alone: Sentinel, name: str) -> None:
    result = alone(name, "restart", "t1-a", "--dry-run", "--json")

    assert result.exit_code == 2
    assert f"`sentinel {name}` is not in this version yet" in result.stderr
    assert "Meanwhile" in result.stderr


def test_the_socket_is_found_by_flag_environment_file_and_default(
    alone: Sentinel, path: Path, tmp_path: Path
) -> None:
    assert alone("alerts", "--socket", str(path)).exit_code == 0
    assert alone("alerts", SENTINEL_SOCKET=str(path)).exit_code == 0
    assert alone("alerts", "--socket", "/none", SENTINEL_SOCKET=str(path)).exit_code == 3
    (tmp_path / "sentinel.d").mkdir()
    (tmp_path / "sentinel.d" / "10.yaml").write_text(f"api:\n  socket: {path}\n")
    assert alone("alerts").exit_code == 0
    (tmp_path / "sentinel.yaml").write_text("api: {socket: [broken\n")
    assert alone("alerts").exit_code == 0
    (tmp_path / "sentinel.d" / "10.yaml").unlink()
    result = alone("alerts", RUNTIME_DIRECTORY=str(tmp_path))
    assert str(tmp_path / "sentinel.sock") in result.stderr
    assert "/run/sentinel/sentinel.sock" in alone("alerts").stderr


def test_version_and_help(alone: Sentinel) -> None:
    assert alone("--version").stdout.startswith("sentinel ")
    assert alone("--help").exit_code == 0
