"""What rules read: which metrics, and how far back. The store keeps no more than that.

Also the words of templates count, since a template may run a query whose text is put
together only when an alert fires. A word that is no metric keeps nothing.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sentinel.core.alerting.rule import AlertRule, RecordingRule, Rule, RuleGroup

_ALWAYS = frozenset({"ALERTS", "ALERTS_FOR_STATE"})
_ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")


@dataclass(frozen=True, slots=True)
class Needs:
    names: frozenset[str]
    everything: bool  # some expression has no fixed name
    reach_ms: int

    def keeps(self, name: str) -> bool:
        return self.everything or name in self.names


def needs_of(groups: Iterable[RuleGroup]) -> Needs:
    listed = list(groups)
    rules = [rule for group in listed for rule in group.rules]
    reach = [
        rule.expr.reach_ms + round(group.query_offset.total_seconds() * 1000)
        for group in listed
        for rule in group.rules
    ]
    return Needs(
        frozenset(_ALWAYS.union(*(_names(rule) for rule in rules))),
        any(rule.expr.needs_all for rule in rules),
        max(reach, default=0),
    )


def windows_of(groups: Iterable[RuleGroup], lookback: timedelta) -> dict[str, timedelta]:
    """How much of the past each rule, by its id, judges by: also through what others recorded."""
    rules = [rule for group in groups for rule in group.rules]
    recorded: dict[str, list[RecordingRule]] = {}
    for rule in rules:
        if isinstance(rule, RecordingRule):
            recorded.setdefault(rule.name, []).append(rule)

    def window(rule: Rule, above: frozenset[str]) -> timedelta:
        own = max(timedelta(milliseconds=rule.expr.reach_ms) - lookback, timedelta(0))
        deeper = above | {rule.name}
        causes = [
            cause for name in rule.expr.metric_names - deeper for cause in recorded.get(name, ())
        ]
        return own + max((window(cause, deeper) for cause in causes), default=timedelta(0))

    return {rule.id: window(rule, frozenset()) for rule in rules}


def _names(rule: Rule) -> set[str]:
    if not isinstance(rule, AlertRule):
        return {rule.name, *rule.expr.metric_names}
    actions = [
        action
        for text in (*rule.labels.values(), *rule.annotations.values())
        for action in _ACTION.findall(text)
        if "query" in action
    ]
    return {*rule.expr.metric_names, *(word for one in actions for word in _WORD.findall(one))}
