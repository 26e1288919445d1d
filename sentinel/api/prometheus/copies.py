"""What the loop copies for those who ask: series, rules and targets, each as of one moment.

Everything here belongs to whoever asked for it: nothing is shared with the loop but values
that never change.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.rule import RuleGroup
from sentinel.core.model.labels import Labels
from sentinel.core.model.series import Store


class Description(NamedTuple):
    """What a target says of one of its metrics."""

    type: str = "unknown"
    help: str = ""
    unit: str = ""


class Known(NamedTuple):
    """A series that is there, and the time its samples span."""

    labels: Labels
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The rules in force, and what came of their last evaluation."""

    groups: Sequence[RuleGroup]
    active: Sequence[ActiveAlert]
    failing: Mapping[str, str]  # id of a rule → why
    evaluated_at: datetime | None
    interval: timedelta  # of groups that name none


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraped:
    """A target, and what came of asking it last."""

    labels: Mapping[str, str]
    discovered: Mapping[str, str]
    url: str
    health: Literal["up", "down", "unknown"]
    last_error: str = ""
    at: datetime | None = None
    took: float = 0.0
    descriptions: Mapping[str, Description] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The settings that decide what can be asked for."""

    host: str
    external_labels: Mapping[str, str]
    scrape_interval: timedelta
    scrape_timeout: timedelta
    evaluation_interval: timedelta
    retention: timedelta
    keeps: Callable[[str], bool]  # whether series of this name are kept


class Copies(Protocol):
    """Each may wait for the loop, `within` seconds at the longest.

    Raises `Transient` if the loop has not answered by then.
    """

    def about(self) -> About:
        """Never waits."""
        ...

    def cut(self, names: Collection[str] | None, since_ms: int, within: float) -> Store:
        """These metrics (None: all), from `since_ms` on. Raises `Permanent` if it is too much."""
        ...

    def known(self, names: Collection[str] | None, within: float) -> list[Known]:
        """The series of these metrics (None: all)."""
        ...

    def judged(self, within: float) -> Judged: ...

    def scraped(self, within: float) -> list[Scraped]: ...
