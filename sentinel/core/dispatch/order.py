"""Alertmanager's order: of the alerts in a message, and of groups in a list."""

from collections.abc import Mapping
from functools import cmp_to_key
from typing import Any

_FIRST = ("job", "instance")


def alert_order(labels: Mapping[str, str]) -> Any:
    """A sort key: by job, by instance, then by all labels."""
    first = [(name not in labels, labels.get(name, "")) for name in _FIRST]
    return first, label_order(labels)


def label_order(labels: Mapping[str, str]) -> Any:
    """A sort key: fewer labels first; then by the first label in which they differ."""
    return len(labels), _by_difference(sorted(labels.items()))


@cmp_to_key
def _by_difference(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> int:
    for (name, value), (other_name, other_value) in zip(one, other, strict=True):
        if name != other_name:
            return 1 if name < other_name else -1  # who lacks a label comes first
        if value != other_value:
            return -1 if value < other_value else 1
    return 0
