"""Why a target is in its state and what would be done about it, as people and programs ask.

Says the same of a healthy target: which rules watch it, which remedy would apply, and which
guards would hold it. Nothing is decided here, and nothing is put together before somebody asks.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.rule import AlertRule, RuleGroup
from sentinel.core.model.intent import Action, Intent, Mode, strictest
from sentinel.core.model.moment import stamp, stamp_or_none
from sentinel.core.model.target import State
from sentinel.core.policy.guard import CLEAR, GUARDS, Held, holds
from sentinel.core.policy.remedy import Remedy, Rung, Trial, next_rung, remedy_for
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.circumstances import Background
from sentinel.runtime.decide import Decider
from sentinel.runtime.explanations import Explanations
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.runtime.witnesses import witnesses_of
from sentinel.store.memory import Memory

Json = dict[str, Any]
_UNWELL = (State.FAILED, State.HUNG)
_ANEW = (Action.LOWER_MAX_NUM_SEQS, Action.RESTORE)


class Explainer:
    def __init__(self, memory: Memory, casebook: Casebook, decider: Decider, inbox: Inbox) -> None:
        self._memory, self._casebook, self._decider = memory, casebook, decider
        self._inbox = inbox
        self._groups: Sequence[RuleGroup] | None = None
        self._rules: dict[str, AlertRule] = {}

    def explanations(
        self,
        plan: Plan,
        targets: Sequence[Target],
        alerts: Sequence[ActiveAlert],
        now: datetime,
    ) -> Explanations:
        by_name = {target.name: target for target in targets}

        def build(name: str) -> Json:
            if self._groups is not plan.rules:
                self._groups, self._rules = plan.rules, dict(_rules_about_targets(plan.rules))
            mine = [alert for alert in alerts if alert.labels.get("target", "") == name]
            return self._one(by_name[name], plan, mine, self._decider.background(now), now)

        return Explanations(by_name.keys(), build, self._inbox.put_question)

    def _one(
        self,
        target: Target,
        plan: Plan,
        alerts: Sequence[ActiveAlert],
        known: Background,
        now: datetime,
    ) -> Json:
        case = self._casebook.case_of_target(target.name)
        tried = self._memory.journal.of_incident(case.incident.number) if case else ()
        step = self._decider.chooser.step_for(case, target, plan, now) if case else None
        remedy = step.remedy if step else _remedy(target, plan, alerts)
        rung = step.rung if step else _first(remedy, tried)
        action = Action(target.held_action or (rung.action if rung else Action.RESTART))
        mode = strictest(plan.target(target.name).mode, *_modes(remedy, rung))
        situation = self._decider.situation(
            target,
            action,
            mode,
            now,
            known,
            change=self._decider.prospects.known(target) if action in _ANEW else None,
            only_posted=step.is_posted if step else False,
        )
        holding = {held.guard: held for held in (*holds(situation), *target.held)}
        return {
            "subject": {"kind": "target", "name": target.name},
            "state": target.standing.state,
            "since": stamp(target.since),
            "because": target.standing.because,
            "witnesses": witnesses_of(target),
            "rules": [*self._active(alerts), *self._inactive(alerts)],
            "remedy": {
                "match": [str(matcher) for matcher in remedy.match] if remedy else [],
                "ladder": _ladder(remedy, rung, tried),
            },
            "guards": [_guard(name, holding.get(name)) for name in GUARDS],
            "next": _next(target, alerts, rung, _open(tried)),
        }

    def _active(self, alerts: Sequence[ActiveAlert]) -> list[Json]:
        found = []
        for alert in alerts:
            rule = self._rules.get(alert.rule)
            waits = alert.active_at + rule.for_ if rule else None
            found.append(
                {
                    "alertname": alert.alertname,
                    "state": alert.state,
                    "value": alert.value,
                    "active_at": stamp(alert.active_at),
                    "fires_at": stamp_or_none(alert.fired_at or waits),
                }
            )
        return found

    def _inactive(self, alerts: Sequence[ActiveAlert]) -> list[Json]:
        active = {alert.rule for alert in alerts}
        return [
            {
                "alertname": rule.name,
                "state": "inactive",
                "value": None,
                "active_at": None,
                "fires_at": None,
            }
            for rule_id, rule in self._rules.items()
            if rule_id not in active
        ]


def _rules_about_targets(groups: Sequence[RuleGroup]) -> Iterator[tuple[str, AlertRule]]:
    """Those whose expression speaks of targets, by name or by what only targets say."""
    for group in groups:
        for rule in group.rules:
            if isinstance(rule, AlertRule) and any(
                word in rule.expr.text for word in ("target", "vllm:", "container")
            ):
                yield rule.id, rule


def _first(remedy: Remedy | None, tried: Sequence[Intent]) -> Rung | None:
    return next_rung(remedy, Trial(tried=tried)) if remedy is not None else None


def _remedy(target: Target, plan: Plan, alerts: Sequence[ActiveAlert]) -> Remedy | None:
    """Of the first alert that has one; of an unexpected exit while there is no alert."""
    labels: list[Mapping[str, str]] = [alert.labels for alert in alerts]
    if not labels:
        exited = {"alertname": "VllmContainerExited", "severity": "critical"}
        labels = [{**exited, "target": target.name, "host": plan.host}]
    found = (remedy_for(one, plan.remedies) for one in labels)
    return next((remedy for remedy in found if remedy is not None), None)


def _modes(remedy: Remedy | None, rung: Rung | None) -> tuple[Mode | None, Mode | None]:
    return (remedy.mode if remedy else None), (rung.mode if rung else None)


def _ladder(remedy: Remedy | None, following: Rung | None, tried: Sequence[Intent]) -> list[Json]:
    return [
        {"step": rung.action, "status": _status(rung, following, tried)}
        for rung in (remedy.ladder if remedy else ())
    ]


def _status(rung: Rung, following: Rung | None, tried: Sequence[Intent]) -> str:
    """Of one rung: what came of it in this incident, `next`, or `later`."""
    mine = [intent for intent in tried if intent.wish.action == rung.action]
    if mine and (mine[-1].closed_at is None or rung is not following):
        return str(mine[-1].outcome or ("reserved" if mine[-1].is_reserved else "proposed"))
    return "next" if rung is following else "later"


def _guard(name: str, held: Held | None) -> Json:
    return {
        "guard": name,
        "holds": held is not None,
        "because": held.because if held else CLEAR[name],
        "until": stamp_or_none(held.until) if held else None,
    }


def _open(tried: Sequence[Intent]) -> Intent | None:
    return next((intent for intent in tried if intent.closed_at is None), None)


def _next(
    target: Target, alerts: Sequence[ActiveAlert], rung: Rung | None, under_way: Intent | None
) -> Json:
    if target.held_action is not None and target.held:
        first = target.held[0]
        because = f"held by {first.guard}: {first.because}"
        return _step(target.held_action, first.until, because)
    if under_way is not None and under_way.proposed_at and not under_way.reserved_at:
        asked = f"{under_way.id} waits for a person to agree"
        return _step(under_way.wish.action, under_way.expires_at, asked)
    if under_way is not None:
        step = under_way.next_step
        what = step.name if step else "verify"
        return _step(what, under_way.verify_by, f"{under_way.id}: {under_way.wish.because}")
    if rung is not None and any(alert.state == "firing" for alert in alerts):
        return _step(rung.action, None, f"{alerts[0].alertname} is firing")
    if target.standing.state in _UNWELL:
        return _step(None, None, "no rule that fires asks for anything")
    return _step(None, None, "nothing asks for anything to be done")


def _step(what: str | None, at: datetime | None, because: str) -> Json:
    return {"what": what, "at": stamp_or_none(at), "because": because}
