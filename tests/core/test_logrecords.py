"""Lines with their times, however the bytes are cut."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.logrecords import LONGEST, Record, Records, moment_of, nanoseconds

AT = b"2030-01-01T12:00:00.000000001Z"
LATER = b"2030-01-01T12:00:01.500000000Z"


def frame(text: bytes, stream: int = 1) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(text).to_bytes(4, "big") + text


def read(raw: bytes, *, tty: bool = False, cuts: Sequence[int] = ()) -> list[Record]:
    records, found = Records(tty=tty), list[Record]()
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    for begin, end in pairwise(edges):
        found += records.feed(raw[begin:end])
    return [*found, *records.close()]


FRAMED = (
    frame(AT + b" one\n")
    + frame(AT + b" the first half, ")
    + frame(LATER + b" from the other stream\n", 2)
    + frame(AT + b" the second\n")
    + frame(LATER + b" never ended")
)
BARE = AT + b" one\r\n" + LATER + b" two\r\n" + LATER + b" never ended"


@pytest.mark.parametrize(
    ("raw", "tty", "found"),
    [
        pytest.param(
            FRAMED,
            False,
            [
                Record(AT, b"one"),
                Record(LATER, b"from the other stream"),
                Record(AT, b"the first half, the second"),
                Record(LATER, b"never ended"),
            ],
            id="frames; a line in two records has the time of the first",
        ),
        pytest.param(
            BARE,
            True,
            [Record(AT, b"one\r"), Record(LATER, b"two\r"), Record(LATER, b"never ended")],
            id="a terminal has no frames",
        ),
        pytest.param(frame(b"no time\n"), False, [Record(b"", b"no time")], id="no timestamps"),
        pytest.param(
            frame(b"2030-01-01T13:00:00+01:00 x\n"),
            False,
            [Record(b"2030-01-01T13:00:00+01:00", b"x")],
            id="times of another engine",
        ),
        pytest.param(frame(AT + b" \n"), False, [Record(AT, b"")], id="an empty line"),
        pytest.param(frame(AT + b" cut")[:-2], False, [], id="a frame that never came whole"),
    ],
)
def test_each_line_comes_with_its_time(raw: bytes, tty: bool, found: list[Record]) -> None:
    assert read(raw, tty=tty) == found


@pytest.mark.parametrize(("raw", "tty"), [(FRAMED, False), (BARE, True)], ids=["frames", "bare"])
@given(cuts=st.lists(st.integers(0, 300), max_size=20))
def test_how_it_is_cut_never_shows(raw: bytes, tty: bool, cuts: list[int]) -> None:
    assert read(raw, tty=tty, cuts=cuts) == read(raw, tty=tty)


def test_a_line_without_end_costs_no_more_than_the_longest() -> None:
    endless = frame(AT + b" " + b"x" * LONGEST) * 3 + frame(AT + b" end\n")

    assert [len(record.line) for record in read(endless)] == [LONGEST]


@pytest.mark.parametrize(
    ("stamp", "ns"),
    [
        (b"1970-01-01T00:00:01.000000002Z", 1_000_000_002),
        (b"1970-01-01T00:00:01.5Z", 1_500_000_000),
        (b"1970-01-01T01:00:01+01:00", 1_000_000_000),
        (b"1969-12-31T23:59:59.5Z", -500_000_000),
        (b"", 0),
        (b"no time", 0),
    ],
)
def test_times_are_read_to_the_nanosecond(stamp: bytes, ns: int) -> None:
    assert nanoseconds(stamp) == ns


def test_what_is_no_time_is_none() -> None:
    assert moment_of(b"") is None
