"""One step of a rule's alerts: what its expression returned now, against what stood before.

Prometheus's semantics to the letter: an alert is pending until it has been active for `for`,
fires, stays firing for `keep_firing_for` after its cause has gone, and is remembered as
resolved for a quarter of an hour. Its identity is its labels after templating; two results
with one identity are an error of the rule, and an error changes nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from sentinel.core.alerting.rule import AlertRule, RuleError
from sentinel.core.promql import Sample

RESOLVED_RETENTION = timedelta(minutes=15)

State = Literal["pending", "firing", "resolved"]
Kind = Literal["pending", "firing", "resolved", "dropped"]
Expand = Callable[[str, Mapping[str, str], float], str]
"""(template, labels of the sample, its value) → text. Never raises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveAlert:
    key: str  # the rule and these labels; the same after a restart
    alertname: str
    labels: Mapping[str, str]  # with alertname
    annotations: Mapping[str, str]
    state: State
    value: float
    active_at: datetime
    fired_at: datetime | None = None
    resolved_at: datetime | None = None
    last_seen_at: datetime  # the last evaluation that judged it
    keep_since: datetime | None = None  # firing although its cause has gone, since then
    rule: str  # the rule's id
    group: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True)
class Transition:
    kind: Kind  # dropped: was pending, and went away
    alert: ActiveAlert


class Unread(Mapping[str, str]):
    """Annotations that are written when somebody reads them: at most evaluations nobody does.

    Read them on the thread that evaluates; `dict()` of them may go anywhere.
    """

    __slots__ = ("_expand", "_labels", "_read", "_texts", "_value")

    def __init__(
        self,
        texts: Mapping[str, str],
        labels: Mapping[str, str],
        value: float,
        expand: Expand,
    ) -> None:
        self._texts, self._labels, self._value, self._expand = texts, labels, value, expand
        self._read: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._read:
            self._read[name] = self._expand(self._texts[name], self._labels, self._value)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __repr__(self) -> str:
        return repr(dict(self))


Step = tuple[ActiveAlert | None, Kind | None]  # what it is now, and what happened if anything


def advance(
    rule: AlertRule,
    active: Mapping[str, ActiveAlert],
    vector: Sequence[Sample],
    now: datetime,
    *,
    expand: Expand,
    unsettled: bool = False,
) -> tuple[dict[str, ActiveAlert], list[Transition]]:
    """The alerts of `rule` after this evaluation, and what changed; raises `RuleError`.

    `unsettled`: the series do not yet reach back as far as the rule looks, so an alert that
    is not there proves nothing, and stays as it was.
    """
    seen = _seen(rule, vector, now, expand)
    after: dict[str, ActiveAlert] = {}
    transitions: list[Transition] = []
    for key in {**active, **seen}:
        was = active.get(key)
        if key in seen:
            alert, kind = _present(rule, was, seen[key], now)
        else:
            alert, kind = _absent(rule, active[key], now, unsettled=unsettled)
        if alert is not None:
            after[key] = alert
        changed = alert or was
        if kind is not None and changed is not None:
            transitions.append(Transition(kind, changed))
    return after, transitions


def unobserved(alert: ActiveAlert, now: datetime) -> ActiveAlert:
    """`alert`, when nobody could judge it since it was last seen: that time does not count."""
    gap = max(now - alert.last_seen_at, timedelta(0))
    if alert.state == "pending":
        return replace(alert, active_at=alert.active_at + gap, last_seen_at=now)
    if alert.state == "firing":
        kept = None if alert.keep_since is None else alert.keep_since + gap
        return replace(alert, keep_since=kept, last_seen_at=now)
    return alert


def _seen(
    rule: AlertRule, vector: Sequence[Sample], now: datetime, expand: Expand
) -> dict[str, ActiveAlert]:
    seen: dict[str, ActiveAlert] = {}
    for sample in vector:
        given = dict(sample.labels)
        labels = {name: value for name, value in given.items() if name != "__name__"}
        labels.update(
            (name, expand(text, given, sample.value)) for name, text in rule.labels.items()
        )
        labels["alertname"] = rule.name
        labels = {name: labels[name] for name in sorted(labels) if labels[name]}
        key = rule.id + show_labels({n: v for n, v in labels.items() if n != "alertname"})
        if key in seen:
            raise RuleError(
                "vector contains metrics with the same labelset after applying alert labels"
            )
        seen[key] = ActiveAlert(
            key=key,
            alertname=rule.name,
            labels=labels,
            annotations=Unread(rule.annotations, given, sample.value, expand),
            state="pending",
            value=sample.value,
            active_at=now,
            last_seen_at=now,
            rule=rule.id,
            group=rule.group,
            file=rule.file,
        )
    return seen


def _present(rule: AlertRule, was: ActiveAlert | None, seen: ActiveAlert, now: datetime) -> Step:
    known = was if was is not None and was.state != "resolved" else None
    alert = seen
    if known is not None:
        alert = replace(
            known,
            annotations=seen.annotations,
            value=seen.value,
            last_seen_at=now,
            keep_since=None,
            group=rule.group,
            file=rule.file,
        )
    if alert.state == "pending" and now - alert.active_at >= rule.for_:
        return replace(alert, state="firing", fired_at=now), "firing"
    return alert, "pending" if known is None else None


def _absent(rule: AlertRule, was: ActiveAlert, now: datetime, *, unsettled: bool) -> Step:
    if was.state == "resolved":
        forgotten = was.resolved_at is None or now - was.resolved_at > RESOLVED_RETENTION
        return (None if forgotten else was), None
    if unsettled:
        return unobserved(was, now), None
    if was.state == "pending":
        return None, "dropped"
    kept_since = was.keep_since or now
    if rule.keep_firing_for and now - kept_since < rule.keep_firing_for:
        return replace(was, keep_since=kept_since, last_seen_at=now), None
    return replace(
        was, state="resolved", resolved_at=now, keep_since=None, last_seen_at=now
    ), "resolved"


def show_labels(labels: Mapping[str, str]) -> str:
    """`{a="b", c="d"}`, by name."""
    return "{" + ", ".join(f"{name}={_quoted(labels[name])}" for name in sorted(labels)) + "}"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
