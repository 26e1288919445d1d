"""Reads what clients post, as Go reads JSON: null is left out, a key nobody knows is passed over.

Strings come out as text that can be written anywhere: half a character becomes U+FFFD. Times
come out between two years that leave room for reckoning, or some sum would overflow later.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

from sentinel.api.alertmanager.errors import ApiError, missing, unreadable
from sentinel.core.model.moment import moment

FIRST, LAST = datetime(1900, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
_ZERO = datetime(1, 1, 1, tzinfo=UTC)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:\d\d)?", re.ASCII
)
_HALF = re.compile("[\ud800-\udfff]")


def read_json(name: str, body: bytes) -> Any:
    if not body.strip():
        raise missing(name)
    try:
        return json.loads(body.decode("utf-8", "replace"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise unreadable(name, error) from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"invalid number {text}")


class Fields:
    """One object of a body; `name` is the body's, for the sentence of a refusal."""

    def __init__(self, name: str, value: object) -> None:
        if not isinstance(value, dict):
            raise unreadable(name, f"{_kind(value)} is not an object")
        self._name = name
        self._values: Mapping[str, object] = value

    def has(self, key: str) -> bool:
        return self._values.get(key) is not None

    def text(self, key: str) -> str:
        """Empty if it is left out."""
        return self._text(key, self._values.get(key))

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(key, f"{_kind(value)} is not true or false")
        return value

    def items(self, key: str) -> list[object]:
        value = self._values.get(key)
        if not isinstance(value, list):
            raise self._wrong(key, f"{_kind(value)} is not a list")
        return value

    def texts(self, key: str) -> dict[str, str]:
        """A mapping of text to text without its empty values."""
        value = self._values.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(key, f"{_kind(value)} is not an object")
        found = {whole(name): self._text(key, text) for name, text in value.items()}
        return {name: text for name, text in found.items() if text}

    def time(self, key: str) -> datetime | None:
        """None if it is left out, empty, or Go's zero time."""
        given = self.text(key)
        if not given:
            return None
        at = _moment(given)
        if at is None:
            raise self._wrong(key, f"{json.dumps(given)} is no RFC 3339 time")
        return None if at == _ZERO else min(max(at, FIRST), LAST)

    def _text(self, key: str, value: object) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self._wrong(key, f"{_kind(value)} is not a string")
        return whole(value)

    def _wrong(self, key: str, why: str) -> ApiError:
        return unreadable(self._name, f"{key}: {why}")


def _moment(text: str) -> datetime | None:
    if _TIME.fullmatch(text) is None:
        return None
    try:
        return moment(text)
    except (ValueError, OverflowError):
        return None


def whole(text: str) -> str:
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def _kind(value: object) -> str:
    names = {bool: "a flag", int: "a number", float: "a number", str: "a string", list: "a list"}
    return "null" if value is None else names.get(type(value), "an object")
