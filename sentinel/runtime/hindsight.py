"""Looks back at steps that were held, and writes down what became of the trouble without them."""

from datetime import datetime, timedelta

from sentinel.core.policy.hindsight import Hindsight, judge
from sentinel.store.memory import Memory

_EVERY = timedelta(minutes=1)


class LookBack:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._due_at: datetime | None = None

    def look_if_due(self, now: datetime) -> None:
        """To be called once a turn, within its transaction."""
        if self._due_at is not None and now < self._due_at <= now + _EVERY:
            return
        self._due_at = now + _EVERY
        memory = self._memory
        for step in memory.scorecard.unjudged():
            incident = memory.incidents.get(step.incident)
            seen = Hindsight(
                at=step.at,
                deadline=step.deadline,
                action=step.action,
                resolved_at=incident.resolved_at if incident else None,
                intents=memory.journal.of_incident(step.incident),
                launches=memory.launches.since(step.target, step.at),
                under_way=memory.launches.at(step.target, step.at),
            )
            verdict = judge(seen, now)
            if verdict is not None:
                memory.scorecard.judge(step, verdict, now)
