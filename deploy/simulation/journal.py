"""Plays back recorded log lines as if they were written now, by these processes.

Recordings (`texts/*.log`) are what `docker logs --timestamps` gave for a real server. Each
line keeps its words; the time and the process number are filled in when it is written.
"""

import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

TEXTS = Path(__file__).with_name("texts")
STAMPED = re.compile(r"^\((?P<who>[\w-]+) pid=\d+\) (?P<text>.*)$")
DATED = re.compile(r"^(?P<level>[A-Z]+) \d\d-\d\d \d\d:\d\d:\d\d (?P<rest>\[.*)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    after: float  # seconds since the first line of the recording
    who: str  # "" for lines without a process in front
    level: str  # "" for lines without a date
    text: str


def recorded(name: str) -> list[Line]:
    """The lines of one recording, oldest first."""
    lines: list[Line] = []
    first: datetime | None = None
    for raw in (TEXTS / f"{name}.log").read_text().splitlines():
        stamp, _, text = raw.partition(" ")
        at = datetime.fromisoformat(stamp[:26] + "+00:00")
        first = first or at
        lines.append(_line((at - first).total_seconds(), text))
    return lines


def _line(after: float, text: str) -> Line:
    stamped = STAMPED.match(text)
    who, text = (stamped["who"], stamped["text"]) if stamped else ("", text)
    dated = DATED.match(text)
    level, text = (dated["level"], dated["rest"]) if dated else ("", text)
    return Line(after=after, who=who, level=level, text=text)


class Journal:
    """Writes lines for one server: with its process numbers, and what it replaces in recordings."""

    def __init__(self, *, pids: Mapping[str, int], replace: Mapping[str, str]) -> None:
        self._pids = dict(pids)
        self._replace = dict(replace)

    def name_process(self, who: str, pid: int) -> None:
        self._pids[who] = pid

    def write(self, line: Line) -> None:
        text = line.text
        for old, new in self._replace.items():
            text = text.replace(old, new)
        self.say(line.who, line.level, text)

    def say(self, who: str, level: str, text: str) -> None:
        """`text` begins with [file:line] when `level` is given, as vLLM's formatter has it."""
        if level:
            text = f"{level} {time.strftime('%m-%d %H:%M:%S')} {text}"
        if who:
            text = f"({who} pid={self._pids.get(who, 1)}) {text}"
        stream = sys.stdout if who or '"' in text else sys.stderr  # uvicorn: only access to stdout
        stream.write(text + "\n")
        stream.flush()

    def play(self, name: str) -> None:
        for line in recorded(name):
            self.write(line)
