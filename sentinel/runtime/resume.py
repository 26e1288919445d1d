"""Goes on where the last evaluation that was written down left off.

After a restart of the daemon, and after a turn that could not be committed: what it decided
was never written, so it must be decided anew.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.evaluate import Evaluator, Setting
from sentinel.core.alerting.restore import restore
from sentinel.core.model.series import Store
from sentinel.runtime.plan import Plan
from sentinel.store.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What a loop that begins knows of what was before it."""

    watched_until: datetime | None  # when a loop over the same state last beat
    fed_since: datetime  # what the store does not hold from before then proves nothing
    has_looked: bool  # False: the daemon has just begun, and no target has been scraped yet


def evaluator_of(plan: Plan, store: Store, memory: Memory, now: datetime, past: Past) -> Evaluator:
    first_looks = 2 * plan.scrape_interval + plan.scrape_timeout
    return Evaluator(
        plan.rules,
        store,
        setting=setting_of(plan),
        seed=stored_alerts(memory, now, past.watched_until),
        observed_since=past.fed_since,
        blind_until=None if past.has_looked else now + first_looks,
    )


def stored_alerts(
    memory: Memory, now: datetime, watched_until: datetime | None
) -> list[ActiveAlert]:
    """The alerts on disk; the time in which nobody watched does not count for them."""
    until = min(watched_until, now) if watched_until else None
    return restore(
        [
            replace(alert, last_seen_at=max(alert.last_seen_at, until or alert.last_seen_at))
            for alert, _ in memory.alerts.all()
        ],
        now,
    )


def setting_of(plan: Plan) -> Setting:
    return Setting(interval=plan.evaluation_interval, external_labels=plan.external_labels)
