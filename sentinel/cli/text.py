"""Plain text for people: columns, wrapped lines, spans of time, colour.

Nothing is cut off when a terminal is narrow; it is wrapped. What came from a container or a
configuration passes through `clean`, so that a log line cannot drive somebody's terminal.
Chinese takes two cells a character, and columns count cells. No table library: importing
one costs more time than `sentinel status` needs for everything else.
"""

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import typer

NARROW, WIDE = 40, 1000
COLOURS = {
    "failed": "red",
    "hung": "red",
    "unknown": "yellow",
    "restarting": "yellow",
    "starting": "cyan",
    "saturated": "yellow",
    "serving": "green",
    "idle": "green",
    "critical": "red",
    "warning": "yellow",
}


def say(text: str = "") -> None:
    """Not flushed line by line: a reader that leaves early must not change the exit status."""
    sys.stdout.write(f"{text}\n")


def say_json(value: Any) -> None:
    """As UTF-8 where the terminal can show it, escaped where it cannot."""
    encoding = (getattr(sys.stdout, "encoding", "") or "").lower().replace("-", "")
    say(json.dumps(value, indent=2, ensure_ascii=encoding != "utf8"))


def complain(message: str, hint: str = "") -> None:
    """What went wrong and, always, what to try."""
    typer.echo(f"sentinel: {message}", err=True)
    if hint:
        typer.echo(hint, err=True)


def paint(text: str, word: str) -> str:
    """`text` in the colour of `word`; only on a terminal, and not if NO_COLOR asks not to."""
    plain = (
        not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    )
    colour = COLOURS.get(word)
    return text if plain or colour is None else typer.style(text, fg=colour, bold=colour == "red")


def clean(value: object) -> str:
    text = "-" if value is None or value == "" else str(value)
    return "".join(char if char.isprintable() else " " for char in text)


def cells(text: str) -> int:
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def screen() -> int:
    """Columns to write in. A pipe has no edge: one fact stays on one line for grep."""
    return max(NARROW, shutil.get_terminal_size((WIDE, 24)).columns)


def paragraph(text: object, *, first: str = "", then: str | None = None) -> str:
    """`text` wrapped to the screen after `first`; later lines start with `then`."""
    rest = " " * cells(first) if then is None else then
    lines, line, room = [], first, screen()
    for word in _fitting(clean(text).split(), room - max(cells(first), cells(rest))):
        gap = "" if line in (first, rest) else " "
        if cells(line) + len(gap) + cells(word) > room:
            lines.append(line)
            line, gap = rest, ""
        line += gap + word
    return "\n".join([*lines, line])


def _fitting(words: Iterable[str], room: int) -> Iterable[str]:
    """`words`, with those that fit on no line broken into pieces that do."""
    for word in words:
        piece = ""
        for char in word:
            if cells(piece) + _cell(char) > room:
                yield piece
                piece = ""
            piece += char
        yield piece


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[str] = ()
) -> list[str]:
    """The header and one line for each row, aligned; those named in `right` to the right.

    Where that is wider than the screen the first column gets a line of its own.
    """
    alone = _width([header, *rows], range(len(header))) > screen()
    shown = range(1 if alone else 0, len(header))
    widths = {at: max(cells(row[at]) for row in [header, *rows]) for at in shown}
    lines = []
    for row in [header, *rows]:
        parts = [_padded(row[at], widths[at], to_the_right=header[at] in right) for at in shown]
        line = "  ".join(parts).rstrip()
        lines.append(f"{row[0]}\n  {line}" if alone else line)
    return lines


def _width(rows: Sequence[Sequence[str]], shown: range) -> int:
    return sum(max(cells(row[at]) for row in rows) + 2 for at in shown) - 2


def _padded(text: str, width: int, *, to_the_right: bool) -> str:
    gap = " " * (width - cells(text))
    return gap + text if to_the_right else text + gap


def span(seconds: float | None) -> str:
    """`95` → `1m 35s`: the two largest units."""
    if seconds is None:
        return "-"
    left = max(0, int(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (unit == "s" and not parts):
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])


def moment(at: str | None) -> str:
    """`2030-01-01T12:00:00.123Z` → `2030-01-01 12:00:00Z`."""
    if not at:
        return "-"
    text = clean(at).replace("T", " ").replace("+00:00", "Z")
    day, dot, rest = text.partition(".")
    return day + ("Z" if dot and rest.endswith("Z") else rest if not dot else "")
