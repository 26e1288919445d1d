"""Alerting and recording rules, as values.

A rule's `id` names it across reloads and restarts: group, name and, where a group holds
several of one name, which of them. The file and the expression are no part of it, so that
an edited rule keeps the alerts it already has, as in Prometheus.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from sentinel.core.promql import Expression

Compat = Literal[2, 3]
"""Whose language a file is in: that of Prometheus 2, or of Prometheus 3."""


class RuleError(Exception):
    """A rule could not be carried out this time. What it held before still stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRule:
    name: str
    expr: Expression
    for_: timedelta = timedelta(0)
    keep_firing_for: timedelta = timedelta(0)
    labels: Mapping[str, str] = field(default_factory=dict)  # templates
    annotations: Mapping[str, str] = field(default_factory=dict)  # templates
    group: str = ""
    file: str = ""
    line: int = 0
    ordinal: int = 1  # which of its name in its group
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", identify(self.group, self.name, self.ordinal))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    name: str
    expr: Expression
    labels: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    file: str = ""
    line: int = 0
    ordinal: int = 1
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", identify(self.group, self.name, self.ordinal))


Rule = AlertRule | RecordingRule


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    name: str
    file: str = ""
    interval: timedelta | None = None  # None: the global evaluation interval
    query_offset: timedelta = timedelta(0)
    limit: int = 0  # most series or alerts of one rule; 0 is no limit
    rules: tuple[Rule, ...] = ()


def identify(group: str, name: str, ordinal: int) -> str:
    return f"{group}/{name}" if ordinal == 1 else f"{group}/{name}#{ordinal}"
