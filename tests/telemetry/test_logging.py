import io
import json
import logging
import os
import pty
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
import structlog

from sentinel.telemetry import events
from sentinel.telemetry.logging import configure


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, str]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_the_keys_of_the_house() -> None:
    stream = io.StringIO()
    configure(stream=stream, environ={})

    structlog.get_logger().info(events.INTENT_HELD, target="t1-a", because="冷却中")

    (line,) = lines(stream)
    assert line.pop("at").endswith("Z")
    assert line == {"event": "intent_held", "level": "info", "target": "t1-a", "because": "冷却中"}


def test_a_library_comes_out_in_the_same_form_from_warnings_upward() -> None:
    stream = io.StringIO()
    configure(stream=stream, environ={})

    logging.getLogger("urllib3").info("chatter")
    logging.getLogger("urllib3").warning("retry %s", "x")

    (line,) = lines(stream)
    assert (line["event"], line["level"], line["logger"]) == ("retry x", "warning", "urllib3")


def test_a_failure_carries_its_trace_on_the_same_line_without_locals() -> None:
    stream = io.StringIO()
    configure(stream=stream, environ={})
    secret = "hunter" + "2"

    try:
        int("bad")
    except ValueError:
        structlog.get_logger().exception(events.TURN_FAILED, because="x", size=len(secret))

    (line,) = lines(stream)
    assert "ValueError: invalid" in line["exception"]
    assert secret not in line["exception"]


@pytest.mark.parametrize(
    ("level", "priority"), [("error", "<3>"), ("warning", "<4>"), ("info", "<6>")]
)
def test_the_journal_gets_a_priority(tmp_path: Path, level: str, priority: str) -> None:
    file = tmp_path / "journal"
    with file.open("w") as stream:
        found = os.fstat(stream.fileno())
        configure(stream=stream, environ={"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"})
        getattr(structlog.get_logger(), level)(events.PROBLEM_SEEN, because="x")
        logging.getLogger("lib").error("y")

    ours, theirs = file.read_text().splitlines()
    assert ours.startswith(priority + "{")
    assert theirs.startswith("<3>{")


def test_another_journals_stream_gets_none(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with file.open("w") as stream:
        configure(stream=stream, environ={"JOURNAL_STREAM": "1:2"})
        structlog.get_logger().info(events.DAEMON_STARTED, because="x")

    assert file.read_text().startswith("{")


def test_a_terminal_gets_words_and_respects_no_color() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        configure(stream=terminal, environ={"NO_COLOR": "1"})
        structlog.get_logger().info(events.DAEMON_STARTED, because="asked to")
        terminal.flush()
        shown = os.read(ours, 4096).decode()
    os.close(ours)

    assert "daemon_started" in shown
    assert "asked to" in shown
    assert "\x1b" not in shown
    assert "{" not in shown


class Full(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(28, "No space left on device")


class Closed(io.StringIO):
    def write(self, _: str) -> int:
        raise ValueError("I/O operation on closed file")


@pytest.mark.parametrize("stream", [Full(), Closed()])
def test_a_stream_that_cannot_be_written_to_stops_nothing(stream: TextIO) -> None:
    configure(stream=stream, environ={})

    structlog.get_logger().error(events.PROBLEM_SEEN, because="x")
    logging.getLogger("lib").error("y")
