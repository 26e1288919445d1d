"""Patterns of a place's own for the reader of logs, from a YAML file; strict, all faults at once.

`match` is one of Python's regular expressions and is tried on every line, before those that
are shipped, so one that matches nothing in particular would explain everything.
"""

import re
from collections.abc import Iterable
from glob import glob
from pathlib import Path

from sentinel.config.document import Entries, Place, compose
from sentinel.config.fault import ConfigRefused, Fault, quoted
from sentinel.config.fields import Field, Reader
from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.pattern import Pattern, Rank

_KEYS = ("cause", "match", "says", "advice")
_EXPRESSION = "one of Python's regular expressions, which matches no empty line"


def load_all_patterns(globs: Iterable[str]) -> list[Pattern]:
    """Of every file that is there, by name; raises `ConfigRefused` with all faults."""
    found: list[Pattern] = []
    faults: list[Fault] = []
    for name in (name for each in globs for name in sorted(glob(each))):  # noqa: PTH207 - the pattern is absolute
        try:
            found += load_patterns(Path(name))
        except ConfigRefused as refused:
            faults += refused.faults
    if faults:
        raise ConfigRefused(tuple(faults))
    return found


def load_patterns(file: Path) -> list[Pattern]:
    """The patterns in order; raises `ConfigRefused`."""
    start = Place(file, 1, 1)
    try:
        content = file.read_bytes()
    except OSError as error:
        says = f"cannot be read: {error.strerror or error}"
        raise ConfigRefused((start.fault((), says, "a file that may be read"),)) from None
    root, faults = compose(content, file)
    reader = Reader()
    listed = reader.mapping(Field((), root), ("patterns",)).get("patterns") if root.keys else None
    if not faults and (listed is None or listed.is_absent):
        faults = [*faults, start.fault((), "holds no patterns", "patterns: a list")]
    found = [_pattern(reader, item) for item in reader.items(listed)]
    wrong: list[Fault] = [*faults, *reader.faults]
    if wrong:
        raise ConfigRefused(tuple(sorted(wrong, key=lambda one: (one.line, one.column))))
    return [pattern for pattern in found if pattern is not None]


def _pattern(read: Reader, item: Field) -> Pattern | None:
    keys = read.mapping(item, _KEYS)
    if not isinstance(item.node, Entries):
        return None
    cause = read.text(keys.get("cause"))
    if cause not in CAUSES:
        says = f"{quoted(cause)} is no cause" if cause else "cause is missing"
        read.fault(keys.get("cause", item), says, ", ".join(CAUSES))
    match = _expression(read, keys.get("match"), item)
    if cause not in CAUSES or match is None:
        return None
    return Pattern(
        cause=cause,
        match=match,
        rank=Rank.OPERATOR,
        says=read.text(keys.get("says")),
        advice=read.text(keys.get("advice")),
    )


def _expression(read: Reader, field: Field | None, item: Field) -> re.Pattern[str] | None:
    text = read.text(field)
    where = field if field is not None else item
    if not text:
        read.fault(where, "match is missing", _EXPRESSION)
        return None
    try:
        match = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        read.fault(where, f"match cannot be read: {error}", _EXPRESSION)
        return None
    if match.search(""):
        read.fault(where, "match finds the empty text", _EXPRESSION)
        return None
    return match
