import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.model.message import AlertFacts, DecisionFacts, Notice
from sentinel.store.database import open_database
from sentinel.store.outbox import (
    LONGEST_WAIT,
    Outbox,
    Owed,
    notice_from_json,
    notice_to_json,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NOTICE = Notice(kind="alert", group_key="g", group_labels={}, alerts=(), incident=None)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(open_database(tmp_path / "state.db")) as db:
        yield db


@pytest.fixture
def outbox(db: sqlite3.Connection) -> Outbox:
    return Outbox(db)


def numbers(found: Sequence[Owed]) -> list[int]:
    return [owed.number for owed in found]


def test_only_the_oldest_of_each_channel_is_due(outbox: Outbox) -> None:
    first = outbox.owe("a", NOTICE, None, NOW)
    outbox.owe("a", NOTICE, None, NOW)
    other = outbox.owe("b", NOTICE, None, NOW)

    assert numbers(outbox.due(NOW)) == [first, other]


def test_the_next_is_due_once_the_oldest_is_done_with(outbox: Outbox) -> None:
    first, second, third = (outbox.owe("a", NOTICE, None, NOW) for _ in range(3))
    outbox.sent(first, NOW)
    assert numbers(outbox.due(NOW)) == [second]
    outbox.drop(second, NOW, "refused")
    assert numbers(outbox.due(NOW)) == [third]


def test_a_retry_holds_its_channel_and_no_other(outbox: Outbox) -> None:
    first = outbox.owe("a", NOTICE, None, NOW)
    outbox.owe("a", NOTICE, None, NOW)
    other = outbox.owe("b", NOTICE, None, NOW)
    outbox.retry(first, NOW + SECOND * 30, "answered 429")

    assert numbers(outbox.due(NOW + SECOND * 29)) == [other]
    assert numbers(outbox.due(NOW + SECOND * 30)) == [first, other]
    assert [head.attempts for head in outbox.heads()] == [1, 0]


@pytest.mark.parametrize(
    ("back", "attempts", "due"),
    [
        pytest.param(timedelta(minutes=5), 0, True, id="never tried: due whatever the clock says"),
        pytest.param(timedelta(days=1), 1, True, id="due in a day: no wait is so long"),
        pytest.param(timedelta(minutes=5), 1, False, id="due within the longest wait: patient"),
    ],
)
def test_a_clock_set_back_holds_nothing_up_for_long(
    outbox: Outbox, back: timedelta, attempts: int, due: bool
) -> None:
    number = outbox.owe("a", NOTICE, None, NOW)
    for _ in range(attempts):
        outbox.retry(number, NOW + SECOND, "")

    assert bool(outbox.due(NOW - back)) is due
    assert outbox.due(NOW - back + LONGEST_WAIT)


@pytest.mark.parametrize("late", ["sent", "retry", "drop"])
def test_what_is_done_stays_done(outbox: Outbox, db: sqlite3.Connection, late: str) -> None:
    number = outbox.owe("a", NOTICE, None, NOW)
    outbox.sent(number, NOW)
    before = tuple(db.execute("SELECT * FROM outbox").fetchone())

    if late == "sent":
        outbox.sent(number, NOW + SECOND)
    elif late == "retry":
        outbox.retry(number, NOW + SECOND, "late")
    else:
        outbox.drop(number, NOW + SECOND, "late")

    assert tuple(db.execute("SELECT * FROM outbox").fetchone()) == before
    assert outbox.get(number) is None


def test_a_message_shares_the_fate_of_the_change_it_tells_of(
    outbox: Outbox, db: sqlite3.Connection
) -> None:
    db.execute("BEGIN")
    outbox.owe("a", NOTICE, None, NOW)
    db.execute("ROLLBACK")

    assert outbox.owed_count("a") == 0


def test_what_is_owed_outlives_the_process(tmp_path: Path) -> None:
    with closing(open_database(tmp_path / "s.db")) as db:
        number = Outbox(db).owe("a", NOTICE, None, NOW)
    with closing(open_database(tmp_path / "s.db")) as db:
        (owed,) = Outbox(db).due(NOW)

    assert (owed.number, owed.channel, owed.notice) == (number, "a", NOTICE)
    assert owed.queued_at == owed.due_at == NOW


def test_a_row_that_cannot_be_read_is_offered_without_a_notice(
    outbox: Outbox, db: sqlite3.Connection
) -> None:
    for text in ("", "{", "[]", "{}", '{"alerts": [{"no": 1}], "decision": null}', "null"):
        db.execute("DELETE FROM outbox")
        outbox.owe("a", NOTICE, None, NOW)
        db.execute("UPDATE outbox SET notice = ?", (text,))
        assert [owed.notice for owed in outbox.due(NOW)] == [None]


def test_a_backlog_says_how_far_behind_a_channel_is(outbox: Outbox) -> None:
    first = outbox.owe("a", NOTICE, None, NOW)
    outbox.owe("a", NOTICE, None, NOW + SECOND)
    outbox.retry(first, NOW + SECOND, "answered 500")
    outbox.sent(outbox.owe("b", NOTICE, None, NOW), NOW)

    (backlog,) = outbox.backlogs()
    assert (backlog.channel, backlog.owed, backlog.oldest_at) == ("a", 2, NOW)
    assert (backlog.attempts, backlog.last_error) == (1, "answered 500")
    assert outbox.owed_count("a") == 2


def test_what_waits_in_a_channel_is_read_in_order(outbox: Outbox) -> None:
    first, second, third = (outbox.owe("a", NOTICE, None, NOW) for _ in range(3))
    outbox.owe("b", NOTICE, None, NOW)
    outbox.drop(first, NOW, "")

    assert numbers(outbox.waiting("a", 10)) == [second, third]
    assert numbers(outbox.waiting("a", 1)) == [second]


def test_only_what_is_done_with_is_forgotten(outbox: Outbox, db: sqlite3.Connection) -> None:
    outbox.sent(outbox.owe("a", NOTICE, None, NOW), NOW)
    outbox.drop(outbox.owe("a", NOTICE, None, NOW), NOW, "refused")
    outbox.sent(outbox.owe("a", NOTICE, None, NOW), NOW + SECOND)
    owed = outbox.owe("a", NOTICE, None, NOW)
    outbox.forget(NOW + SECOND)

    assert numbers(outbox.heads()) == [owed]
    assert db.execute("SELECT COUNT(*) FROM outbox").fetchone()[0] == 2


words = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
notices = st.builds(
    Notice,
    kind=st.sampled_from(["alert", "held", "digest"]),
    group_key=st.text(max_size=5),
    group_labels=words,
    alerts=st.lists(
        st.builds(
            AlertFacts,
            status=st.sampled_from(["firing", "resolved"]),
            labels=words,
            annotations=words,
            starts_at=st.text(max_size=5),
        ),
        max_size=3,
    ).map(tuple),
    incident=st.none() | st.dictionaries(st.text(max_size=5), values, max_size=3),
    decision=st.none()
    | st.builds(
        DecisionFacts,
        action=st.text(max_size=5),
        would=st.booleans(),
        guard=st.none() | st.text(max_size=5),
        because=st.text(max_size=5),
    ),
    headline=st.text(st.characters() | st.just("\ud800"), max_size=5),
    facts=words,
)


@given(notices)
def test_a_notice_comes_back_as_it_was(notice: Notice) -> None:
    assert notice_from_json(notice_to_json(notice)) == notice
