from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sentinel.core.dispatch.silence import Silence, expire, set_silence
from sentinel.core.model.command import SetSilence
from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import Matcher

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
A, B = Matcher("a", "=", "1"), Matcher("b", "=", "1")

ACTIVE = Silence(
    id="old",
    matchers=(A,),
    starts_at=NOW - HOUR,
    ends_at=NOW + HOUR,
    updated_at=NOW - HOUR,
    created_by="me",
    comment="why",
)
PENDING = replace(ACTIVE, starts_at=NOW + HOUR, ends_at=NOW + 2 * HOUR)
EXPIRED = replace(ACTIVE, starts_at=NOW - 2 * HOUR, ends_at=NOW - HOUR)


def wanted(
    id_: str | None = "old",
    starts_at: datetime = ACTIVE.starts_at,
    ends_at: datetime = NOW + 3 * HOUR,
    matchers: tuple[Matcher, ...] = (A,),
) -> SetSilence:
    return SetSilence(
        by="me",
        id=id_,
        matchers=matchers,
        starts_at=starts_at,
        ends_at=ends_at,
        created_by="you",
        comment="because",
    )


def made(*known: Silence, of: SetSilence) -> tuple[Silence, ...]:
    return set_silence({one.id: one for one in known}, of, NOW, lambda: "new")


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        pytest.param(ACTIVE, wanted(), id="an active one ends later"),
        pytest.param(ACTIVE, wanted(ends_at=NOW), id="an active one ends now"),
        pytest.param(
            ACTIVE,
            wanted(starts_at=ACTIVE.starts_at + timedelta(milliseconds=400)),
            id="the start is the same to the second",
        ),
        pytest.param(PENDING, wanted(starts_at=NOW), id="a pending one starts now"),
        pytest.param(PENDING, wanted(starts_at=NOW + 2 * HOUR), id="a pending one starts later"),
    ],
)
def test_what_changes_no_history_changes_in_place(known: Silence, asked: SetSilence) -> None:
    assert made(known, of=asked) == (
        Silence(
            id="old",
            matchers=(A,),
            starts_at=asked.starts_at,
            ends_at=asked.ends_at,
            updated_at=NOW,
            created_by="you",
            comment="because",
        ),
    )


@pytest.mark.parametrize(
    ("known", "asked", "ended"),
    [
        pytest.param(ACTIVE, wanted(matchers=(B,)), True, id="another matcher"),
        pytest.param(ACTIVE, wanted(matchers=(A, B)), True, id="one more matcher"),
        pytest.param(ACTIVE, wanted(starts_at=NOW + HOUR), True, id="another start"),
        pytest.param(PENDING, wanted(starts_at=NOW - HOUR), True, id="a start in the past"),
        pytest.param(EXPIRED, wanted(starts_at=EXPIRED.starts_at), False, id="it was over"),
    ],
)
def test_what_would_change_history_ends_the_old_one_and_makes_a_new_one(
    known: Silence, asked: SetSilence, ended: bool
) -> None:
    *before, new = made(known, of=asked)
    assert (new.id, new.matchers) == ("new", asked.matchers)
    assert (new.starts_at, new.ends_at) == (max(asked.starts_at, NOW), asked.ends_at)
    assert before == (
        [replace(known, starts_at=min(known.starts_at, NOW), ends_at=NOW, updated_at=NOW)]
        if ended
        else []
    )


def test_a_new_one_does_not_begin_in_the_past() -> None:
    [new] = made(of=wanted(None, starts_at=NOW - HOUR))
    assert (new.id, new.starts_at, new.updated_at) == ("new", NOW, NOW)


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        pytest.param(
            wanted(None, starts_at=NOW, ends_at=NOW), 400,
            "Failed to create silence: start time must be before end time", id="no time at all",
        ),
        pytest.param(
            wanted(None, ends_at=NOW - timedelta(seconds=1)), 400,
            "Failed to create silence: end time can't be in the past", id="over before it began",
        ),
        pytest.param(wanted("other"), 404, "silence not found", id="an id that is not known"),
        pytest.param(
            wanted(None, matchers=()), 400,
            "silence invalid: at least one matcher required", id="no matcher",
        ),
        pytest.param(
            wanted(None, matchers=(Matcher("a", "=", ""), Matcher("b", "=~", "x?"))), 400,
            "silence invalid: at least one matcher must not match the empty string",
            id="all matchers take the empty string",
        ),
        pytest.param(
            wanted(None, matchers=(A, Matcher("a-b", "=", "x"))), 400,
            'silence invalid: invalid label matcher 1: invalid label name "a-b"',
            id="a name that is no label's",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_is_refused_in_alertmanagers_words(
    asked: SetSilence, status: int, message: str
) -> None:
    with pytest.raises(Permanent) as refused:
        made(ACTIVE, of=asked)
    assert (refused.value.message, refused.value.facts) == (message, {"status": status})


def test_what_is_not_equal_counts_as_not_matching_the_empty_string() -> None:
    assert made(of=wanted(None, matchers=(Matcher("a", "!=", "x"),)))


@pytest.mark.parametrize(
    ("known", "starts_at"),
    [
        pytest.param(ACTIVE, ACTIVE.starts_at, id="active"),
        pytest.param(PENDING, NOW, id="pending: it never began"),
    ],
)
def test_a_silence_that_is_ended_is_over_now(known: Silence, starts_at: datetime) -> None:
    [ended] = expire({"old": known}, "old", NOW)
    assert ended == replace(known, starts_at=starts_at, ends_at=NOW, updated_at=NOW)
    assert ended.state(NOW) == "expired"


def test_to_end_what_is_over_changes_nothing() -> None:
    assert expire({"old": EXPIRED}, "old", NOW) == ()


def test_to_end_what_is_not_known_is_refused() -> None:
    with pytest.raises(Permanent) as refused:
        expire({}, "old", NOW)
    assert (refused.value.message, refused.value.facts) == ("silence not found", {"status": 500})


@pytest.mark.parametrize(
    ("at", "state"),
    [
        pytest.param(NOW + HOUR - timedelta(microseconds=1), "pending", id="before"),
        pytest.param(NOW + HOUR, "active", id="from its start"),
        pytest.param(NOW + 2 * HOUR, "expired", id="until its end"),
    ],
)
def test_a_silence_is_active_from_its_start_until_its_end(at: datetime, state: str) -> None:
    assert PENDING.state(at) == state
