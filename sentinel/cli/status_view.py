"""The picture of `sentinel status`: a line of numbers for each target, the reasons below it.

It is read at 80 columns by somebody who was asleep a minute ago: what is wrong comes first,
and nothing is left out for want of room.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sentinel.cli.text import clean, moment, paint, paragraph, say, span, table

Facts = dict[str, Any]

HEADER = ("TARGET", "STATE", "SINCE", "RUN/WAIT", "KV", "TTFT P99", "GPU")
RIGHT = ("RUN/WAIT", "KV", "TTFT P99")
QUIET = ("serving", "idle")
STALE = 10.0  # seconds after which the age of the picture is worth a word


def show_status(status: Facts) -> None:
    for line in _heading(status):
        say(line)
    say()
    for line in _targets(status):
        say(line)
    for line in _approvals(status):
        say(line)
    if status.get("alerts"):
        say()
        show_alerts(status["alerts"], now=_now(status))
    if status.get("problems"):
        say()
        say("PROBLEMS")
        for problem in status["problems"]:
            say(paragraph(problem, first="  "))


def show_alerts(alerts: list[Facts], *, now: datetime | None = None) -> None:
    say("ALERTS")
    for alert in sorted(alerts, key=_urgency):
        labels = alert.get("labels") or {}
        subject = next((labels[key] for key in ("target", "gpu", "host") if labels.get(key)), "")
        quiet = "".join(f", {why}" for why in ("silenced", "inhibited") if alert.get(why))
        since = _since(alert.get("active_at"), now)
        severity = clean(alert.get("severity"))
        text = (
            f"{alert.get('alertname')} {subject}: {alert.get('state')}{quiet}, "
            f"since {since}, value {_number(alert.get('value'))}"
        )
        say(paint(paragraph(text, first=f"  {severity:<8} "), severity))
        if alert.get("summary"):
            say(paragraph(alert["summary"], first=" " * 11))


def _heading(status: Facts) -> Iterator[str]:
    daemon, now = status["daemon"], _now(status)
    age = status.get("age_seconds")
    if not daemon.get("reachable"):
        yield paint("THE DAEMON DOES NOT ANSWER.", "critical")
        if age is not None:
            yield f"What follows is the last it wrote, {span(age)} ago ({moment(status['at'])})."
    elif age is not None and age > STALE:
        yield paint(f"This picture is {span(age)} old: the daemon is slow.", "warning")
    if daemon.get("version"):
        up = _since(daemon.get("started_at"), now)
        yield f"Sentinel {clean(daemon['version'])}, mode {clean(daemon.get('mode'))}, up {up}"
    if daemon.get("paused") or daemon.get("paused_until"):
        until = daemon.get("paused_until")
        yield paint(f"PAUSED until {moment(until) if until else 'sentinel resume'}", "warning")
    wrong = ", ".join(_wrong(status))
    yield paint(f"NOT OK: {wrong}", "critical") if wrong else paint("OK", "serving")


def _wrong(status: Facts) -> Iterator[str]:
    states = Counter(target.get("state") for target in status["targets"])
    if not states and status.get("at"):
        yield "no target"
    for state in ("failed", "hung", "unknown"):
        if states[state]:
            yield f"{states[state]} {state}"
    firing = sum(
        alert.get("state") == "firing"
        and alert.get("severity") in ("warning", "critical")
        and not alert.get("silenced")
        for alert in status["alerts"]
    )
    for count, what in (
        (firing, "firing"),
        (len(status["approvals"]), "waiting for approval"),
        (len(status["problems"]), "problem" if len(status["problems"]) == 1 else "problems"),
    ):
        if count:
            yield f"{count} {what}"


def _targets(status: Facts) -> Iterator[str]:
    targets, now = status["targets"], _now(status)
    if not targets and now is None:
        yield "Nothing is known of its targets."
        return
    if not targets:
        yield "No target: Sentinel looks after nothing."
        yield "Is a vLLM container running here? targets.discover says which are supervised."
        return
    header, *rows = table(HEADER, [_row(target, now) for target in targets], right=RIGHT)
    yield header
    for target, row in zip(targets, rows, strict=True):
        yield paint(row, target.get("state") or "")
        yield from _reasons(target, now)


def _row(target: Facts, now: datetime | None) -> tuple[str, ...]:
    ratio, ttft = target.get("kv_cache_usage_ratio"), target.get("ttft_p99_seconds")
    return (
        clean(target.get("name")),
        clean(target.get("state")),
        _since(target.get("since"), now),
        f"{_number(target.get('running'))}/{_number(target.get('waiting'))}",
        "-" if ratio is None else f"{ratio:.0%}",
        "-" if ttft is None else f"{ttft:.2f}s",
        _gpus(target.get("gpus") or []),
    )


def _reasons(target: Facts, now: datetime | None) -> Iterator[str]:
    about = [clean(target.get("model")) if target.get("model") else "model not known"]
    if target.get("pool"):
        about.append(f"pool {target['pool']}")
    if target.get("traffic") not in (None, "unmanaged"):
        about.append(f"traffic {target['traffic']}")
    yield paragraph(", ".join(about), first="  ")
    if len(gpus := target.get("gpus") or []) > 1:
        yield paragraph(" ".join(map(_short, gpus)), first="  GPUs    ")
    if target.get("state") not in QUIET and target.get("because"):
        yield paragraph(target["because"], first="  because ")
    if last := target.get("last_action"):
        ago = _since(last.get("at"), now)
        outcome = last.get("outcome") or "not over yet"
        text = f"{last.get('action')}, {outcome}, {ago} ago: {last.get('because')}"
        yield paragraph(text, first="  last    ")
    for held in target.get("held") or []:
        until = f" until {moment(held['until'])}" if held.get("until") else ""
        text = f"{held.get('action')}, by {held.get('guard')}{until}: {held.get('because')}"
        yield paragraph(text, first="  held    ")
    if target.get("incident"):
        yield f"  more    sentinel incidents show {clean(target['incident'])}"


def _approvals(status: Facts) -> Iterator[str]:
    if not status["approvals"]:
        return
    yield ""
    yield "WAITING FOR YOUR APPROVAL"
    for asked in status["approvals"]:
        intent = clean(asked.get("intent"))
        text = (
            f"{asked.get('action')} {asked.get('target')}, until {moment(asked.get('expires_at'))}"
        )
        yield paragraph(text, first=f"  {intent}  ")
        if asked.get("because"):
            yield paragraph(asked["because"], first="            because ")
        yield f"            sentinel approve {intent}   or   sentinel reject {intent}"


def _gpus(uuids: list[Any]) -> str:
    """The first and how many more; a line below the target has them all."""
    if not uuids:
        return "-"
    return _short(uuids[0]) if len(uuids) == 1 else f"{_short(uuids[0])} +{len(uuids) - 1}"


def _short(uuid: object) -> str:
    name = clean(uuid)
    return name[4:12] if name.startswith("GPU-") else name


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else "-"


def _urgency(alert: Facts) -> tuple[bool, bool, str]:
    return (
        alert.get("state") != "firing",
        alert.get("severity") != "critical",
        str(alert.get("alertname")),
    )


def _now(status: Facts) -> datetime | None:
    """The present, by the clock of who gave the answer."""
    if not status.get("at"):
        return None
    at = datetime.fromisoformat(status["at"])
    return datetime.fromtimestamp(at.timestamp() + (status.get("age_seconds") or 0.0), at.tzinfo)


def _since(at: str | None, now: datetime | None) -> str:
    if not at or now is None:
        return moment(at)
    return span((now - datetime.fromisoformat(at)).total_seconds())
