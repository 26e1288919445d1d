"""The route tree: which groups an alert belongs to, and what a group is called.

Keys are Alertmanager's own texts, character by character: they are what the log of what was
told hangs on, so a key that changes its spelling makes everything be told again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.valid import quoted
from sentinel.core.model.labels import Matcher

_ORDER = ("=", "!=", "=~", "!~")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A node of the tree, everything it takes from its parent filled in."""

    receiver: str
    matchers: tuple[Matcher, ...] = ()
    continues: bool = False
    group_by: frozenset[str] = frozenset({"incident"})
    groups_by_all: bool = False
    group_wait: timedelta = timedelta()
    group_interval: timedelta = timedelta(seconds=5)
    repeat_interval: timedelta = timedelta(hours=4)
    mute_time_intervals: tuple[str, ...] = ()
    active_time_intervals: tuple[str, ...] = ()
    routes: tuple["Route", ...] = ()
    text: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", matchers_text(self.matchers))

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(matcher.matches(labels.get(matcher.name, "")) for matcher in self.matchers)

    def group_labels(self, alert: Alert) -> dict[str, str]:
        """What the alerts of its group have in common."""
        if self.groups_by_all:
            return dict(alert.labels)
        matched = alert.matched
        return {name: matched[name] for name in sorted(self.group_by) if name in matched}


class Place(NamedTuple):
    """A route and where it stands in the tree."""

    key: str
    route: Route


def routes_of(root: Route, labels: Mapping[str, str]) -> tuple[Place, ...]:
    """The deepest routes that take these labels, in order; none if the root takes them not."""
    return tuple(_found(Place(root.text, root), labels)) if root.takes(labels) else ()


def receivers_of(root: Route, labels: Mapping[str, str]) -> tuple[str, ...]:
    """Who hears of it, in the order of the tree, each once."""
    return tuple(dict.fromkeys(place.route.receiver for place in routes_of(root, labels)))


def places_of(root: Route) -> Iterable[Place]:
    """Every node of the tree."""
    waiting = [Place(root.text, root)]
    while waiting:
        yield (place := waiting.pop())
        waiting.extend(_children(place))


def group_key(route_key: str, labels: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{name}={quoted(labels[name])}" for name in sorted(labels))
    return f"{route_key}:{{{pairs}}}"


def matchers_text(matchers: Iterable[Matcher]) -> str:
    ordered = sorted(matchers, key=lambda one: (one.name, one.value, _ORDER.index(one.op)))
    return "{" + ",".join(f'{m.name}{m.op}"{_escaped(m.value)}"' for m in ordered) + "}"


def _found(place: Place, labels: Mapping[str, str]) -> list[Place]:
    found: list[Place] = []
    for child in _children(place):
        if child.route.takes(labels):
            found += _found(child, labels)
            if not child.route.continues:
                break
    return found or [place]


def _children(place: Place) -> Iterable[Place]:
    return (Place(f"{place.key}/{child.text}", child) for child in place.route.routes)


def _escaped(text: str) -> str:
    """As OpenMetrics does."""
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
