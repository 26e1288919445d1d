"""The work of `sentinel diagnose`, apart because the table of patterns is heavy to import.

Files are read piece by piece, so that a log of any size may be given.
"""

import json
import sys
from pathlib import Path
from typing import IO, Any, NoReturn

import typer

from sentinel.cli.text import clean, complain, paragraph, say
from sentinel.config.patterns import load_patterns
from sentinel.core.alerting.duration import parse_duration
from sentinel.core.diagnosis.case import inspected
from sentinel.core.diagnosis.diagnose import Diagnosis, Material, conclude
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.reader import LogReader
from sentinel.core.diagnosis.traces import Launch

_PIECE = 1 << 18
_SMALL = 64 << 20  # bytes of an inspect or of metrics
HINT = "Give a log (- reads standard input), --inspect FILE, or --metrics twice."


def diagnosis_of(
    log: Path | None,
    exit_code: int | None,
    inspect: Path | None,
    metrics: list[Path],
    apart: str | None,
    patterns: Path | None,
) -> Diagnosis:
    """Of the files that were named; what cannot be read ends the command with status 2."""
    if log is None and inspect is None and len(metrics) < 2:
        usage("there is nothing to read", HINT)
    own = load_patterns(patterns) if patterns is not None else []
    return conclude(
        Material(
            launch=_last_launch(log, own) if log is not None else None,
            exit_code=exit_code,
            inspect=_document(inspect) if inspect is not None else None,
            metrics=[_bytes(file).decode("utf-8", "replace") for file in metrics],
            apart=_seconds(apart),
        )
    )


def show(found: Diagnosis) -> None:
    known = found.known
    sure = f", {found.confidence:.0%} sure" if found.confidence else ""
    say(paragraph(f"{found.cause} ({known.kind}{sure}): {found.says}"))
    for one in found.evidence:
        where = f"{one.source}:{one.line}" if one.line else one.source
        say(paragraph(one.text, first=f"  {where}  ", then="    "))
    say(paragraph(found.advice, first="Do: ", then="    "))
    if known.avoid:
        say(paragraph(known.avoid, first="Mind: ", then="    "))


def usage(message: str, hint: str) -> NoReturn:
    complain(message, hint)
    raise typer.Exit(2)


def _last_launch(log: Path, own: list[Pattern]) -> Launch:
    reader = LogReader(own)
    try:
        if str(log) == "-":
            _read_all(sys.stdin.buffer, reader)
        else:
            with log.open("rb") as file:
                _read_all(file, reader)
    except OSError as error:
        _unreadable(log, error)
    return reader.launch


def _read_all(file: IO[bytes], reader: LogReader) -> None:
    while piece := file.read(_PIECE):
        reader.feed(piece)
    reader.close()


def _document(file: Path) -> Any:
    try:
        document = json.loads(_bytes(file))
    except (ValueError, RecursionError):
        document = None
    if inspected(document) is None:
        usage(f"{clean(file)} is no inspect", "It is what this prints: docker inspect NAME")
    return document


def _bytes(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_SMALL)
    except OSError as error:
        _unreadable(file, error)


def _seconds(apart: str | None) -> float | None:
    if apart is None:
        return None
    try:
        seconds = parse_duration(apart).total_seconds()
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        usage(f"--apart {clean(apart)} is no span of time", "Write it as 15s, 2m or 500ms.")
    return seconds


def _unreadable(file: Path, error: OSError) -> NoReturn:
    usage(f"{clean(file)} cannot be read: {error.strerror or error}", HINT)
