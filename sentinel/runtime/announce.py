"""Turns what a turn changed into messages owed to channels.

Machines get one message for each kind of thing that happened; people get one message that
says it all. What is owed is written in the same transaction as the change it tells of.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.model.incident import Incident
from sentinel.core.model.intent import Outcome
from sentinel.core.model.message import AlertFacts, DecisionFacts, Kind, Notice
from sentinel.core.model.moment import stamp
from sentinel.core.policy.routing import receivers_of
from sentinel.runtime.act import Settled
from sentinel.runtime.casebook import Case, Changes
from sentinel.runtime.decide import Decision
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.store.picture import incident_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One channel of a receiver."""

    channel: str
    is_machine: bool = False
    send_resolved: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """One thing worth telling of one incident."""

    case: Case
    kind: Kind
    headline: str = ""
    decision: DecisionFacts | None = None
    facts: Mapping[str, str] | None = None


class Announcer:
    def __init__(
        self, memory: Memory, plan: Plan, addresses: Mapping[str, Sequence[Address]]
    ) -> None:
        self._memory = memory
        self.plan, self.addresses = plan, addresses

    def tell(
        self,
        changes: Changes,
        decisions: Sequence[Decision],
        settled: Sequence[tuple[Settled, Case]],
        targets: Mapping[str, Target],
        now: datetime,
    ) -> None:
        by_case: dict[int, list[News]] = {}
        for news in _news(changes, decisions, settled):
            by_case.setdefault(news.case.incident.number, []).append(news)
        for told in by_case.values():
            self._tell_case(told, targets, now)

    def _tell_case(
        self, told: Sequence[News], targets: Mapping[str, Target], now: datetime
    ) -> None:
        case = told[0].case
        for address in self._addresses_of(case):
            for news in told if address.is_machine else _in_one(told):
                if news.kind == "resolved" and not address.send_resolved:
                    continue
                notice = self._notice(news, targets)
                self._memory.outbox.owe(address.channel, notice, case.incident.number, now)

    def _addresses_of(self, case: Case) -> Iterable[Address]:
        names: dict[str, None] = {}
        for alert in case.alerts.values():
            labels = {**alert.labels, "incident": case.incident.id}
            names.update(dict.fromkeys(receivers_of(self.plan.route, labels)))
        return [address for name in names for address in self.addresses.get(name, ())]

    def _notice(self, news: News, targets: Mapping[str, Target]) -> Notice:
        incident = news.case.incident
        about = incident_json(self._memory.db, incident.number)
        if about is not None:
            about.pop("timeline", None)
        group = {"incident": incident.id}
        return Notice(
            kind=news.kind,
            group_key=f'{{}}:{{incident="{incident.id}"}}',
            group_labels=group,
            alerts=tuple(
                alert_facts(alert, incident, self.plan.external_labels)
                for alert in news.case.alerts.values()
                if alert.state != "pending"
            ),
            incident=about,
            decision=news.decision,
            headline=news.headline,
            facts={**_facts(incident, targets, self.plan.host), **(news.facts or {})},
        )


def alert_facts(
    alert: ActiveAlert, incident: Incident, external_labels: Mapping[str, str]
) -> AlertFacts:
    resolved = alert.state == "resolved"
    facts = AlertFacts(
        status="resolved" if resolved else "firing",
        labels={**external_labels, **alert.labels, "incident": incident.id},
        annotations=dict(alert.annotations),
        starts_at=stamp(alert.fired_at or alert.active_at),
        fingerprint=fingerprint(alert.labels),
    )
    return replace(facts, ends_at=stamp(alert.resolved_at)) if alert.resolved_at else facts


def fingerprint(labels: Mapping[str, str]) -> str:
    """Sixteen hex digits that stay the same for the same labels: FNV-1a, as Prometheus's."""
    value = 0xCBF29CE484222325
    for name in sorted(labels):
        for byte in f"{name}\xff{labels[name]}\xff".encode():
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def _news(
    changes: Changes,
    decisions: Sequence[Decision],
    settled: Sequence[tuple[Settled, Case]],
) -> Iterable[News]:
    made = {decision.case.incident.number: decision for decision in decisions}
    cases = {decision.case.incident.number: decision.case for decision in decisions}
    for number, alerts in changes.new_alerts.items():
        case = cases.get(number) or changes.cases[number]
        decision = made.get(number)
        first = alerts[0]
        yield News(
            case=case,
            kind="alert",
            headline=first.annotations.get("summary") or first.alertname,
            decision=_decision(decision) if decision and decision.kind != "called" else None,
        )
    for outcome, case in settled:
        yield _outcome(outcome, case)
    for decision in decisions:
        if decision.kind != "called" or decision.case.incident.number not in changes.new_alerts:
            yield _decided(decision)
    for case in changes.resolved:
        lasted = ""
        if case.incident.resolved_at is not None:
            span = case.incident.resolved_at - case.incident.opened_at
            lasted = f", after {int(span.total_seconds())} s"
        yield News(case=case, kind="resolved", headline=f"resolved{lasted}")


def _decided(decision: Decision) -> News:
    facts = {"intent": decision.intent.id} if decision.intent else {}
    told = _decision(decision)
    match decision.kind:
        case "held":
            headline = f"would {decision.action}, held by {decision.guard}: {decision.because}"
            return News(case=decision.case, kind="held", headline=headline, decision=told)
        case "proposed":
            headline = f"may Sentinel {decision.action} it? {decision.because}"
            return News(
                case=decision.case, kind="approval", headline=headline, decision=told, facts=facts
            )
        case "called":
            headline = f"a person is needed: {decision.because}"
            return News(case=decision.case, kind="alert", headline=headline)
        case _:
            headline = f"{decision.action}, because {decision.because}"
            return News(
                case=decision.case, kind="action", headline=headline, decision=told, facts=facts
            )


def _outcome(settled: Settled, case: Case) -> News:
    action = settled.intent.wish.action
    return News(
        case=case,
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


def _facts(incident: Incident, targets: Mapping[str, Target], host: str) -> dict[str, str]:
    facts = {"host": host, "since": stamp(incident.opened_at), "severity": incident.severity}
    if incident.subject.kind == "target":
        facts["target"] = incident.subject.name
        target = targets.get(incident.subject.name)
        if target is not None:
            facts |= {"state": target.standing.state, "because": target.standing.because}
            facts |= {"model": target.model} if target.model else {}
    if cause := incident.diagnosis.get("cause"):
        facts["cause"] = str(cause)
    return facts
