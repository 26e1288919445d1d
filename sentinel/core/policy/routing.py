"""Which receivers hear of a set of labels: Alertmanager's route tree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sentinel.core.model.labels import Matcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    receiver: str
    matchers: tuple[Matcher, ...] = ()
    continues: bool = False
    routes: Sequence["Route"] = field(default_factory=tuple)

    def takes(self, labels: Mapping[str, str]) -> bool:
        return all(matcher.matches(labels.get(matcher.name, "")) for matcher in self.matchers)


def receivers_of(root: Route, labels: Mapping[str, str]) -> tuple[str, ...]:
    """The receivers of the deepest matching routes, in order, each once."""
    found: dict[str, None] = {}
    _descend(root, labels, found)
    return tuple(found)


def _descend(route: Route, labels: Mapping[str, str], found: dict[str, None]) -> None:
    deeper = False
    for child in route.routes:
        if not child.takes(labels):
            continue
        deeper = True
        _descend(child, labels, found)
        if not child.continues:
            break
    if not deeper:
        found[route.receiver] = None
