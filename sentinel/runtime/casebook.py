"""Alerts become incidents: opened by the first that matters, held together, resolved by rule.

An incident is over when none of its alerts has fired for `group_interval` and nothing is
being done about it: the proof of a remedy belongs to the incident it is for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sentinel.core.alerting.advance import ActiveAlert, Transition
from sentinel.core.diagnosis.diagnose import Diagnosis
from sentinel.core.diagnosis.weigh import outweighs
from sentinel.core.model.incident import Incident, Subject, incident_number
from sentinel.core.model.moment import stamp_or_none
from sentinel.core.policy.subject import subject_of, worst
from sentinel.runtime.flaps import Flaps
from sentinel.runtime.history import History
from sentinel.runtime.plan import Plan
from sentinel.runtime.posted import active_of, is_posted
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_OPENING = ("warning", "critical")
_EVENT_OF = {
    "pending": events.ALERT_PENDING,
    "firing": events.ALERT_FIRING,
    "resolved": events.ALERT_RESOLVED,
}


@dataclass(slots=True, kw_only=True)
class Case:
    """An open incident, with its alerts by key."""

    incident: Incident
    alerts: dict[str, ActiveAlert] = field(default_factory=dict)
    flapping: dict[str, datetime] = field(default_factory=dict)
    """Alerts that have ended too often, and from when on their end counts."""

    @property
    def firing(self) -> list[ActiveAlert]:
        return [alert for alert in self.alerts.values() if alert.state == "firing"]


@dataclass(slots=True, kw_only=True)
class Changes:
    """What this turn changed, for whoever tells people."""

    resolved: list[Case] = field(default_factory=list)
    flaps: list[str] = field(default_factory=list)  # names of alerts that fired once too often


class Casebook:
    def __init__(self, memory: Memory, history: History, plan: Plan) -> None:
        self._memory, self._incidents, self._history = memory, memory.incidents, history
        self.plan = plan
        self.cases: dict[int, Case] = {}
        self._flaps = Flaps(memory.dispatches)

    def read(self, now: datetime) -> None:
        """What is open, as it stands on disk."""
        self._flaps.read()
        self.cases = {
            incident.number: Case(incident=incident) for incident in self._incidents.open()
        }
        for alert, number in self._memory.alerts.all():
            if number in self.cases:
                case = self.cases[number]
                case.alerts[alert.key] = alert
                if alert.resolved_at is not None:
                    self._flaps.ended(case.flapping, alert, alert.resolved_at, now)
        for posted in self._memory.dispatches.alerts():
            number = incident_number(posted.incident or "")
            if posted.origin == "posted" and number in self.cases:
                alert = active_of(posted, now)
                self.cases[number].alerts[alert.key] = alert

    def take(
        self, transitions: Sequence[Transition], targets: Mapping[str, Target], now: datetime
    ) -> Changes:
        """Enter what became of the alerts in this turn."""
        changes = Changes()
        for transition in transitions:
            if transition.kind == "dropped":
                self._memory.alerts.forget(transition.alert.key)
            else:
                self._enter(transition, targets, now, changes)
        return changes

    def incident_of(self, key: str) -> str | None:
        """The id of the open incident that holds this alert."""
        held = (case.incident.id for case in self.cases.values() if key in case.alerts)
        return next(held, None)

    def flapping(self, now: datetime) -> Iterator[ActiveAlert]:
        """Alerts that have ended, and whose end does not count yet."""
        for case in self.cases.values():
            for key, until in case.flapping.items():
                if now < until:
                    yield case.alerts[key]

    def _enter(
        self,
        transition: Transition,
        targets: Mapping[str, Target],
        now: datetime,
        changes: Changes,
    ) -> None:
        alert = transition.alert
        case = self._case_of(alert, transition.kind, targets, now)
        number = case.incident.number if case else None
        if not is_posted(alert):
            self._memory.alerts.save(alert, number)
        says = alert.annotations.get("summary") or alert.alertname
        self._history.write(
            _EVENT_OF[transition.kind],
            f"no longer so: {says}" if transition.kind == "resolved" else says,
            at=now,
            target=alert.labels.get("target"),
            incident=number,
            alertname=alert.alertname,
            severity=alert.labels.get("severity"),
        )
        if case is not None:
            case.alerts[alert.key] = alert
            if not is_posted(alert):
                self._damp(case, transition, now, changes)

    def _damp(self, case: Case, transition: Transition, now: datetime, changes: Changes) -> None:
        alert = transition.alert
        if transition.kind == "resolved":
            self._flaps.ended(case.flapping, alert, now, now)
        elif transition.kind == "firing" and self._flaps.fired(case.flapping, alert, now):
            changes.flaps.append(alert.alertname)

    def refresh(self, active: Sequence[ActiveAlert]) -> None:
        """Values and annotations as they are now, for whoever reads them."""
        by_key = {alert.key: alert for alert in active}
        for case in self.cases.values():
            case.alerts.update({key: by_key[key] for key in case.alerts if key in by_key})

    def close_quiet(self, busy: frozenset[str], now: datetime, changes: Changes) -> None:
        """Resolve what has been quiet for long enough. `busy`: targets something is done to."""
        for case in list(self.cases.values()):
            incident = case.incident
            case.flapping = {key: at for key, at in case.flapping.items() if now < at}
            if case.firing or case.flapping or incident.subject.name in busy:
                if incident.quiet_since is not None:
                    self._set_quiet(case, None)
                continue
            if incident.quiet_since is None or incident.quiet_since > now:  # a clock set back
                self._set_quiet(case, now)
            elif now - incident.quiet_since >= self.plan.group_interval:
                self._resolve(case, now, changes)

    def diagnose(
        self, case: Case, found: Diagnosis, launched_at: datetime | None, now: datetime
    ) -> None:
        """Name the cause, unless what was said before outweighs it. A new cause is said once."""
        known = case.incident.diagnosis
        launched = stamp_or_none(launched_at)
        later = launched is not None and launched > str(known.get("launched_at") or "")
        diagnosis = {
            **found.as_json(),
            "advice_shared": found.shared_advice,
            "launched_at": launched,
        }
        if known == diagnosis or not outweighs(found, known, of_a_later_launch=later):
            return
        self._incidents.diagnose(case.incident.number, diagnosis)
        self._refresh_incident(case)
        if known.get("cause") == found.cause:
            return
        line = next((one.text for one in found.evidence if one.source == "log"), None)
        self._history.write(
            events.DIAGNOSIS_MADE,
            f"{found.cause}: {found.says}",
            at=now,
            target=case.incident.subject.name,
            incident=case.incident.number,
            cause=found.cause,
            confidence=round(found.confidence, 2),
            evidence=next((one.text for one in found.evidence if one.source != "log"), None),
            log_line=line,
        )

    def case_of(self, subject: Subject) -> Case | None:
        return next((c for c in self.cases.values() if c.incident.subject == subject), None)

    def case_of_target(self, name: str) -> Case | None:
        return self.case_of(Subject(kind="target", name=name))

    def refresh_incident(self, number: int) -> None:
        if number in self.cases:
            self._refresh_incident(self.cases[number])

    def open(self, subject: Subject, severity: str, because: str, now: datetime) -> int:
        """The number of its open incident; opened for something other than an alert if need be."""
        incident, is_new = self._incidents.open_for(subject, severity, now)
        self.cases.setdefault(incident.number, Case(incident=incident))
        if is_new:
            self._write_opened(incident, because, now)
        return incident.number

    def _case_of(
        self, alert: ActiveAlert, kind: str, targets: Mapping[str, Target], now: datetime
    ) -> Case | None:
        for case in self.cases.values():
            if alert.key in case.alerts:
                return case
        if kind != "firing":
            return None
        subject, severity = self._subject_of(alert, targets), _severity_of(alert)
        if severity not in _OPENING:
            joined = self.case_of(subject)
            if joined is not None:
                self._incidents.hold_alerts(joined.incident.number, [alert.alertname])
            return joined
        incident, is_new = self._incidents.open_for(subject, severity, now)
        self._incidents.hold_alerts(incident.number, [alert.alertname])
        if is_new:
            self._opened(incident, alert, targets, now)
        case = self.cases.setdefault(incident.number, Case(incident=incident))
        if worst(case.incident.severity, severity) != case.incident.severity:
            self._incidents.set_severity(incident.number, severity)
        self._refresh_incident(case)
        return case

    def _subject_of(self, alert: ActiveAlert, targets: Mapping[str, Target]) -> Subject:
        instances = {
            name: t.endpoint.instance if t.endpoint else None for name, t in targets.items()
        }
        return subject_of(alert.labels, instances, self.plan.host)

    def _opened(
        self,
        incident: Incident,
        alert: ActiveAlert,
        targets: Mapping[str, Target],
        now: datetime,
    ) -> None:
        subject = incident.subject
        if subject.kind == "target":
            self._incidents.adopt(incident.number, subject.name, now)
            target = targets.get(subject.name)
            launch = target.at_issue if target else None
            changed = self._memory.launches.changed(launch) if launch else []
            self._incidents.set_changed(incident.number, changed)
        says = f"{alert.alertname} is the first alert of {subject.kind} {subject.name}"
        self._write_opened(incident, says, now)

    def _write_opened(self, incident: Incident, because: str, now: datetime) -> None:
        subject = incident.subject
        self._history.write(
            events.INCIDENT_OPENED,
            because,
            at=now,
            target=subject.name if subject.kind == "target" else None,
            incident=incident.number,
            severity=incident.severity,
        )

    def _set_quiet(self, case: Case, since: datetime | None) -> None:
        self._incidents.set_quiet(case.incident.number, since)
        self._refresh_incident(case)

    def _resolve(self, case: Case, now: datetime, changes: Changes) -> None:
        number = case.incident.number
        self._incidents.resolve(number, now)
        self._refresh_incident(case)
        lasted = int((now - case.incident.opened_at).total_seconds())
        self._history.write(
            events.INCIDENT_RESOLVED,
            f"no alert of it fires any more; it lasted {lasted} s",
            at=now,
            target=case.incident.subject.name if case.incident.subject.kind == "target" else None,
            incident=number,
        )
        for key in case.alerts:
            self._memory.alerts.forget(key)
        del self.cases[number]
        changes.resolved.append(case)

    def _refresh_incident(self, case: Case) -> None:
        found = self._incidents.get(case.incident.number)
        if found is not None:
            case.incident = found


def _severity_of(alert: ActiveAlert) -> str:
    """Of our own rules' alerts, one without severity is a warning; of others', it is none."""
    given = alert.labels.get("severity", "" if is_posted(alert) else "warning")
    return worst(given) if given in _OPENING or not is_posted(alert) else given
