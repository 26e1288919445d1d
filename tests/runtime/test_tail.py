"""Where one log is gone on from, whatever the engine's clock and the cuts of its stream."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.logrecords import Record, nanoseconds
from sentinel.runtime.tail import Tail
from sentinel.store.logbook import Position

STARTED = datetime(2030, 1, 1, 12, tzinfo=UTC)
ERROR = b"ERROR 01-01 12:00:00 [core.py:1] ValueError: x"


def at(second: int, offset: str = "Z") -> bytes:
    hour = {"Z": 12, "-05:00": 7, "+08:00": 20}[offset]
    return f"2030-01-01T{hour:02}:00:{second:02}{offset}".encode()


def tail_at(position: Position) -> Tail:
    return Tail(STARTED, position)


def offered(written: Sequence[Record], tail: Tail) -> list[Record]:
    """What an engine gives that is asked from where the tail is."""
    tail.goes_on()
    seconds, _, nanos = tail.since.partition(".")
    edge = int(seconds) * 10**9 + int(nanos)
    return [record for record in written if nanoseconds(record.stamp) >= edge]


@pytest.mark.parametrize("offset", ["Z", "-05:00", "+08:00"])
@given(
    seconds=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    cuts=st.lists(st.integers(0, 30), max_size=6),
    killed=st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_each_line_is_counted_once_over_any_restarts(
    offset: str, seconds: list[int], cuts: list[int], killed: list[bool]
) -> None:
    """Many lines of one time, streams that end anywhere, a daemon that forgets what it read."""
    written = [Record(at(second, offset), ERROR) for second in sorted(seconds)]
    tail = tail_at(Position("2030-01-01T11:59:59.000000000Z", 0))
    counted = 0
    for upto, forgets in zip([*sorted(cuts), len(written)], [*killed, True], strict=False):
        tail.take(offered(written[:upto], tail), 0.0)
        told = tail.told()
        counted += told.words["error"]
        if forgets:
            tail = tail_at(told.position)
    tail.take(offered(written, tail), 0.0)

    assert counted + tail.told().words["error"] == len(written)


def test_what_cannot_wait_is_said_once_a_second() -> None:
    tail = tail_at(Position(at(0).decode(), 0))
    died = Record(at(1), b"ERROR 01-01 12:00:00 [x.py:1] engine core exited unexpectedly")

    assert [tail.take([died], tick) for tick in (0.0, 0.5, 1.0, 1.2)] == [True, False, True, False]


def test_lines_belong_to_the_launch_they_were_written_in() -> None:
    tail = tail_at(Position(at(0).decode(), 0))
    tail.expect(datetime(2030, 1, 1, 12, 0, 3, tzinfo=UTC))
    oom = b"ERROR 01-01 12:00:00 [x.py:1] torch.OutOfMemoryError: CUDA out of memory."
    tail.take([Record(at(1), oom), Record(at(4), b"INFO 01-01 [x.py:1] nothing")], 0.0)

    before = tail.launch(STARTED)
    now = tail.launch(datetime(2030, 1, 1, 12, 0, 3, tzinfo=UTC))
    assert before is not None
    assert before.accusations
    assert now is not None
    assert not now.accusations
