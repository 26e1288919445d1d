"""Draws the picture of itself that is published after each turn.

The shapes are the contract's. What is unknown is null; nothing is computed here that a
decision depends on.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sentinel.api.snapshot import Snapshot
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.model.intent import Intent
from sentinel.core.model.moment import stamp, stamp_or_none
from sentinel.core.model.target import Traffic
from sentinel.core.policy.guard import Held
from sentinel.core.policy.remedy import remedy_for
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

Json = dict[str, Any]


class Painter:
    def __init__(self, memory: Memory, casebook: Casebook, daemon: Json) -> None:
        self._memory, self._casebook = memory, casebook
        self._daemon = daemon  # version, started_at: what never changes while it runs

    def paint(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        alerts: Sequence[ActiveAlert],
        problems: Sequence[str],
        now: datetime,
    ) -> Snapshot:
        standing = [alert for alert in alerts if alert.state != "resolved"]
        pauses = [p for p in self._memory.journal.pauses(now) if p.target is None]
        ordered = [targets[name] for name in sorted(targets)]
        return Snapshot(
            at=now,
            ready=True,
            status={
                "daemon": {
                    **self._daemon,
                    "mode": plan.mode,
                    "paused_until": stamp_or_none(pauses[0].until) if pauses else None,
                    "paused": bool(pauses),
                },
                "targets": [self._target(target, plan) for target in ordered],
                "alerts": [_alert(alert) for alert in standing],
                "approvals": [_approval(intent) for intent in self._memory.journal.proposed()],
                "problems": list(problems),
            },
            explain={t.name: self._explain(t, plan, standing) for t in ordered},
        )

    def _target(self, target: Target, plan: Plan) -> Json:
        case = self._casebook.case_of_target(target.name)
        load, last = target.load, self._memory.journal.last_of(target.name)
        return {
            "name": target.name,
            "container_id": target.container.id,
            "model": target.model,
            "pool": plan.pool_of(target.name),
            "state": target.standing.state,
            "traffic": Traffic.UNMANAGED,
            "since": stamp(target.since),
            "because": target.standing.because,
            "endpoint": target.endpoint.url if target.endpoint else None,
            "running": load.running,
            "waiting": load.waiting,
            "kv_cache_usage_ratio": load.kv_usage,
            "ttft_p99_seconds": target.ttft_p99,
            "gpus": list(target.container.devices),
            "last_action": _last_action(last),
            "held": [_held(target.held_action, held) for held in target.held],
            "incident": case.incident.id if case else None,
        }

    def _explain(self, target: Target, plan: Plan, alerts: Sequence[ActiveAlert]) -> Json:
        mine = [alert for alert in alerts if alert.labels.get("target") == target.name]
        case = self._casebook.case_of_target(target.name)
        tried = self._memory.journal.of_incident(case.incident.number) if case else ()
        found = (remedy_for(alert.labels, plan.remedies) for alert in mine)
        remedy = next((remedy for remedy in found if remedy is not None), None)
        return {
            "subject": {"kind": "target", "name": target.name},
            "state": target.standing.state,
            "since": stamp(target.since),
            "because": target.standing.because,
            "witnesses": _witnesses(target),
            "rules": [_rule(alert) for alert in mine],
            "remedy": {
                "match": [str(matcher) for matcher in remedy.match] if remedy else [],
                "ladder": [
                    {"step": rung.action, "status": _status(rung.action, tried)}
                    for rung in (remedy.ladder if remedy else ())
                ],
            },
            "guards": [
                {
                    "guard": held.guard,
                    "holds": True,
                    "because": held.because,
                    "until": stamp_or_none(held.until),
                }
                for held in target.held
            ],
            "next": _next(target),
        }


def _next(target: Target) -> Json | None:
    if target.held_action is None or not target.held:
        return None
    first = target.held[0]
    return {
        "what": target.held_action,
        "at": stamp_or_none(first.until),
        "because": first.because,
    }


def _status(action: str, tried: Sequence[Intent]) -> str:
    """Of one rung: what came of it in this incident, or `next`."""
    mine = [intent for intent in tried if intent.wish.action == action]
    if not mine:
        return "next"
    return str(mine[-1].outcome or ("reserved" if mine[-1].is_reserved else "proposed"))


def _last_action(intent: Intent | None) -> Json | None:
    if intent is None:
        return None
    return {
        "action": intent.wish.action,
        "outcome": intent.outcome,
        "at": stamp_or_none(intent.closed_at or intent.reserved_at),
        "because": intent.closed_because or intent.wish.because,
    }


def _held(action: str | None, held: Held) -> Json:
    return {
        "action": action,
        "guard": held.guard,
        "because": held.because,
        "until": stamp_or_none(held.until),
    }


def _alert(alert: ActiveAlert) -> Json:
    return {
        "alertname": alert.alertname,
        "state": alert.state,
        "severity": alert.labels.get("severity"),
        "labels": dict(alert.labels),
        "active_at": stamp(alert.active_at),
        "value": alert.value,
        "silenced": False,
        "summary": alert.annotations.get("summary"),
    }


def _rule(alert: ActiveAlert) -> Json:
    return {
        "alertname": alert.alertname,
        "state": alert.state,
        "value": alert.value,
        "active_at": stamp(alert.active_at),
        "fires_at": stamp_or_none(alert.fired_at),
    }


def _approval(intent: Intent) -> Json:
    return {
        "intent": intent.id,
        "action": intent.wish.action,
        "target": intent.wish.target,
        "because": intent.wish.because,
        "expires_at": stamp_or_none(intent.expires_at),
    }


def _witnesses(target: Target) -> list[Json]:
    container = target.container
    says = str(container.status)
    if container.exit_code is not None and not container.is_up:
        says += f", exit code {container.exit_code}"
    found: list[Json] = [{"name": "container", "says": says, "at": stamp(target.seen_at)}]
    for name, answer in (("scrape", target.scrape), ("health", target.health)):
        if answer is not None:
            told = answer.says or answer.failure if answer.failure else str(answer.status)
            found.append({"name": name, "says": told, "at": stamp(answer.at)})
    if target.probe is not None:
        says = "a completion" if target.probe.ok else f"no completion: {target.probe.says}"
        found.append({"name": "probe", "says": says, "at": stamp(target.probe.at)})
    if target.progress_at is not None and target.progress:
        found.append({"name": "progress", "says": "last change", "at": stamp(target.progress_at)})
    if target.launch is not None and target.launch.ending is not None:
        ending = target.launch.ending
        at = stamp_or_none(ending.at)
        found.append({"name": "ending", "says": f"{ending.cause}: {ending.because}", "at": at})
    return found
