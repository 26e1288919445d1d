"""Rules that a Prometheus elsewhere evaluates: which ones, and what its answers mean here.

It is asked only what it can know: nothing of `sentinel_*`, of our ALERTS, or of what our own
recording rules wrote. No answer is not an empty answer: a rule without one stands as it was,
and an alert that is missing from a partial answer is not gone.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from sentinel.core.alerting.rule import RecordingRule, Rule, RuleGroup
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.labels import labels_of
from sentinel.core.promql import Sample

OURS = "sentinel_"
_ALERTS = frozenset({"ALERTS", "ALERTS_FOR_STATE"})


class Question(NamedTuple):
    expression: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Answer:
    """What an expression gave, and what the other side warned of while it looked."""

    vector: tuple[Sample, ...]
    warnings: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether series may be missing. PromQL's own remarks are about the expression only."""
        return any(not text.startswith("PromQL") for text in self.warnings)


@dataclass(frozen=True, slots=True)
class Answers:
    """One outcome a question, as far as the other side could be asked."""

    outcomes: Mapping[Question, Answer | SentinelError]
    broken: SentinelError | None = None  # why the rest has no outcome


@dataclass(frozen=True, slots=True)
class Reading:
    """A rule's vector, from outside."""

    vector: Sequence[Sample]
    at: datetime  # the instant of the evaluation, before the group's offset
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class FromOutside:
    """What one evaluation is given from outside. A rule that is not in here is evaluated here."""

    readings: Mapping[str, Reading | str | None] = field(default_factory=dict)
    """By rule id; or in words why it has none; or None: nothing new came, it stands as it was."""
    unproven: Collection[str] = ()
    """Rules evaluated here over series from outside that are not fresh: absence proves nothing."""


NOTHING = FromOutside()


@dataclass(frozen=True, slots=True)
class Division:
    asked: tuple[RuleGroup, ...]  # with the rules that are asked outside, and no others
    causes: Mapping[str, frozenset[str]]  # rule evaluated here → asked ones it builds upon
    kept: tuple[str, ...]  # why a group stays although it reads nothing of ours, in sentences


def divide(groups: Sequence[RuleGroup]) -> Division:
    """Groups that read what only we know stay; of the others, rules over recorded series stay.

    A rule that joins recorded series with others can be evaluated in neither place unless its
    whole group stays.
    """
    recorded = _recorded(groups)
    staying = _staying(groups, recorded)
    asked: list[RuleGroup] = []
    for place, group in enumerate(groups):
        rules = tuple(r for r in group.rules if not recorded & r.expr.metric_names)
        if place not in staying and rules:
            asked.append(replace(group, rules=rules))
    return Division(tuple(asked), _causes(groups, asked), tuple(filter(None, staying.values())))


def adopt(sample: Sample, *, target_label: str, host: str) -> Sample | None:
    """The sample as one of ours: with `target` and `host`. None if it is of another host.

    The label that names the target there stays, since templates may read it.
    """
    labels = dict(sample.labels)
    if labels.get("host", host) != host:
        return None
    target = labels.get(target_label)
    if not target:
        return sample
    if labels.get("target", target) != target:
        labels["exported_target"] = labels["target"]
    labels.update(target=target, host=host)
    return Sample(labels_of(labels), sample.value)


def _staying(groups: Sequence[RuleGroup], recorded: frozenset[str]) -> dict[int, str]:
    """The places of groups that stay, and why if that has to be said."""
    staying = {place: "" for place, group in enumerate(groups) if _reads_ours(group)}
    while True:
        mine = _recorded(groups[place] for place in staying)
        others = {p: group for p, group in enumerate(groups) if p not in staying}
        more = {
            place: ""
            for place, group in others.items()
            if any(mine & rule.expr.metric_names for rule in group.rules)
        } or {
            place: f"group {group.name} is evaluated here: its rule {rule.name} joins what a "
            "recording rule wrote with series of the Prometheus"
            for place, group in others.items()
            for rule in group.rules
            if _is_mixed(rule, recorded)
        }
        if not more:
            return staying
        staying |= more


def _recorded(groups: Iterable[RuleGroup]) -> frozenset[str]:
    return frozenset(r.name for g in groups for r in g.rules if isinstance(r, RecordingRule))


def _reads_ours(group: RuleGroup) -> bool:
    return any(
        name.startswith(OURS) or name in _ALERTS
        for rule in group.rules
        for name in rule.expr.metric_names
    ) or any(rule.expr.needs_all and OURS in rule.expr.text for rule in group.rules)


def _is_mixed(rule: Rule, recorded: frozenset[str]) -> bool:
    names = rule.expr.metric_names
    return bool(names & recorded) and (bool(names - recorded) or rule.expr.needs_all)


def _causes(groups: Iterable[RuleGroup], asked: Iterable[RuleGroup]) -> dict[str, frozenset[str]]:
    """What each rule evaluated here builds upon, through any number of others."""
    elsewhere = {rule.id for group in asked for rule in group.rules}
    rules = [rule for group in groups for rule in group.rules]
    writers: dict[str, set[str]] = {}
    for rule in rules:
        for name in {rule.name} if isinstance(rule, RecordingRule) else _ALERTS:
            writers.setdefault(name, set()).add(rule.id)
    reads = {
        rule.id: set().union(
            *(
                ids
                for name, ids in writers.items()
                if name in rule.expr.metric_names or rule.expr.needs_all
            )
        )
        for rule in rules
    }
    found: dict[str, frozenset[str]] = {}
    for rule in rules:
        if rule.id not in elsewhere:
            upon = _reachable(rule.id, reads) & elsewhere
            if upon:
                found[rule.id] = frozenset(upon)
    return found


def _reachable(start: str, reads: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = [start]
    while ahead:
        new = reads[ahead.pop()] - seen
        seen |= new
        ahead.extend(new)
    return seen
