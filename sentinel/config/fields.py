"""Reads the values of a composed document by hand, strictly, and notes every fault.

For the formats that are Prometheus's and not ours: their messages and their leniences are
fixed elsewhere, so they are spelled out here rather than left to a schema. Each reader
answers something usable also when it has noted a fault, so that one run finds all of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from sentinel.config.document import Entries, Items, Node, Place, Scalar
from sentinel.config.fault import Fault, quoted
from sentinel.config.section import Loc
from sentinel.core.alerting.duration import ALLOWED_DURATION, parse_duration

_SPECIAL = {".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}


@dataclass(frozen=True, slots=True)
class Field:
    """One value: how it is reached, and the node that holds it."""

    at: Loc
    node: Node
    whose: str = ""  # put before messages, like `group "g", rule 1, "Name"`

    @property
    def place(self) -> Place:
        return self.node.place

    @property
    def is_absent(self) -> bool:
        return isinstance(self.node, Scalar) and self.node.is_null


class Reader:
    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, field: Field, message: str, allowed: str) -> None:
        whose = f"{field.whose}: " if field.whose else ""
        self.faults.append(field.place.fault(field.at, whose + message, allowed))

    def mapping(self, field: Field | None, keys: Sequence[str]) -> dict[str, Field]:
        """The values of a mapping that knows only `keys`."""
        entries = self._entries(field)
        if field is None or entries is None:
            return {}
        for key, place in entries.keys.items():
            if key not in keys:
                at = Field((*field.at, key), Scalar(place, key), field.whose)
                self.fault(at, f"unknown field {quoted(key)}", ", ".join(keys))
        return {
            key: Field((*field.at, key), node, field.whose)
            for key, node in entries.values.items()
            if key in keys
        }

    def items(self, field: Field | None) -> list[Field]:
        if field is None or field.is_absent:
            return []
        if not isinstance(field.node, Items):
            self.fault(field, "is not a list", "a list, each item after a dash")
            return []
        return [
            Field((*field.at, index), node, field.whose)
            for index, node in enumerate(field.node.items)
        ]

    def text(self, field: Field | None) -> str:
        """Any single value as it was written; absent is empty, as in Go."""
        if field is None or field.is_absent:
            return ""
        if not isinstance(field.node, Scalar):
            self.fault(field, "is not a single value", "a text")
            return ""
        return field.node.text

    def texts(self, field: Field | None) -> dict[str, Field]:
        """A mapping of any keys to single values; those that are none are left out."""
        entries = self._entries(field)
        if field is None or entries is None:
            return {}
        found: dict[str, Field] = {}
        for key, node in entries.values.items():
            one = Field((*field.at, key), node, field.whose)
            if isinstance(node, Scalar):
                found[key] = one
            else:
                self.fault(one, "is not a single value", "a text")
        return found

    def duration(self, field: Field | None) -> timedelta:
        text = self.text(field)
        if field is None or (not text and field.is_absent):
            return timedelta(0)
        try:
            return parse_duration(text)
        except ValueError as error:
            self.fault(field, str(error), ALLOWED_DURATION)
            return timedelta(0)

    def integer(self, field: Field | None) -> int:
        text = self.text(field)
        if field is None or field.is_absent:
            return 0
        try:
            return int(text, 0)
        except ValueError:
            self.fault(field, f"{quoted(text)} is not a whole number", "a whole number")
            return 0

    def number(self, field: Field | None) -> float:
        text = self.text(field).replace("_", "")
        if field is None or field.is_absent:
            return 0.0
        try:
            return _SPECIAL[text.lower()] if text.lower() in _SPECIAL else _finite(text)
        except ValueError:
            self.fault(field, f"{quoted(text)} is not a number", "a number, .inf, -.inf or .nan")
            return 0.0

    def flag(self, field: Field | None) -> bool:
        text = self.text(field)
        if field is not None and text.lower() not in ("true", "false", ""):
            self.fault(field, f"{quoted(text)} is neither true nor false", "true or false")
        return text.lower() == "true"

    def _entries(self, field: Field | None) -> Entries | None:
        if field is None or field.is_absent:
            return None
        if not isinstance(field.node, Entries):
            self.fault(field, "is not a mapping", "a mapping of keys to values")
            return None
        return field.node


def _finite(text: str) -> float:
    """Python's `inf` and `nan` are words in YAML."""
    value = float(text)
    if math.isnan(value) or (math.isinf(value) and "i" in text.lower()):
        raise ValueError(text)
    return value
