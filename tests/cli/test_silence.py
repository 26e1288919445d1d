"""`sentinel silence`, to a house that keeps silences."""

import getpass
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.api.fake_board import KeepingHouse
from tests.api.fake_house import a_snapshot, a_target, served
from tests.cli.conftest import Sentinel


@pytest.fixture
def house() -> KeepingHouse:
    now = datetime.now(UTC)
    picture = a_snapshot(targets=[a_target("t1-a"), a_target("t1-b")])
    return KeepingHouse(picture=replace(picture, at=now))


@pytest.fixture
def silence(house: KeepingHouse, tmp_path: Path, alone: Sentinel) -> Iterator[Sentinel]:
    """`sentinel silence ARGS…` with a daemon that knows the hour."""
    with served(house, tmp_path / "s.sock", now=lambda: datetime.now(UTC)):
        yield lambda *args, **env: alone(
            "silence", *args, **{"SENTINEL_SOCKET": str(tmp_path / "s.sock"), **env}
        )


def kept(house: KeepingHouse) -> list[tuple[str, str, str]]:
    [only] = house.silences.values()
    return [(matcher.name, matcher.op, matcher.value) for matcher in only.matchers]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param(["t1-a"], [("target", "=", "t1-a")], id="a target"),
        pytest.param(["i-000007"], [("incident", "=", "i-000007")], id="an incident"),
        pytest.param(["i-7"], [("incident", "=", "i-000007")], id="an incident, for short"),
        pytest.param(
            ["t1-a", 'alertname="GPUHot"', "severity!~info|warning"],
            [
                ("target", "=", "t1-a"),
                ("alertname", "=", "GPUHot"),
                ("severity", "!~", "info|warning"),
            ],
            id="several matchers",
        ),
        pytest.param(
            ['{target=~"t1-.*", alertname!="X"}'],
            [("target", "=~", "t1-.*"), ("alertname", "!=", "X")],
            id="in braces",
        ),
    ],
)
def test_what_is_kept_quiet(
    silence: Sentinel, house: KeepingHouse, given: list[str], found: list[tuple[str, str, str]]
) -> None:
    done = silence("add", *given)

    assert done.exit_code == 0, done.output
    assert kept(house) == found
    assert done.stdout.split() == list(house.silences)


@pytest.mark.parametrize(
    ("options", "lasts"),
    [
        pytest.param([], timedelta(hours=1), id="an hour by default"),
        pytest.param(["--for", "1d12h"], timedelta(hours=36), id="a span"),
    ],
)
def test_how_long_it_lasts(
    silence: Sentinel, house: KeepingHouse, options: list[str], lasts: timedelta
) -> None:
    assert silence("add", "t1-a", *options).exit_code == 0
    [made] = house.silences.values()
    assert abs(made.ends_at - made.starts_at - lasts) < timedelta(seconds=5)
    assert (made.created_by, made.comment) == (getpass.getuser(), "")


def test_until_a_moment_and_in_somebodys_name(silence: Sentinel, house: KeepingHouse) -> None:
    done = silence(
        "add", "t1-a", "--until", "2999-01-01T08:00:00+08:00", "--comment", "换显卡",
        "--author", "alice", "--json",
    )  # fmt: skip

    [made] = house.silences.values()
    assert json.loads(done.stdout) == {"silenceID": made.id}
    assert made.ends_at == datetime(2999, 1, 1, tzinfo=UTC)
    assert (made.created_by, made.comment) == ("alice", "换显卡")


def test_sudo_is_not_who_asked(silence: Sentinel, house: KeepingHouse) -> None:
    assert silence("add", "t1-a", SUDO_USER="bob").exit_code == 0
    [made] = house.silences.values()
    assert made.created_by == "bob"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param(["t1-c"], "there is no target t1-c", id="an unknown target"),
        pytest.param(["t1-c"], "Known: t1-a, t1-b.", id="and the known ones"),
        pytest.param(["t1-c"], 'alertname="t1-c"', id="and what else it may be"),
        pytest.param(["i-000099"], "there is no incident i-000099", id="an unknown incident"),
        pytest.param(["t1-a", "t1-b"], 'target=~"t1-a|t1-b"', id="two targets at once"),
        pytest.param(['a=~"("'], "missing closing )", id="no pattern"),
        pytest.param(["=x"], "'=x' is not a matcher", id="no matcher"),
        pytest.param(["a=~.*"], "must not match the empty string", id="everything"),
        pytest.param(["t1-a", "--for", "soon"], "not a valid duration", id="no duration"),
        pytest.param(["t1-a", "--for", "0"], "more than 0", id="no time at all"),
        pytest.param(["t1-a", "--until", "soon"], "RFC 3339", id="no moment"),
        pytest.param(["t1-a", "--until", "2020-01-01"], "before end time", id="the past"),
        pytest.param(["t1-a", "--for", "1h", "--until", "2999-01-01"], "--until", id="both"),
        pytest.param([], "MATCHER", id="nothing"),
    ],
)
def test_what_cannot_be_kept_quiet_is_refused(
    silence: Sentinel, house: KeepingHouse, given: list[str], says: str
) -> None:
    done = silence("add", *given, COLUMNS="200")

    assert done.exit_code == 2
    assert says in done.output
    assert house.silences == {}


def test_they_are_listed_until_they_are_over(silence: Sentinel, house: KeepingHouse) -> None:
    assert "There is no silence" in silence("list").stdout
    silence("add", "t1-a", "severity!=critical", "--comment", "new card", "--author", "alice")
    [name] = house.silences

    listed = silence("list", COLUMNS="300").stdout
    for fact in (name, "active", "alice", "new card", 'target="t1-a", severity!="critical"'):
        assert fact in listed
    assert [s["id"] for s in json.loads(silence("list", "--json").stdout)["silences"]] == [name]

    over = silence("expire", name[:8])
    assert (over.exit_code, over.stdout) == (0, f"{name} is over.\n")
    assert json.loads(silence("list", "--json").stdout) == {"silences": []}
    assert "expired" in silence("list", "--expired").stdout


def test_several_are_expired_or_none(silence: Sentinel, house: KeepingHouse) -> None:
    silence("add", "t1-a")
    silence("add", "t1-b")
    one, two = house.silences

    missing = silence("expire", one, "nonsense")
    assert missing.exit_code == 2
    assert "there is no silence nonsense" in missing.output
    assert json.loads(silence("list", "--json").stdout)["silences"]

    both = silence("expire", one, two, "--json")
    assert json.loads(both.stdout) == {"expired": [one, two]}
    states = {s.ends_at <= datetime.now(UTC) for s in house.silences.values()}
    assert states == {True}


def test_a_beginning_of_two_is_neither(silence: Sentinel, house: KeepingHouse) -> None:
    silence("add", "t1-a")
    [(name, first)] = house.silences.items()
    house.silences["twin"] = replace(first, id=f"{name[:-1]}g")

    done = silence("expire", name[:-1])

    assert done.exit_code == 2
    assert "2 silences begin with" in done.output


def test_without_a_daemon_it_says_so(alone: Sentinel, tmp_path: Path) -> None:
    done = alone("silence", "list", SENTINEL_SOCKET=str(tmp_path / "none.sock"))

    assert done.exit_code == 3
