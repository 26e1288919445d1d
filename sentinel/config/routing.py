"""Which alerts go to whom, and which are kept quiet: Alertmanager's routes and inhibitions."""

from datetime import timedelta
from typing import Self

from pydantic import Field, model_validator

from sentinel.config.durations import Duration, Interval
from sentinel.config.matchers import EqualityMap, Matchers, PatternMap
from sentinel.config.quantities import Flag, Name
from sentinel.config.receivers import Receiver
from sentinel.config.section import Section, wrong
from sentinel.core.model.labels import Matcher

LOG = "log"
"""The receiver that is always there: Sentinel's own log."""


class Route(Section):
    """A node of the routing tree. What a child leaves out it takes from its parent."""

    receiver: Name | None = Field(default=None, examples=["oncall"])
    """Receiver that is told. Default of the root: the only receiver, else `log`."""

    group_by: tuple[Name, ...] | None = Field(default=None, examples=[["incident"]])
    """Labels whose alerts come in one message; `incident` groups by incident, `...` not at all."""

    group_wait: Duration | None = Field(default=None, examples=["0s"])
    """How long a new group waits for more alerts before the first message."""

    group_interval: Interval | None = Field(default=None, examples=["5s"])
    """How long a changed group waits before the next message."""

    repeat_interval: Interval | None = Field(default=None, examples=["4h"])
    """How long an unchanged group waits before it is told again."""

    matchers: Matchers = Field(default=(), examples=[['severity="critical"']])
    """What an alert must look like; all must match."""

    match: EqualityMap = ()
    """Older form of `matchers`: label → value."""

    match_re: PatternMap = ()
    """Older form of `matchers`: label → regular expression, anchored at both ends."""

    continue_: Flag = Field(default=False, alias="continue")
    """Look also at the routes after this one."""

    mute_time_intervals: tuple[Name, ...] = Field(default=(), examples=[["nights"]])
    """Times at which this route sends nothing."""

    active_time_intervals: tuple[Name, ...] = Field(default=(), examples=[["nights"]])
    """Times outside of which this route sends nothing."""

    routes: tuple["Route", ...] = ()
    """Routes tried before this one; the first that matches takes the alert."""

    @property
    def all_matchers(self) -> tuple[Matcher, ...]:
        return (*self.matchers, *self.match, *self.match_re)

    @model_validator(mode="after")
    def _groups_once(self) -> Self:
        labels = self.group_by or ()
        for index, label in enumerate(labels):
            if label in labels[:index]:
                raise wrong(
                    "the same label twice", allowed="each label once", at=("group_by", index)
                )
        if "..." in labels and len(labels) > 1:
            raise wrong("'...' with other labels", allowed="['...'] alone", at=("group_by",))
        return self

    def filled(self, parent: "Route") -> "Route":
        """Fill in what is left out, here and in the children."""
        mine: dict[str, object] = {
            name: getattr(parent, name) if getattr(self, name) is None else getattr(self, name)
            for name in _INHERITED
        }
        here = self.model_copy(update=mine)
        below = tuple(route.inheriting().filled(here) for route in self.routes)
        return here.model_copy(update={"routes": below})

    def inheriting(self) -> "Route":
        """Below the root an empty `group_by` is one that is left out, as in Alertmanager."""
        return self if self.group_by else self.model_copy(update={"group_by": None})


_INHERITED = ("receiver", "group_by", "group_wait", "group_interval", "repeat_interval")

DEFAULT_ROUTE = Route(
    receiver=LOG,
    group_by=("incident",),
    group_wait=timedelta(),
    group_interval=timedelta(seconds=5),
    repeat_interval=timedelta(hours=4),
)


def root_route(route: Route, receivers: tuple[Receiver, ...]) -> Route:
    """The route with every default in place: one receiver implies who is told."""
    name = receivers[0].name if len(receivers) == 1 else LOG
    return route.filled(DEFAULT_ROUTE.model_copy(update={"receiver": name}))


class InhibitRule(Section):
    """While an alert that matches the source fires, those that match the target keep quiet."""

    name: str | None = None
    """What it is called in metrics."""

    source_matchers: Matchers = Field(default=(), examples=[['severity="critical"']])
    """The alert that keeps others quiet."""

    source_match: EqualityMap = ()
    """Older form of `source_matchers`: label → value."""

    source_match_re: PatternMap = ()
    """Older form of `source_matchers`: label → regular expression."""

    target_matchers: Matchers = Field(default=(), examples=[['severity="warning"']])
    """The alerts that are kept quiet."""

    target_match: EqualityMap = ()
    """Older form of `target_matchers`: label → value."""

    target_match_re: PatternMap = ()
    """Older form of `target_matchers`: label → regular expression."""

    equal: tuple[Name, ...] = Field(default=(), examples=[["target"]])
    """Labels that must be the same on both."""

    @property
    def source(self) -> tuple[Matcher, ...]:
        return (*self.source_matchers, *self.source_match, *self.source_match_re)

    @property
    def target(self) -> tuple[Matcher, ...]:
        return (*self.target_matchers, *self.target_match, *self.target_match_re)
