"""Incidents and intents as a person reads them: when, what, because, by whom."""

from typing import Any

from sentinel.cli.text import clean, moment, paint, paragraph, say, table

Facts = dict[str, Any]


def show_incidents(incidents: list[Facts]) -> None:
    rows = [
        (
            clean(incident.get("id")),
            clean(incident.get("status")),
            clean(incident.get("severity")),
            moment(incident.get("opened_at")),
            clean((incident.get("subject") or {}).get("name")),
        )
        for incident in incidents
    ]
    header, *lines = table(("ID", "STATUS", "SEVERITY", "OPENED", "SUBJECT"), rows)
    say(header)
    for incident, line in zip(incidents, lines, strict=True):
        say(paint(line, incident["severity"]) if incident.get("status") == "open" else line)
        say(paragraph(_what(incident), first="  "))


def show_incident(incident: Facts) -> None:
    subject = incident.get("subject") or {}
    severity = clean(incident.get("severity"))
    heading = f"{incident.get('id')}  {subject.get('kind')} {subject.get('name')}  {severity}, "
    say(paint(paragraph(heading + clean(incident.get("status"))), severity))
    say(f"opened    {moment(incident.get('opened_at'))}")
    if incident.get("resolved_at"):
        say(f"resolved  {moment(incident['resolved_at'])}")
    say(paragraph(_what(incident), first="what      "))
    if advice := (incident.get("diagnosis") or {}).get("advice"):
        say(paragraph(advice, first="advice    "))
    for each in incident.get("changed") or []:
        say(paragraph(each, first="changed   "))
    if incident.get("evidence"):
        say(paragraph(incident["evidence"], first="evidence  "))
    if incident.get("timeline"):
        say("\nTIMELINE (UTC)")
    for record in incident.get("timeline") or []:
        _show_record(record)
    if incident.get("intents"):
        say("\nINTENTS")
        show_intents(incident["intents"])


def show_intents(intents: list[Facts]) -> None:
    rows = [
        (
            clean(intent.get("id")),
            clean(intent.get("action")),
            clean(intent.get("outcome") or intent.get("state") or "open"),
            moment(intent.get("reserved_at") or intent.get("proposed_at")),
            clean(intent.get("by")),
            clean(intent.get("target")),
        )
        for intent in intents
    ]
    header, *lines = table(("ID", "ACTION", "OUTCOME", "DECIDED", "BY", "TARGET"), rows)
    say(header)
    for intent, line in zip(intents, lines, strict=True):
        say(line)
        say(paragraph(intent.get("because"), first="  because "))


def _show_record(record: Facts) -> None:
    by = record.get("by")
    who = f" (by {clean(by)})" if by and by != "sentinel" else ""
    time = moment(record.get("at")).removesuffix("Z")
    say(paragraph(f"{record.get('event')}{who}", first=f"  {time}  "))
    if record.get("because"):
        say(paragraph(record["because"], first=" " * 23))
    facts = {key: value for key, value in (record.get("facts") or {}).items() if value is not None}
    if facts:
        say(paragraph(" ".join(f"{key}={value}" for key, value in facts.items()), first=" " * 23))


def _what(incident: Facts) -> str:
    alerts = ", ".join(incident.get("alerts") or []) or "no alert"
    diagnosis = incident.get("diagnosis") or {}
    if not (cause := diagnosis.get("cause")):
        return f"{alerts}; cause not known"
    says = f", {diagnosis['says']}" if diagnosis.get("says") else ""
    return f"{alerts}; cause: {cause}{says}"
