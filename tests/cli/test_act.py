"""`sentinel act`: what is asked of the daemon, what is printed, and the exit status."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from sentinel.core.model.command import Act
from sentinel.core.model.errors import Permanent
from sentinel.core.model.intent import Action
from tests.api.fake_house import FakeHouse, an_intent

Sentinel = Callable[..., Any]
LOWER = Action.LOWER_MAX_NUM_SEQS
DIFF = ["-command: --max-num-seqs 256", "+command: --max-num-seqs 64"]
DONE: dict[str, Any] = {"intent": None, "held": [], "diff": DIFF}
HELD = {"guard": "paused", "because": "paused by ada", "until": "2030-01-01T13:00:00Z"}


@pytest.mark.parametrize(
    ("args", "command"),
    [
        (["restart", "t1-a"], Act(by="me", action=Action.RESTART, target="t1-a")),
        (["restore", "t1-a"], Act(by="me", action=Action.RESTORE, target="t1-a")),
        (
            ["lower-max-num-seqs", "t1-a", "--to", "64", "--dry-run"],
            Act(by="me", action=LOWER, target="t1-a", to=64, dry_run=True),
        ),
        (
            ["lower-max-num-seqs", "t1-a", "--force", "cooldown", "--force", "paused"],
            Act(by="me", action=LOWER, target="t1-a", force=("cooldown", "paused")),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_order_is_given_as_it_was_said(
    sentinel: Sentinel, house: FakeHouse, args: list[str], command: Act
) -> None:
    house.answers = DONE
    result = sentinel("act", *args)

    assert result.exit_code == 0, result.output
    (asked,) = house.asked
    assert isinstance(asked, Act)
    assert (asked.action, asked.target, asked.to) == (command.action, command.target, command.to)
    assert (asked.dry_run, asked.force) == (command.dry_run, command.force)
    assert DIFF[0] in result.stdout


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_what_is_held_names_its_guard_and_exits_4(
    sentinel: Sentinel, house: FakeHouse, form: list[str]
) -> None:
    house.answers = {"intent": None, "held": [HELD], "diff": []}
    result = sentinel("act", "restart", "t1-a", *form)

    assert result.exit_code == 4
    if form:
        assert json.loads(result.stdout) == house.answers
    else:
        assert "held by paused until 2030-01-01" in result.stdout


def test_a_refusal_that_names_a_guard_is_the_same(sentinel: Sentinel, house: FakeHouse) -> None:
    house.refuses = Permanent("it runs a wrapper", status=409, guard="arguments_unclear")
    result = sentinel("act", "lower-max-num-seqs", "t1-a", "--json")

    assert result.exit_code == 4
    assert json.loads(result.stdout)["held"][0]["guard"] == "arguments_unclear"


@pytest.mark.parametrize(("outcome", "code"), [("verified", 0), ("rolled_back", 1), ("failed", 1)])
def test_waiting_ends_with_what_came_of_it(
    sentinel: Sentinel,
    house: FakeHouse,
    monkeypatch: pytest.MonkeyPatch,
    outcome: str,
    code: int,
) -> None:
    under_way = {**an_intent(), "closed_at": None, "outcome": None}
    house.answers = {**DONE, "intent": under_way}
    ended = {**under_way, "closed_at": "2030-01-01T12:00:30Z", "outcome": outcome}
    monkeypatch.setattr(FakeHouse, "intents", lambda _house: [ended])
    monkeypatch.setattr("sentinel.cli.act._ASK_AGAIN", 0.01)
    result = sentinel("act", "lower-max-num-seqs", "t1-a", "--to", "64", "--wait", "--json")

    assert result.exit_code == code
    assert json.loads(result.stdout)["intent"]["outcome"] == outcome


def test_waiting_for_one_that_never_ends_exits_5(
    sentinel: Sentinel, house: FakeHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.answers = {**DONE, "intent": {**an_intent(), "closed_at": None, "outcome": None}}
    monkeypatch.setattr(FakeHouse, "intents", lambda _house: [house.answers["intent"]])
    monkeypatch.setattr("sentinel.cli.act._ASK_AGAIN", 0.01)
    monkeypatch.setattr("sentinel.cli.act._PATIENCE", 0.03)

    assert sentinel("act", "restart", "t1-a", "--wait").exit_code == 5


@pytest.mark.parametrize(
    "args",
    [
        ["lower-max-num-seqs", "t1-a", "--to", "0"],
        ["lower-max-num-seqs", "t1-a", "--to", "-1"],
        ["lower-max-num-seqs", "t1-a", "--to", "50%"],
        ["restart", "t1-nobody"],
        ["restart", "t1-a", "--to", "5"],
        ["explode", "t1-a"],
        ["restart"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_is_a_usage_error(
    sentinel: Sentinel, house: FakeHouse, args: list[str]
) -> None:
    assert sentinel("act", *args).exit_code == 2
    assert house.asked == []


def test_the_scorecard_is_a_table_or_what_the_daemon_said(
    sentinel: Sentinel, house: FakeHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = {
        "remedy": "hang",
        "action": "restart",
        "done": {"verified": 2, "failed": 1, "rolled_back": 1},
        "held": 3,
        "without": {"healed": 1, "person": 1, "went_on": 1, "done": 0, "open": 0},
    }
    monkeypatch.setattr(FakeHouse, "scorecard", lambda _house: {"remedies": [card]})

    assert json.loads(sentinel("scorecard", "--json").stdout) == {"remedies": [card]}
    line = next(li for li in sentinel("scorecard").stdout.splitlines() if li.startswith("hang"))
    assert line.split() == ["hang", "restart", "2", "2", "3", "1", "1", "1"]
