"""A log that comes in pieces: lines, frames, launches, events."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.reader import EVENTS, LogEvent, LogReader
from sentinel.core.diagnosis.stream import MOST, LineStream

HERE = Path(__file__).parent
ALL = sorted([*HERE.glob("logs/*.txt"), *HERE.parents[1].glob("fixtures/*/log_*.txt")])


def events(*pieces: bytes, reader: LogReader | None = None) -> list[LogEvent]:
    reader = reader or LogReader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    return found + reader.close()


def framed(data: bytes, dice: random.Random) -> bytes:
    """As Docker sends it: any write in a frame of its own."""
    parts, at = [], 0
    while at < len(data):
        size = dice.randint(1, 200)
        piece = data[at : at + size]
        parts.append(bytes([2, 0, 0, 0]) + len(piece).to_bytes(4, "big") + piece)
        at += size
    return b"".join(parts)


def cut(data: bytes, dice: random.Random) -> list[bytes]:
    pieces, at = [], 0
    while at < len(data):
        size = dice.choice((1, 2, 7, 50, 4000))
        pieces.append(data[at : at + size])
        at += size
    return pieces


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_how_a_log_is_cut_changes_nothing(file: Path) -> None:
    data, dice = file.read_bytes(), random.Random(file.name)
    whole = events(data)

    assert whole
    assert events(*cut(data, dice)) == whole
    assert events(*cut(framed(data, dice), dice)) == whole


@given(st.binary(max_size=300), st.lists(st.integers(1, 20), max_size=40))
@settings(max_examples=200)
def test_lines_are_the_same_in_any_pieces(data: bytes, sizes: list[int]) -> None:
    whole, parts = LineStream(), LineStream()
    expected = [*whole.feed(data), *whole.close()]
    found: list[tuple[int, str]] = []
    at = 0
    for size in [*sizes, len(data) + 1]:
        found += parts.feed(data[at : at + size])
        at += size

    assert [*found, *parts.close()] == expected


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    stream = LineStream()
    lines = [*stream.feed("a\x0b\u2028b\r\n\nc".encode()), *stream.close()]

    assert lines == [(1, "a\x0b\u2028b\r"), (2, ""), (3, "c")]


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    stream = LineStream()
    for _ in range(100):
        assert not list(stream.feed(b"x" * 100_000))

    assert [len(text) for _, text in stream.feed(b"\n")] == [MOST]


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_no_line_that_matters_is_skipped_unread(file: Path) -> None:
    """A pattern of one's own makes every line be read; it must find nothing more."""
    never = Pattern(cause="unknown", match=re.compile("(?!x)x"))

    assert events(file.read_bytes(), reader=LogReader([never])) == events(file.read_bytes())


def test_events_carry_their_numbers() -> None:
    (file,) = HERE.parents[1].glob("fixtures/*/log_gpu_healthy.txt")
    reader = LogReader()
    found = {event.word: event for event in events(file.read_bytes(), reader=reader)}

    assert found["launch"].facts == {"version": "0.22.1"}
    assert found["arguments"].facts["max_num_seqs"] == 128
    assert found["loaded"].facts == {"weights_gib": 15.0, "load_seconds": 0.239221}
    assert found["kv_blocks"].facts == {"kv_tokens": 555216}
    assert found["concurrency"].facts == {"max_model_len": 16384, "concurrency": 33.89}
    assert found["load"].facts["running"] == 32
    assert found["ready"].process == "APIServer pid=1"
    assert reader.launches == 1


def test_numbers_of_an_old_version() -> None:
    reader = LogReader()
    found = {e.word: e for e in events((HERE / "logs/0.5.0_kv_small_v0.txt").read_bytes(), reader=reader)}  # fmt: skip

    assert found["kv_blocks"].facts == {"kv_blocks": 1377}
    assert reader.launch.facts["tensor_parallel_size"] == 4
    assert reader.launch.facts["version"] == "0.5.0.post1"
    assert "sk-1" not in str(reader.launch)


@pytest.mark.parametrize("file", ALL, ids=lambda file: file.name)
def test_events_have_fixed_words(file: Path) -> None:
    assert {event.word for event in events(file.read_bytes())} <= set(EVENTS)


def test_parts_of_one_line_in_several_records_are_one_line() -> None:
    text = (
        b'{"log":"ERROR 01-02 03:04:05 [core.py:1] torch.OutOfMemoryError: CUDA out of ","stream":"stderr"}\n'
        b'{"log":"memory. Tried to allocate 2.00 GiB\\n","stream":"stderr"}\n'
    )

    assert [event.facts for event in events(text)] == [{"asked": "2.00 GiB"}]


def test_a_progress_bar_hides_no_error() -> None:
    text = b"Loading:   0%|  | 0/1\rLoading: 100%|# | 1/1\rValueError: No available memory for the cache blocks.\n"

    assert [event.cause for event in events(text)] == ["no_kv_cache_memory"]
