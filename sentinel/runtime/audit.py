"""The audit: what was resolved, ordered and done, line by line, for a program that only adds.

A line is owed in the transaction that writes the history it repeats: none of what was done is
missing there. It may come twice; its number tells.
"""

import json
from collections.abc import Container

from sentinel import __version__
from sentinel.core.model.incident import incident_id
from sentinel.core.model.message import Notice
from sentinel.core.model.moment import stamp
from sentinel.core.model.record import SENTINEL, Record
from sentinel.runtime.plan import Plan
from sentinel.store.outbox import Outbox
from sentinel.telemetry import events

CHANNEL = "audit/audit/0"

_AUDITED = frozenset(
    {
        events.DAEMON_STARTED,
        events.DAEMON_STOPPING,
        events.CONFIG_RELOADED,
        events.CONFIG_REFUSED,
        events.INTENT_PROPOSED,
        events.INTENT_HELD,
        events.INTENT_EXPIRED,
        events.INTENT_RESERVED,
        events.STEP_STARTED,
        events.STEP_DONE,
        events.INTENT_CLOSED,
        events.LIMIT_RESTORED,
    }
)


class Audit:
    def __init__(self, outbox: Outbox, plan: Plan, channels: Container[str]) -> None:
        self._outbox = outbox
        self.use(plan, channels)

    def use(self, plan: Plan, channels: Container[str]) -> None:
        self._plan, self._is_wanted = plan, CHANNEL in channels

    def note(self, record: Record, number: int) -> None:
        """Owe one line of history, if it is one of deeds; `number` is its own."""
        if self._is_wanted and (record.event in _AUDITED or record.by != SENTINEL):
            self._outbox.owe(CHANNEL, self._notice(record, number), None, record.at)

    def _notice(self, record: Record, number: int) -> Notice:
        facts = {name: fact for name, fact in record.facts.items() if fact is not None}
        line = {
            "number": number,
            "at": stamp(record.at),
            "event": record.event,
            "because": record.because,
            "by": record.by,
            "host": self._plan.host,
            "target": record.target,
            "incident": None if record.incident is None else incident_id(record.incident),
            "facts": json.loads(json.dumps(facts, default=str)),
            "config": self._plan.fingerprint[:12],
            "version": __version__,
        }
        return Notice(
            kind="audit", group_key="", group_labels={}, alerts=(), incident=None, line=line
        )
