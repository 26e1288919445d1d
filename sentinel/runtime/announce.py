"""Turns what is due, and what was decided, into messages owed to channels.

Machines get one message for each kind of thing that happened; people get one message that
says it all. What is owed is written in the same transaction as the change it tells of.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sentinel.core.dispatch.alert import INCIDENT, Alert
from sentinel.core.dispatch.dispatcher import Due
from sentinel.core.model.incident import Incident, incident_number
from sentinel.core.model.intent import Outcome
from sentinel.core.model.message import AlertFacts, DecisionFacts, Kind, Notice
from sentinel.core.model.moment import stamp
from sentinel.core.policy.subject import SEVERITIES
from sentinel.runtime.act import Settled
from sentinel.runtime.casebook import Case
from sentinel.runtime.dispatch import Addresses, Dispatch
from sentinel.runtime.plan import Plan
from sentinel.runtime.resolutions import Decision
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.store.picture import incident_json


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing worth telling one channel, of one group of alerts."""

    audience: Due
    incident: Incident | None
    kind: Kind
    headline: str = ""
    decision: DecisionFacts | None = None
    facts: Mapping[str, str] | None = None

    @property
    def number(self) -> int | None:
        return self.incident.number if self.incident else None


class Announcer:
    def __init__(
        self,
        memory: Memory,
        dispatch: Dispatch,
        plan: Plan,
        addresses: Addresses,
    ) -> None:
        self._memory, self._dispatch = memory, dispatch
        self.plan = plan
        self.use(addresses)

    def use(self, addresses: Addresses) -> None:
        self._machines = {
            address.channel
            for channels in addresses.values()
            for address in channels
            if address.is_machine
        }

    def tell(
        self,
        dues: Sequence[Due],
        decisions: Sequence[Decision],
        settled: Sequence[tuple[Settled, Case]],
        targets: Mapping[str, Target],
        now: datetime,
    ) -> None:
        told: dict[tuple[str, int | None], list[News]] = {}
        for news in self._news(dues, decisions, settled, now):
            told.setdefault((news.audience.channel, news.number), []).append(news)
        for (channel, number), of_one in told.items():
            for news in of_one if channel in self._machines else _in_one(of_one):
                self._memory.outbox.owe(channel, self._notice(news, targets), number, now)

    def _news(
        self,
        dues: Sequence[Due],
        decisions: Sequence[Decision],
        settled: Sequence[tuple[Settled, Case]],
        now: datetime,
    ) -> Iterable[News]:
        made = {decision.case.incident.number: decision for decision in decisions}
        fresh = set[int]()
        over = list[News]()
        for due in dues:
            news = self._due(due, made)
            if news is None:
                continue
            if news.kind == "resolved":
                over.append(news)
                continue
            if due.new and news.number is not None:
                fresh.add(news.number)
            yield news
        for outcome, case in settled:
            for audience in self._dispatch.audience(case, now):
                yield _outcome(outcome, case, audience)
        for decision in decisions:
            if decision.kind == "called" and decision.case.incident.number in fresh:
                continue
            for audience in self._dispatch.audience(decision.case, now):
                yield _decided(decision, audience)
        yield from over

    def _due(self, due: Due, made: Mapping[int, Decision]) -> News | None:
        incident = self._incident_of(due)
        if due.is_repeat and incident is not None and incident.acknowledged_by:
            return None
        if all(resolved for _, resolved in due.alerts):
            headline = _lasted(incident) if INCIDENT in due.group_labels else ""
            return News(audience=due, incident=incident, kind="resolved", headline=headline)
        decision = made.get(incident.number) if incident and due.new else None
        return News(
            audience=due,
            incident=incident,
            kind="alert",
            headline=_headline(due),
            decision=_decision(decision) if decision and decision.kind != "called" else None,
        )

    def _incident_of(self, due: Due) -> Incident | None:
        """That of the loudest of its alerts, where a group holds several."""
        ranked = sorted(due.alerts, key=lambda told: (told[1], -_rank(told[0])))
        for alert, _ in ranked:
            if (number := incident_number(alert.incident or "")) is not None:
                return self._memory.incidents.get(number)
        return None

    def _notice(self, news: News, targets: Mapping[str, Target]) -> Notice:
        incident, audience = news.incident, news.audience
        about = incident_json(self._memory.db, incident.number) if incident else None
        if about is not None:
            about.pop("timeline", None)
            about["diagnosis"] = _shared(about["diagnosis"], share_logs=self.plan.share_logs)
        facts = {"host": self.plan.host}
        if incident is not None:
            facts |= _facts(incident, targets)
        if about is not None:
            facts |= _of_log(about["diagnosis"])
        return Notice(
            kind=news.kind,
            group_key=audience.group_key,
            group_labels=dict(audience.group_labels),
            alerts=tuple(
                alert_facts(self._dispatch.latest(alert), audience.group_labels, is_resolved)
                for alert, is_resolved in audience.alerts
            ),
            incident=about,
            decision=news.decision,
            headline=news.headline,
            facts={**facts, **(news.facts or {})},
        )


def alert_facts(alert: Alert, group_labels: Mapping[str, str], is_resolved: bool) -> AlertFacts:  # noqa: FBT001 - as the lifecycle pairs them
    incident = alert.incident if INCIDENT in group_labels else None
    facts = AlertFacts(
        status="resolved" if is_resolved else "firing",
        labels={**alert.labels, INCIDENT: incident} if incident else dict(alert.labels),
        annotations=dict(alert.annotations),
        starts_at=stamp(alert.starts_at),
        fingerprint=alert.fingerprint,
        generator_url=alert.generator_url,
    )
    if is_resolved and alert.ends_at is not None:
        return replace(facts, ends_at=stamp(alert.ends_at))
    return facts


def _headline(due: Due) -> str:
    firing = [alert for alert, is_resolved in due.alerts if not is_resolved]
    if due.is_repeat:
        since = min(alert.starts_at for alert in firing)
        return f"still so since {since:%Y-%m-%d %H:%M:%S} UTC: {_summary(firing)}"
    if due.new:
        return _summary([alert for alert in firing if alert.fingerprint in due.new])
    return f"{len(due.alerts) - len(firing)} no longer; still so: {_summary(firing)}"


def _summary(alerts: Sequence[Alert]) -> str:
    loudest = max(alerts, key=_rank)
    return loudest.annotations.get("summary") or loudest.labels.get("alertname", "?")


def _rank(alert: Alert) -> int:
    severity = alert.labels.get("severity", "")
    return SEVERITIES.index(severity) if severity in SEVERITIES else 0


def _lasted(incident: Incident | None) -> str:
    if incident is None or incident.resolved_at is None:
        return "resolved"
    span = incident.resolved_at - incident.opened_at
    return f"resolved, after {int(span.total_seconds())} s"


def _decided(decision: Decision, audience: Due) -> News:
    facts = {"intent": decision.intent.id} if decision.intent else {}
    told: DecisionFacts | None = _decision(decision)
    kind: Kind = "action"
    match decision.kind:
        case "held":
            kind = "held"
            headline = f"would {decision.action}, held by {decision.guard}: {decision.because}"
        case "proposed":
            kind = "approval"
            headline = f"may Sentinel {decision.action} it? {decision.because}"
        case "called":
            kind, told = "alert", None
            headline = f"a person is needed: {decision.because}"
        case _:
            headline = f"{decision.action}, because {decision.because}"
    return News(
        audience=audience,
        incident=decision.case.incident,
        kind=kind,
        headline=headline,
        decision=told,
        facts=facts,
    )


def _outcome(settled: Settled, case: Case, audience: Due) -> News:
    action = settled.intent.wish.action
    return News(
        audience=audience,
        incident=case.incident,
        kind="action",
        headline=f"{action} {settled.outcome}: {settled.because}",
        decision=DecisionFacts(
            action=action,
            would=settled.outcome in (Outcome.REFUSED, Outcome.EXPIRED, Outcome.REJECTED),
            guard=None,
            because=settled.because,
        ),
        facts={"intent": settled.intent.id, "outcome": settled.outcome},
    )


def _decision(decision: Decision) -> DecisionFacts:
    return DecisionFacts(
        action=decision.action,
        would=decision.kind != "reserved",
        guard=decision.guard,
        because=decision.because,
    )


def _in_one(told: Sequence[News]) -> Sequence[News]:
    """For people: an alert and what is decided about it are one message."""
    alert = next((news for news in told if news.kind == "alert" and news.decision), None)
    if alert is None:
        return told
    rest = [
        news
        for news in told
        if news is not alert and not (news.kind in ("held", "action") and not _is_outcome(news))
    ]
    return [alert, *rest]


def _is_outcome(news: News) -> bool:
    return bool(news.facts and "outcome" in news.facts)


def _shared(diagnosis: Mapping[str, Any], *, share_logs: bool) -> dict[str, Any]:
    """What may leave the host: no line of a log, nor a piece of one, unless that is wanted."""
    told = dict(diagnosis)
    shared = told.pop("advice_shared", "")
    if told and not share_logs:
        told["advice"] = shared
        told["evidence"] = [one for one in told.get("evidence", ()) if one["source"] != "log"]
    return told


def _of_log(diagnosis: Mapping[str, Any]) -> dict[str, str]:
    lines = [str(one["text"]) for one in diagnosis.get("evidence", ()) if one["source"] == "log"]
    return {"log": lines[0]} if lines else {}


def _facts(incident: Incident, targets: Mapping[str, Target]) -> dict[str, str]:
    facts = {"since": stamp(incident.opened_at), "severity": incident.severity}
    if incident.subject.kind == "target":
        facts["target"] = incident.subject.name
        target = targets.get(incident.subject.name)
        if target is not None:
            facts |= {"state": target.standing.state, "because": target.standing.because}
            facts |= {"model": target.model} if target.model else {}
    if cause := incident.diagnosis.get("cause"):
        facts["cause"] = str(cause)
    return facts
