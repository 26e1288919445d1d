"""The audit: every deed once, in order, with who, why, what, and under which configuration."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from sentinel import __version__
from sentinel.config.settings import Settings
from sentinel.core.model.command import Approve
from sentinel.core.model.errors import Permanent
from sentinel.core.model.intent import Action, Mode
from sentinel.runtime.audit import CHANNEL
from sentinel.runtime.channels import Book, book_of
from sentinel.runtime.deliver import Channel
from tests.fakes import FakeClock, FakeDocker, FakeReceiver
from tests.runtime.house import Daemon, plan
from tests.runtime.test_act import act, tell


@dataclass
class Audited(Daemon):
    auditor: FakeReceiver = field(default_factory=FakeReceiver)
    is_wanted: bool = True

    @property
    def book(self) -> Book:
        book = Daemon.book.__get__(self)
        if self.is_wanted:
            book.channels[CHANNEL] = Channel(self.auditor)
            book.fallback = ["test/webhook/0"]
        return cast(Book, book)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [dict(notice.line or {}) for notice in self.auditor.took]

    def line(self, event: str) -> dict[str, Any]:
        return next(line for line in self.lines if line["event"] == event)


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    return docker


def daemon(folder: Path, docker: FakeDocker, mode: Mode = Mode.WATCH) -> Audited:
    wanted = plan(mode, fingerprint="abcdef0123456789")
    house = Audited(folder=folder, docker=docker, clock=docker.clock, plan=wanted)
    house.run(30)
    return house


def test_a_persons_act_says_who_why_what_and_under_which_configuration(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker)
    act(house, Action.LOWER_MAX_NUM_SEQS, to=64)
    house.run(60)

    reserved = house.line("intent_reserved")
    assert (reserved["by"], reserved["target"], reserved["host"]) == ("ada", "t1-a", "gpu1")
    assert reserved["because"] == "ada asked for lower_max_num_seqs"
    assert reserved["facts"]["diff"] == [
        "-command: no --max-num-seqs",
        "+command: --max-num-seqs=64",
    ]
    assert (reserved["config"], reserved["version"]) == ("abcdef012345", __version__)
    assert reserved["incident"] == "i-000001"
    assert [line["event"] for line in house.lines] == [
        "intent_reserved",
        *["step_started", "step_done"] * 3,
        "intent_closed",
    ]
    numbers = [line["number"] for line in house.lines]
    assert numbers == sorted(set(numbers))
    assert "s3cr3t" not in str(house.lines)
    assert house.receiver.took == []


def test_what_was_only_held_and_who_agreed_are_lines_too(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker, Mode.APPROVE)
    docker.die("t1-a")
    house.run(10)
    proposed = house.line("intent_proposed")
    assert proposed["by"] == "sentinel"
    tell(house, Approve(by="ada", intent=proposed["facts"]["intent"]))
    house.run(60)

    assert house.line("intent_approved")["by"] == "ada"
    assert house.line("intent_reserved")["by"] == "ada"
    assert house.line("intent_closed")["facts"]["outcome"] == "verified"


def test_an_audit_that_refuses_is_not_told_to_people_instead(
    tmp_path: Path, docker: FakeDocker
) -> None:
    house = daemon(tmp_path, docker)
    house.auditor.fails = Permanent("audit: answered 404", receiver_refused=True)
    act(house, Action.RESTART)
    house.run(60)

    assert not any(notice.line for notice in house.receiver.took)
    dropped = house.memory.db.execute("SELECT * FROM record WHERE event = 'message_dropped'")
    assert dropped.fetchone()["because"] == "audit: answered 404"


def test_nobody_is_told_who_did_not_ask(tmp_path: Path, docker: FakeDocker) -> None:
    house = daemon(tmp_path, docker)
    house.is_wanted = False
    house.loop.use(house.plan, house.book)
    act(house, Action.RESTART)
    house.run(60)

    assert house.lines == []
    assert house.memory.outbox.owed_count(CHANNEL) == 0


@pytest.mark.parametrize(
    ("given", "there"),
    [({}, False), ({"url": "http://127.0.0.1:1/audit"}, True), ({"url_file": "/none"}, True)],
)
def test_it_is_there_if_it_has_an_address(given: dict[str, Any], there: bool) -> None:
    settings = Settings.model_validate({"audit": given})

    assert (CHANNEL in book_of(settings, cast(Any, None), {}).channels) is there
