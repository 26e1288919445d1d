"""Label sets and matchers: what names a series, and what asks for some of them.

A label set is a plain tuple sorted by name, so that equal sets are equal, hash alike and
can be shared between threads. A label with an empty value is no label: build label sets
with `labels_of`, never by hand, or two equal sets will differ.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from sentinel.core.model.pattern import compile_pattern

NAME = "__name__"

Labels = tuple[tuple[str, str], ...]
MatchOp = Literal["=", "!=", "=~", "!~"]


def labels_of(mapping: Mapping[str, str]) -> Labels:
    """Make a label set of `mapping`."""
    return tuple(sorted((name, value) for name, value in mapping.items() if value))


def without(labels: Labels, *names: str) -> Labels:
    return tuple(pair for pair in labels if pair[0] not in names)


def only(labels: Labels, *names: str) -> Labels:
    return tuple(pair for pair in labels if pair[0] in names)


def value_of(labels: Labels, name: str) -> str:
    """The value of a label; empty if there is no such label."""
    for own, value in labels:
        if own == name:
            return value
    return ""


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition on one label, as in `{name=~"value"}`. An absent label is empty.

    Raises `ValueError` if the value of `=~` or `!~` is not a pattern Prometheus would take.
    """

    name: str
    op: MatchOp
    value: str
    matches: Callable[[str], bool] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "matches", _test(self.op, self.value))


def _test(op: str, value: str) -> Callable[[str], bool]:
    if op == "=":
        return value.__eq__
    if op == "!=":
        return value.__ne__
    if op not in ("=~", "!~"):
        raise ValueError(f"{op!r} is no match operator")
    pattern = compile_pattern(value)
    if op == "=~":
        return lambda text: pattern.fullmatch(text) is not None
    return lambda text: pattern.fullmatch(text) is None
