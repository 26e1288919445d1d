"""Which remedy a firing alert asks for, and which rung of its ladder comes next.

A rung that was carried out and failed is not tried again in the same incident; the ladder
ends with a person.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sentinel.core.model.intent import Action, Intent, Mode, Outcome
from sentinel.core.model.labels import Matcher

_SPENT = frozenset({Outcome.FAILED, Outcome.ROLLED_BACK, Outcome.REJECTED, Outcome.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One step of a ladder, with what was set for it (`drain`, `to`, `floor`, …)."""

    action: Action
    mode: Mode | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    match: tuple[Matcher, ...]
    ladder: tuple[Rung, ...]
    mode: Mode | None = None
    shipped: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(matcher.matches(labels.get(matcher.name, "")) for matcher in self.match)


SHIPPED: tuple[Remedy, ...] = (
    Remedy(
        match=(Matcher(name="alertname", op="=~", value="VllmContainerExited|VllmEngineHung"),),
        ladder=(Rung(action=Action.RESTART), Rung(action=Action.PAGE)),
        shipped=True,
    ),
)
"""Alone, Sentinel acts only on an unexpected exit and a confirmed hang."""


def remedy_for(labels: Mapping[str, str], remedies: Sequence[Remedy]) -> Remedy | None:
    """The first remedy whose matchers all match, the operator's before the shipped ones."""
    return next((remedy for remedy in (*remedies, *SHIPPED) if remedy.matches(labels)), None)


def next_rung(remedy: Remedy, tried: Sequence[Intent]) -> Rung | None:
    """The first rung not yet tried in vain; `tried` are the intents of the same incident."""
    spent = [intent.wish.action for intent in tried if intent.outcome in _SPENT]
    for rung in remedy.ladder:
        if rung.action not in spent:
            return rung
        spent.remove(rung.action)
    return None
