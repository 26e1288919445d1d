"""Numbers with a unit, flags and counts, as operators write them.

Values arrive as texts. Each type here says in its fault what it would have taken.
"""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from sentinel.config.fault import quoted
from sentinel.config.section import wrong

_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
}
_SIZE = re.compile(r"([0-9]{1,15})\s*([KMGT]i?B|B)?")
_PERCENT = re.compile(r"([0-9]{1,3})%")
_LABEL_NAME = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")
_COUNT = re.compile(r"-?[0-9]{1,12}")
_FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _read_size(value: object) -> object:
    found = _SIZE.fullmatch(str(value))
    if found is None:
        raise wrong(f"{quoted(value)} is not a size", allowed="a size such as 500MB or 1GiB")
    return int(found[1]) * _UNITS[found[2] or "B"]


def _show_size(size: int) -> str:
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return f"{size}B"


def _read_percent(value: object) -> object:
    if isinstance(value, int):
        return value
    found = _PERCENT.fullmatch(str(value))
    if found is None or int(found[1]) > 100:
        raise wrong(f"{quoted(value)} is not a percentage", allowed="0% to 100%")
    return int(found[1])


def _read_flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    flag = _FLAGS.get(str(value).lower())
    if flag is None:
        raise wrong(f"{quoted(value)} is not a flag", allowed="true or false")
    return flag


def _read_count(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not _COUNT.fullmatch(str(value)):
        raise wrong(f"{quoted(value)} is not a whole number", allowed="a whole number")
    return int(str(value))


def at_least(least: int) -> Any:
    def check(value: int) -> int:
        if value < least:
            raise wrong(f"{value} is too low", allowed=f"a whole number from {least}")
        return value

    return AfterValidator(check)


def _read_text(value: object) -> object:
    if not isinstance(value, str):
        return value  # pydantic says what it is
    if not value.strip():
        raise wrong("is empty", allowed="a text")
    return str(value)


def _read_label_name(value: object) -> object:
    if not _LABEL_NAME.fullmatch(str(value)):
        raise wrong(f"{quoted(value)} is no label name", allowed="letters, digits and _")
    return str(value)


Size = Annotated[int, BeforeValidator(_read_size), PlainSerializer(_show_size, return_type=str)]
Percent = Annotated[
    int, BeforeValidator(_read_percent), PlainSerializer(lambda p: f"{p}%", return_type=str)
]
Flag = Annotated[bool, BeforeValidator(_read_flag)]
Count = Annotated[int, BeforeValidator(_read_count), at_least(0)]
Positive = Annotated[int, BeforeValidator(_read_count), at_least(1)]
Name = Annotated[str, BeforeValidator(_read_text)]
"""A text that says something."""
LabelName = Annotated[str, BeforeValidator(_read_label_name)]
