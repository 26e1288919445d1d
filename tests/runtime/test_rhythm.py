"""When turns come: one for the answers of a slot, and one together for those that came later."""

from datetime import UTC, datetime, timedelta

import pytest

from sentinel.runtime.rhythm import Rhythm
from tests.runtime.house import plan

SLOT = datetime(2030, 1, 1, tzinfo=UTC)
URGENT, SAMPLE = True, False


def ms(count: int) -> datetime:
    return SLOT + timedelta(milliseconds=count)


@pytest.fixture
def rhythm() -> Rhythm:
    """Its last turn was that of the slot a second ago."""
    made = Rhythm(plan())
    assert made.is_time_for_a_turn(ms(-940))
    return made


def test_the_turn_of_a_slot_comes_at_once_if_nothing_is_awaited(rhythm: Rhythm) -> None:
    assert not rhythm.is_time_for_a_turn(ms(40))
    assert rhythm.is_time_for_a_turn(ms(50))


def test_it_waits_for_answers_that_are_sure_to_come(rhythm: Rhythm) -> None:
    assert not rhythm.is_time_for_a_turn(ms(50), awaits=True)
    rhythm.wake_for([SAMPLE], ms(70))
    assert not rhythm.is_time_for_a_turn(ms(70), awaits=True)
    rhythm.wake_for([SAMPLE], ms(80))
    assert rhythm.is_time_for_a_turn(ms(80))


def test_and_is_then_the_only_one(rhythm: Rhythm) -> None:
    rhythm.is_time_for_a_turn(ms(50), awaits=True)
    rhythm.wake_for([SAMPLE], ms(80))
    rhythm.is_time_for_a_turn(ms(80))

    assert not any(rhythm.is_time_for_a_turn(ms(at)) for at in range(81, 1050, 10))


def test_it_waits_no_longer_than_a_tenth_of_a_second(rhythm: Rhythm) -> None:
    rhythm.is_time_for_a_turn(ms(50), awaits=True)

    assert ms(150) in rhythm.moments()
    assert not rhythm.is_time_for_a_turn(ms(140), awaits=True)
    assert rhythm.is_time_for_a_turn(ms(150), awaits=True)


def test_what_is_urgent_waits_for_no_answer(rhythm: Rhythm) -> None:
    rhythm.is_time_for_a_turn(ms(50), awaits=True)
    rhythm.wake_for([URGENT], ms(60))

    assert rhythm.is_time_for_a_turn(ms(60), awaits=True)


def test_answers_after_the_turn_bring_one_more_together(rhythm: Rhythm) -> None:
    rhythm.is_time_for_a_turn(ms(50))
    rhythm.wake_for([SAMPLE], ms(60))
    rhythm.wake_for([SAMPLE, SAMPLE], ms(140))

    assert not rhythm.is_time_for_a_turn(ms(149))
    assert rhythm.is_time_for_a_turn(ms(150))
    assert not rhythm.is_time_for_a_turn(ms(300))
