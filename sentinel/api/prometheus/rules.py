"""`rules` and `alerts`: what is judged, and what came of it last."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from sentinel.api.prometheus import figures
from sentinel.api.prometheus.copies import Judged
from sentinel.api.prometheus.envelope import Found, bad
from sentinel.api.prometheus.question import Question, one_of
from sentinel.api.prometheus.select import selections
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.rule import AlertRule, Rule, RuleGroup
from sentinel.core.promql import Selection

Json = dict[str, Any]
BOOLEANS = {
    **dict.fromkeys(("1", "t", "true"), True),
    **dict.fromkeys(("", "0", "f", "false"), False),
}
WORST_FIRST = ("firing", "pending")


def alerts(question: Question) -> Found:
    judged = question.copies.judged(question.within)
    standing = _by_rule(judged.active)
    ordered = [
        alert
        for group in judged.groups
        for rule in group.rules
        for alert in standing.get(rule.id, ())
    ]
    return Found({"alerts": [_alert(alert) for alert in ordered]})


def rules(question: Question) -> Found:
    form = question.form
    kind = one_of("type", form.address.get("type", "").lower(), ("alert", "record"))
    wanted = _Wanted(
        kind,
        frozenset(form.all("rule_name[]")),
        selections(form.all("match[]")),
        with_alerts=not _exclude_alerts(form.address.get("exclude_alerts", "")),
    )
    groups, files = form.all("rule_group[]"), form.all("file[]")
    most, token = _page(form.address)
    judged = question.copies.judged(question.within)
    shown: list[Json] = []
    found_token = not token
    for group in judged.groups:
        found_token = found_token or _token(group) == token
        if not found_token or (groups and group.name not in groups):
            continue
        drawn = wanted.draw(group, judged) if not files or group.file in files else None
        if drawn is None:
            continue
        if most and len(shown) == most:
            return Found({"groups": shown, "groupNextToken": _token(group)})
        shown.append(drawn)
    if not found_token:
        says = f"invalid group_next_token '{token}'. were rule groups changed?"
        raise bad("group_next_token", says)
    return Found({"groups": shown})


class _Wanted:
    """Which rules of a group are asked for, and how they are drawn."""

    def __init__(
        self, kind: str, names: frozenset[str], match: Sequence[Selection], *, with_alerts: bool
    ) -> None:
        self._kind, self._names, self._match = kind, names, match
        self._with_alerts = with_alerts

    def draw(self, group: RuleGroup, judged: Judged) -> Json | None:
        standing = _by_rule(judged.active)
        drawn = [
            self._rule(rule, standing.get(rule.id, ()), judged)
            for rule in group.rules
            if self._means(rule)
        ]
        if not drawn:
            return None
        return {
            "name": group.name,
            "file": group.file,
            "rules": drawn,
            "interval": (group.interval or judged.interval).total_seconds(),
            "limit": group.limit,
            "evaluationTime": 0,
            "lastEvaluation": figures.instant(judged.evaluated_at),
        }

    def _means(self, rule: Rule) -> bool:
        kind = "alert" if isinstance(rule, AlertRule) else "record"
        return (
            self._kind in ("", kind)
            and (not self._names or rule.name in self._names)
            and (not self._match or any(_carries(rule.labels, one) for one in self._match))
        )

    def _rule(self, rule: Rule, active: Sequence[ActiveAlert], judged: Judged) -> Json:
        because = judged.failing.get(rule.id)
        seen = "unknown" if judged.evaluated_at is None else "ok"
        last: Json = {
            "health": "err" if because else seen,
            **({"lastError": because} if because else {}),
            "evaluationTime": 0,
            "lastEvaluation": figures.instant(judged.evaluated_at),
        }
        named = {"name": rule.name, "query": rule.expr.text.strip(), "labels": dict(rule.labels)}
        if not isinstance(rule, AlertRule):
            return {**named, **last, "type": "recording"}
        states = {alert.state for alert in active}
        return {
            "state": next((state for state in WORST_FIRST if state in states), "inactive"),
            **named,
            "duration": _number(rule.for_),
            "keepFiringFor": _number(rule.keep_firing_for),
            "annotations": dict(rule.annotations),
            "alerts": [_alert(alert) for alert in active] if self._with_alerts else None,
            **last,
            "type": "alerting",
        }


def _carries(labels: Mapping[str, str], one: Selection) -> bool:
    """A label that is a template matches nothing: its value is not known here."""
    return not one.name and all(
        m.matches(labels.get(m.name, "")) and "{{" not in labels.get(m.name, "")
        for m in one.matchers
    )


def _by_rule(active: Iterable[ActiveAlert]) -> dict[str, list[ActiveAlert]]:
    found: dict[str, list[ActiveAlert]] = {}
    for alert in active:
        if alert.state != "resolved":
            found.setdefault(alert.rule, []).append(alert)
    return found


def _alert(alert: ActiveAlert) -> Json:
    kept = {"keepFiringSince": figures.instant(alert.keep_since)} if alert.keep_since else {}
    return {
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "state": alert.state,
        "activeAt": figures.instant(alert.active_at),
        **kept,
        "value": figures.scientific(alert.value),
    }


def _exclude_alerts(given: str) -> bool:
    if given.lower() not in BOOLEANS:
        says = f'error converting exclude_alerts: strconv.ParseBool: parsing "{given}"'
        raise bad("exclude_alerts", f"{says}: invalid syntax")
    return BOOLEANS[given.lower()]


def _page(address: Mapping[str, str]) -> tuple[int, str]:
    """How many groups at most (0: all), and the token of the first of them."""
    limit, token = address.get("group_limit", ""), address.get("group_next_token", "")
    if not limit:
        if token:
            says = "group_limit needs to be present in order to paginate over the groups"
            raise bad("group_next_token", says)
        return 0, ""
    if not (limit.isascii() and limit.removeprefix("-").isdigit()):
        says = f'group_limit needs to be a valid number: strconv.ParseInt: parsing "{limit}"'
        raise bad("group_limit", f"{says}: invalid syntax")
    if int(limit) <= 0:
        raise bad("group_limit", "group_limit needs to be greater than 0")
    return int(limit), token


def _token(group: RuleGroup) -> str:
    named = f"{group.file};{group.name}".encode("utf-8", "surrogateescape")
    return hashlib.sha1(named, usedforsecurity=False).hexdigest()


def _number(span: timedelta) -> int | float:
    seconds = span.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
