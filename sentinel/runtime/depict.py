"""Draws the picture of itself that is published after each turn.

The shapes are the contract's. What is unknown is null; nothing is computed here that a
decision depends on.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sentinel.api.snapshot import Snapshot
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.dispatch.board import Board, Standing
from sentinel.core.model.intent import Intent
from sentinel.core.model.moment import stamp, stamp_or_none
from sentinel.core.model.target import Traffic
from sentinel.core.policy.guard import Held
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.dispatch import Dispatch
from sentinel.runtime.explain import Explainer
from sentinel.runtime.plan import Plan
from sentinel.runtime.posted import active_of
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

Json = dict[str, Any]


class Painter:
    def __init__(
        self,
        memory: Memory,
        casebook: Casebook,
        dispatch: Dispatch,
        explainer: Explainer,
        gpus_of: Callable[[str], list[str]],
        daemon: Json,
    ) -> None:
        self._memory, self._casebook, self._explainer = memory, casebook, explainer
        self._dispatch, self._gpus_of = dispatch, gpus_of
        self._summaries: dict[str, tuple[tuple[float, datetime], str | None]] = {}
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
        if not standing:
            self._summaries.clear()
        board = self._dispatch.board(now)
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
                "alerts": self._alerts(standing, board),
                "approvals": [_approval(intent) for intent in self._memory.journal.proposed()],
                "problems": list(problems),
            },
            board=board,
            explain=self._explainer.explanations(plan, ordered, standing, now),
        )

    def _alerts(self, standing: Sequence[ActiveAlert], board: Board) -> list[Json]:
        """What our rules say, then what others posted; each with what keeps it quiet."""
        by_print = {each.alert.fingerprint: each for each in board.alerts}
        told = [(a, by_print.get(self._dispatch.print_of(a))) for a in standing]
        posted = [each for each in board.alerts if each.alert.origin == "posted"]
        told += [(active_of(each.alert, board.at), each) for each in posted]
        return [_alert(alert, stands, self._summary(alert)) for alert, stands in told]

    def _summary(self, alert: ActiveAlert) -> str | None:
        """Written anew only with another value: most alerts say the same at every turn."""
        known = self._summaries.get(alert.key)
        if known is None or known[0] != (alert.value, alert.active_at):
            known = (alert.value, alert.active_at), alert.annotations.get("summary")
            self._summaries[alert.key] = known
        return known[1]

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
            "running": _count(load.running),
            "waiting": _count(load.waiting),
            "kv_cache_usage_ratio": load.kv_usage,
            "ttft_p99_seconds": target.ttft_p99,
            "gpus": self._gpus_of(target.name),
            "last_action": _last_action(last),
            "held": [_held(target.held_action, held) for held in target.held],
            "incident": case.incident.id if case else None,
        }


def _count(value: float | None) -> int | float | None:
    return int(value) if value is not None and value.is_integer() else value


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


def _alert(alert: ActiveAlert, stands: Standing | None, summary: str | None) -> Json:
    return {
        "alertname": alert.alertname,
        "state": alert.state,
        "severity": alert.labels.get("severity"),
        "labels": dict(alert.labels),
        "active_at": stamp(alert.active_at),
        "value": alert.value,
        "silenced": bool(stands and stands.silenced_by),
        "inhibited": bool(stands and stands.inhibited_by),
        "summary": summary,
    }


def _approval(intent: Intent) -> Json:
    return {
        "intent": intent.id,
        "action": intent.wish.action,
        "target": intent.wish.target,
        "because": intent.wish.because,
        "expires_at": stamp_or_none(intent.expires_at),
    }
