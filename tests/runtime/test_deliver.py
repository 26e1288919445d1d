import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.message import AlertFacts, Notice
from sentinel.runtime.deliver import (
    GIVE_UP_AFTER,
    SLACK,
    WECOM,
    Channel,
    Deliver,
    Delivery,
    OnDone,
    Rate,
    Send,
    Settled,
    back_off,
)
from sentinel.store.database import open_database
from sentinel.store.outbox import LONGEST_WAIT, Outbox

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
REFUSED = Permanent("unknown key", hint="Write another.", receiver_refused=True)


def notice(text: str, group: str = "g", **labels: str) -> Notice:
    alert = AlertFacts(status="firing", labels=labels, annotations={}, starts_at="")
    return Notice(
        kind="alert",
        group_key=group,
        group_labels={},
        alerts=(alert,),
        incident=None,
        headline=text,
    )


@dataclass
class Receiver:
    """Keeps the `Notifier` promise: takes what comes unless told to fail."""

    failures: list[BaseException] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)  # taken
    asked: int = 0

    async def send(self, notice: Notice) -> None:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        self.heard.append(notice.headline)


class Network:
    """Runs what was submitted only when told to, as slowly as a test needs."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Send, OnDone]] = []
        self.inbox: list[Settled] = []

    def submit(self, send: Send, on_done: OnDone) -> None:
        self._waiting.append((send, on_done))

    @property
    def busy(self) -> int:
        return len(self._waiting)

    def run(self) -> None:
        waiting, self._waiting = self._waiting, []
        for send, on_done in waiting:
            try:
                asyncio.run(send())
            except (SentinelError, RuntimeError) as error:
                on_done(error)
            else:
                on_done(None)


class House:
    """An outbox, its delivery, and a clock."""

    def __init__(self, db: sqlite3.Connection, *fallback: str, **channels: Channel) -> None:
        self.now = NOW
        self.outbox = Outbox(db)
        self.network = Network()
        self.deliver = Deliver(
            self.outbox,
            channels,
            self.network.submit,
            self.network.inbox.append,
            fallback=fallback,
        )

    def owe(self, text: str, channel: str = "a", **labels: str) -> int:
        return self.outbox.owe(channel, notice(text, **labels), None, self.now)

    def turn(self, **passes: float) -> list[Delivery]:
        """Pump, let the network work, write down what came of it; then time passes."""
        told = self.deliver.pump(self.now)
        self.network.run()
        told += self.settle()
        self.now += timedelta(**passes)
        return told

    def settle(self) -> list[Delivery]:
        settled = list(self.network.inbox)
        self.network.inbox.clear()
        return [
            delivery
            for answer in settled
            for delivery in self.deliver.settled(answer.number, answer.error, self.now)
        ]

    def until_quiet(self, most: int = 200) -> list[Delivery]:
        """Sleep as the loop would: until `wake_at`, never less than a moment."""
        told: list[Delivery] = []
        for _ in range(most):
            told += self.turn()
            wake_at = self.deliver.wake_at(self.now)
            if wake_at is None:
                return told
            self.now = wake_at
        raise AssertionError("it never became quiet")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_database(tmp_path / "state.db")) as db:
        yield db


def events(told: list[Delivery]) -> list[str]:
    return [delivery.event for delivery in told]


def test_what_is_taken_is_sent_once(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver))
    number = house.owe("one")
    (sent,) = house.until_quiet()

    assert receiver.heard == ["one"]
    assert (sent.event, sent.channel, sent.number) == ("message_sent", "a", number)
    assert sent.because
    assert house.turn() == []


def test_one_send_in_flight_a_channel(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver()), b=Channel(Receiver()))
    for channel in ("a", "a", "b"):
        house.owe(channel, channel)
    house.deliver.pump(NOW)
    house.deliver.pump(NOW)

    assert house.network.busy == 2
    assert house.deliver.wake_at(NOW) is None


def test_a_failing_channel_keeps_its_order_and_holds_up_no_other(db: sqlite3.Connection) -> None:
    slow, quick = Receiver([Transient("answered 429", retry_after=30.0)]), Receiver()
    house = House(db, a=Channel(slow), b=Channel(quick))
    for text in ("one", "two", "three"):
        house.owe(text, "a")
        house.owe(text, "b")
    for _ in range(4):
        house.turn()
    assert slow.heard == []
    assert quick.heard == ["one", "two", "three"]

    assert house.deliver.wake_at(house.now) == NOW + SECOND * 30
    house.until_quiet()
    assert slow.heard == ["one", "two", "three"]


def test_a_retry_is_told_with_its_reason_and_its_wait(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver([Transient("WeCom: answered 503")])))
    house.owe("one")
    retried, sent = house.until_quiet()

    assert retried.event == "message_retried"
    assert retried.because == "WeCom: answered 503; trying again in 1 s"
    assert retried.reason == "transient"
    assert sent.because == "a took it at attempt 2"


@pytest.mark.parametrize(
    ("attempt", "asked", "seconds"),
    [
        pytest.param(1, None, 1, id="first"),
        pytest.param(2, None, 2, id="doubles"),
        pytest.param(9, None, 256, id="still doubles"),
        pytest.param(10, None, 300, id="five minutes at most"),
        pytest.param(10**6, None, 300, id="for ever"),
        pytest.param(1, 30.0, 30, id="the other side asks for more"),
        pytest.param(10, 30.0, 300, id="the other side asks for less"),
        pytest.param(1, 0.0, 1, id="never a tight loop"),
        pytest.param(1, 10.0**12, 3600, id="nobody makes us wait for years"),
        pytest.param(0, None, 1, id="nonsense"),
    ],
)
def test_back_off(attempt: int, asked: float | None, seconds: float) -> None:
    assert back_off(attempt, asked) == timedelta(seconds=seconds)
    assert back_off(attempt, asked) <= LONGEST_WAIT


def test_a_refused_message_is_dropped_and_the_next_goes(db: sqlite3.Connection) -> None:
    receiver = Receiver([Permanent("invalid_payload")])
    house = House(db, a=Channel(receiver))
    house.owe("bad")
    house.owe("good")
    dropped, sent = house.until_quiet()

    assert (dropped.event, dropped.because) == ("message_dropped", "invalid_payload")
    assert sent.event == "message_sent"
    assert receiver.heard == ["good"]
    assert house.deliver.disabled == frozenset()


def test_a_refused_receiver_is_told_once_and_comes_back_by_itself(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver([REFUSED, REFUSED])))
    for text in ("one", "two", "three"):
        house.owe(text)

    told = house.turn() + house.turn()
    assert house.deliver.disabled == {"a"}
    assert events(told) == ["receiver_disabled", "message_dropped", "message_dropped"]
    assert told[0].because == "unknown key. Write another."

    assert events(house.turn()) == ["message_sent", "receiver_back"]
    assert house.deliver.disabled == frozenset()


def test_what_one_receiver_refuses_the_fallback_is_told(db: sqlite3.Connection) -> None:
    fallback = Receiver()
    house = House(db, "b", a=Channel(Receiver([REFUSED])), b=Channel(fallback))
    house.owe("one")
    house.until_quiet()

    assert fallback.heard == ["one"]


def test_a_fallback_that_refuses_too_does_not_go_round_in_circles(db: sqlite3.Connection) -> None:
    broken = Receiver([REFUSED] * 10)
    house = House(db, "b", a=Channel(Receiver([REFUSED] * 10)), b=Channel(broken))
    house.owe("one")
    house.until_quiet()

    assert broken.asked == 1


def test_a_reload_gives_a_disabled_receiver_a_clean_slate(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver([REFUSED])))
    house.owe("one")
    house.until_quiet()
    house.deliver.use({"a": Channel(Receiver())})

    assert house.deliver.disabled == frozenset()


def test_a_message_of_a_receiver_that_is_gone_is_dropped_aloud(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver()))
    house.owe("one", "gone")
    (dropped,) = house.until_quiet()

    assert (dropped.event, dropped.reason) == ("message_dropped", "no_receiver")


def test_a_message_that_cannot_be_read_is_dropped_aloud(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver))
    house.owe("broken")
    house.owe("whole")
    db.execute("UPDATE outbox SET notice = '{' WHERE number = 1")

    assert [d.reason for d in house.until_quiet()] == ["unreadable", ""]
    assert receiver.heard == ["whole"]


def test_an_outage_of_hours_loses_nothing_and_hammers_nobody(db: sqlite3.Connection) -> None:
    receiver = Receiver([Transient("no answer")] * 60)
    house = House(db, a=Channel(receiver))
    house.owe("one")
    house.owe("two")
    told = house.until_quiet()

    assert receiver.heard == ["one", "two"]
    assert house.now - NOW > timedelta(hours=4)
    assert events(told).count("message_dropped") == 0


def test_after_a_day_a_message_is_given_up(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver([Transient("no answer")] * 10_000)))
    house.owe("one")
    told = house.until_quiet(most=1000)

    assert (told[-1].event, told[-1].reason) == ("message_dropped", "expired")
    assert GIVE_UP_AFTER <= house.now - NOW <= GIVE_UP_AFTER + timedelta(minutes=5)


def test_an_unknown_answer_is_tried_as_often_as_the_receiver_says(db: sqlite3.Connection) -> None:
    receiver = Receiver([Transient("errcode 40008", at_most=3)] * 10)
    house = House(db, a=Channel(receiver))
    house.owe("one")
    told = house.until_quiet()

    assert receiver.asked == 3
    assert (told[-1].event, told[-1].reason) == ("message_dropped", "too_often")


def test_a_foreign_exception_is_retried_and_never_quoted(db: sqlite3.Connection) -> None:
    receiver = Receiver([RuntimeError("http://host/SECRET")])
    house = House(db, a=Channel(receiver))
    house.owe("one")
    told = house.until_quiet()

    assert receiver.heard == ["one"]
    assert "SECRET" not in repr(told)
    assert "RuntimeError" in told[0].because


def test_an_answer_that_comes_late_changes_nothing(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver()))
    number = house.owe("one")
    house.until_quiet()

    assert house.deliver.settled(number, Transient("late"), house.now) == []
    assert house.deliver.settled(999, None, house.now) == []


@pytest.mark.parametrize(
    ("rate", "count"), [(SLACK, 5), (WECOM, 60), (Rate(3, SECOND * 10), 20)], ids=str
)
def test_no_window_holds_more_than_the_rate(db: sqlite3.Connection, rate: Rate, count: int) -> None:
    house = House(db, a=Channel(Receiver(), rate))
    starts: list[datetime] = []
    for index in range(count):
        house.owe(str(index))
        while not house.turn():
            house.now = house.deliver.wake_at(house.now) or house.now
        starts.append(house.now)

    for at in starts:
        assert sum(at <= other < at + rate.per for other in starts) <= rate.count
    assert starts[-1] - starts[0] == (count - 1) // rate.count * rate.per


def test_a_reload_does_not_lend_a_second_helping(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver, SLACK))
    house.owe("one")
    house.owe("two")
    house.turn()
    house.deliver.use({"a": Channel(receiver, SLACK)})
    house.turn()

    assert receiver.heard == ["one"]


def test_a_clock_set_back_does_not_hold_up_a_paced_channel(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver, SLACK))
    house.owe("one")
    house.owe("two")
    house.turn()
    house.now -= timedelta(hours=3)
    house.turn()

    assert receiver.heard == ["one", "two"]


def test_a_crowd_at_a_paced_channel_becomes_one_message(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver, WECOM))
    for index in range(25):
        house.owe(str(index), target=f"t{index}")
    told = house.until_quiet()

    assert receiver.heard == ["25 messages in one"]
    assert [d.number for d in told if d.event == "message_sent"] == list(range(1, 26))


def test_a_crowd_at_a_channel_without_a_pace_is_told_one_by_one(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver))
    for index in range(20):
        house.owe(str(index))
    house.until_quiet()

    assert receiver.heard == [str(index) for index in range(20)]


def test_what_asks_for_an_answer_is_never_bundled(db: sqlite3.Connection) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver, SLACK))
    for index in range(7):
        asks = replace(notice(str(index)), kind="approval" if index in (0, 3) else "alert")
        house.outbox.owe("a", asks, None, NOW)
    house.until_quiet()

    assert receiver.heard == ["0", "2 messages in one", "3", "4", "5", "6"]


def test_a_bundle_that_is_refused_is_refused_as_a_whole(db: sqlite3.Connection) -> None:
    receiver, fallback = Receiver([REFUSED] * 10), Receiver()
    house = House(db, "b", a=Channel(receiver, SLACK), b=Channel(fallback))
    for index in range(7):
        house.owe(str(index))
    told = house.until_quiet()

    assert receiver.asked == 1
    assert events(told).count("message_dropped") == 7
    assert fallback.heard == [str(index) for index in range(7)]


def test_a_bundle_that_fails_loses_nothing(db: sqlite3.Connection) -> None:
    receiver = Receiver([Transient("no answer")])
    house = House(db, a=Channel(receiver, SLACK))
    for index in range(7):
        house.owe(str(index))
    house.turn()
    assert house.outbox.owed_count("a") == 7

    house.until_quiet()
    assert receiver.heard == ["7 messages in one"]


@pytest.mark.parametrize("when", ["before the send", "after it was taken", "after the commit"])
def test_a_kill_repeats_at_most_the_message_in_flight(db: sqlite3.Connection, when: str) -> None:
    receiver = Receiver()
    house = House(db, a=Channel(receiver))
    for text in ("one", "two"):
        house.owe(text)
    house.deliver.pump(NOW)
    if when != "before the send":
        house.network.run()
    if when == "after the commit":
        house.settle()

    House(db, a=Channel(receiver)).until_quiet()  # what is left after the kill

    repeated = ["one"] if when == "after it was taken" else []
    assert receiver.heard == [*repeated, "one", "two"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.booleans()), min_size=1, max_size=12
    )
)
def test_whatever_fails_every_message_arrives_in_order(
    plan: list[tuple[str, int, bool]],
) -> None:
    """Each message fails some times first; and the daemon is killed here and there."""
    with closing(open_database(":memory:")) as db:
        receivers = {"a": Receiver(), "b": Receiver()}
        house = House(db, **{name: Channel(receiver) for name, receiver in receivers.items()})
        owed: dict[str, list[str]] = {"a": [], "b": []}
        for index, (channel, failures, killed) in enumerate(plan):
            owed[channel].append(str(index))
            house.owe(str(index), channel, group=str(index))
            receivers[channel].failures += [Transient("no answer")] * failures
            house.turn()
            if killed:
                now = house.now
                house = House(db, **{name: Channel(it) for name, it in receivers.items()})
                house.now = now
        house.until_quiet()

        assert {name: receiver.heard for name, receiver in receivers.items()} == owed


def test_a_retried_message_keeps_its_facts(db: sqlite3.Connection) -> None:
    house = House(db, a=Channel(Receiver([Transient("no answer")])))
    number = house.outbox.owe("a", replace(notice("one"), kind="held"), None, NOW)
    house.turn()

    owed = house.outbox.get(number)
    assert owed is not None
    assert owed.notice == replace(notice("one"), kind="held")
