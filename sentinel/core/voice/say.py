"""What a person reads: a title that can stand alone, then one line for each fact.

The most needed lines come first, because receivers cut at the end. Sentences that say
why are passed on untouched, so that message, log and command line use the same words.
"""

from dataclasses import dataclass

from sentinel.core.model.message import AlertFacts, Notice
from sentinel.core.voice.plain import cut, plain
from sentinel.core.voice.words import WORDS, Language, Words

_LONGEST_TITLE = 200
_LONGEST_DETAIL = 500
_SEVERITIES = ("critical", "warning", "info")
# Facts that have a line of their own; every other fact is said under its own name.
_PLACED = frozenset(
    {"target", "host", "model", "pool", "since", "until", "severity", "intent"}
    | {"state", "because", "cause", "advice", "outcome"}
)


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    title: str
    lines: tuple[Line, ...]
    colon: str
    calls: bool  # somebody is wanted now; receivers mention people only then

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(f"{line.label}{self.colon}{line.text}" for line in self.lines)


def say(notice: Notice, *, language: Language = "en") -> Said:
    words = WORDS[language]
    firing = any(alert.status == "firing" for alert in notice.alerts)
    lines = [
        *_where_and_since(notice, words),
        *_cause(notice, words),
        *_decision(notice, words),
        (words.labels["outcome"], notice.facts.get("outcome", "")),
        *_alerts(notice, words),
        *_rest(notice),
        *_detail(notice, words, language),
        *_commands(notice, words),
    ]
    return Said(
        title=cut(_title(notice, words, language, firing=firing), _LONGEST_TITLE, len),
        lines=tuple(Line(label, text) for label, raw in lines if (text := plain(raw))),
        colon=words.colon,
        calls=notice.kind == "approval" or (notice.kind == "alert" and firing),
    )


def _title(notice: Notice, words: Words, language: Language, *, firing: bool) -> str:
    over = notice.kind == "alert" and bool(notice.alerts) and not firing
    heading = words.headings["resolved" if over else notice.kind]
    severity = _severity(notice) if notice.kind not in ("digest", "test") else ""
    named = words.severities.get(severity, severity)
    where = _fact(notice, "target") or _subject(notice) or _fact(notice, "host")
    parts = (f"{heading} {named}".rstrip(), where, _headline(notice, language))
    return " · ".join(part for part in map(plain, parts) if part)


def _headline(notice: Notice, language: Language) -> str:
    loudest = _loudest_first(notice)
    if notice.headline:
        quoted = (a for a in loudest if a.annotations.get("summary") == notice.headline)
        alert = next(quoted, None)
        return _written(alert, "summary", language) if alert else notice.headline
    said = (_written(alert, "summary", language) for alert in loudest)
    return next(filter(None, said), "") or ", ".join(_names(notice.alerts))


def _written(alert: AlertFacts, name: str, language: Language) -> str:
    """What the author of the rule wrote, in this language if he did."""
    return alert.annotations.get(f"{name}_{language}") or alert.annotations.get(name, "")


def _where_and_since(notice: Notice, words: Words) -> list[tuple[str, str]]:
    places = [
        f"{words.labels[name]} {place}"
        for name in ("target", "host", "model", "pool")
        if (place := _fact(notice, name))
    ]
    incident = notice.incident or {}
    since = notice.facts.get("since") or incident.get("opened_at") or _earliest(notice)
    until = notice.facts.get("until") or incident.get("resolved_at") or _latest_end(notice)
    return [
        (words.labels["where"], words.comma.join(places)),
        (words.labels["since"], _instant(str(since or ""))),
        (words.labels["until"], _instant(str(until or ""))),
    ]


def _cause(notice: Notice, words: Words) -> list[tuple[str, str]]:
    state, because = notice.facts.get("state", ""), notice.facts.get("because", "")
    diagnosis = (notice.incident or {}).get("diagnosis") or {}
    return [
        (words.labels["state"], words.colon.join(part for part in (state, because) if part)),
        (words.labels["cause"], notice.facts.get("cause") or str(diagnosis.get("cause") or "")),
        (words.labels["advice"], notice.facts.get("advice") or str(diagnosis.get("advice") or "")),
    ]


def _decision(notice: Notice, words: Words) -> list[tuple[str, str]]:
    decision = notice.decision
    if decision is None:
        return []
    verb = "did"
    if decision.would:
        verb = "asks" if notice.kind == "approval" else "would"
    return [
        (words.labels[verb], decision.action),
        (words.labels["held"], decision.guard or ""),
        (words.labels["because"], decision.because),
    ]


def _alerts(notice: Notice, words: Words) -> list[tuple[str, str]]:
    firing = [alert for alert in notice.alerts if alert.status == "firing"]
    resolved = [alert for alert in notice.alerts if alert.status == "resolved"]
    return [
        (words.labels["alerts"], words.comma.join(_names(firing))),
        (words.labels["resolved"], words.comma.join(_names(resolved))),
    ]


def _detail(notice: Notice, words: Words, language: Language) -> list[tuple[str, str]]:
    """What the author of the rule wrote about the alert that matters most."""
    loudest = next(iter(_loudest_first(notice)), None)
    if loudest is None:
        return []
    told = plain(_written(loudest, "description", language))
    return [
        (words.labels["detail"], cut(told, _LONGEST_DETAIL, len)),
        (words.labels["runbook"], loudest.annotations.get("runbook_url", "")),
    ]


def _rest(notice: Notice) -> list[tuple[str, str]]:
    return [(plain(name), told) for name, told in notice.facts.items() if name not in _PLACED]


def _commands(notice: Notice, words: Words) -> list[tuple[str, str]]:
    """What to type next on the host."""
    lines = []
    if notice.kind == "approval" and (intent := notice.facts.get("intent")):
        lines.append((words.labels["approve"], f"sentinel approve {intent}"))
    if incident := (notice.incident or {}).get("id"):
        lines.append((words.labels["look"], f"sentinel incidents show {incident}"))
    return lines


def _fact(notice: Notice, name: str) -> str:
    """A fact as it was given, or as all of the alerts agree on it in their labels."""
    if given := notice.facts.get(name):
        return given
    label = {"model": "model_name"}.get(name, name)
    said = {alert.labels.get(label, "") for alert in notice.alerts}
    return said.pop() if len(said) == 1 else ""


def _subject(notice: Notice) -> str:
    subject = (notice.incident or {}).get("subject") or {}
    return str(subject.get("name") or "")


def _severity(notice: Notice) -> str:
    given = notice.facts.get("severity") or (notice.incident or {}).get("severity")
    if given:
        return str(given)
    loudest = next(iter(_loudest_first(notice)), None)
    return loudest.labels.get("severity", "") if loudest else ""


def _loudest_first(notice: Notice) -> list[AlertFacts]:
    return sorted(notice.alerts, key=lambda alert: (alert.status != "firing", _rank(alert)))


def _rank(alert: AlertFacts) -> int:
    severity = alert.labels.get("severity", "")
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)


def _names(alerts: tuple[AlertFacts, ...] | list[AlertFacts]) -> list[str]:
    """Each name once, in the order of the alerts, and how often if more than once."""
    names = [alert.labels.get("alertname", "?") for alert in alerts]
    return [
        name if (count := names.count(name)) == 1 else f"{name} ×{count}"
        for name in dict.fromkeys(names)
    ]


def _earliest(notice: Notice) -> str:
    return min((alert.starts_at for alert in notice.alerts), default="")


def _latest_end(notice: Notice) -> str:
    """When the last of them resolved; nothing while any fires."""
    if any(alert.status == "firing" for alert in notice.alerts):
        return ""
    return max((alert.ends_at for alert in notice.alerts if alert.ends_at > "0002"), default="")


def _instant(text: str) -> str:
    """RFC 3339 in UTC, to the second and without its punctuation; anything else as it is."""
    if len(text) >= 20 and text[10] == "T" and text.endswith("Z"):
        return f"{text[:10]} {text[11:19]} UTC"
    return text
