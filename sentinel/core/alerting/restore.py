"""What an outage of the observer does to alerts: time that nobody observed does not count.

A rule with `for: 5m` whose alert was pending for three minutes when Sentinel was killed,
and which runs again a minute later, fires six minutes after it first became true. What
fired still fires: only an evaluation can resolve it. Arithmetic on stored instants, so a
clock set back makes Sentinel more patient and never hastier.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sentinel.core.alerting.advance import ActiveAlert, unobserved

LONGEST_OUTAGE = timedelta(hours=1)
"""After a longer one a pending alert starts anew, as in Prometheus."""


def restore(stored: Iterable[ActiveAlert], now: datetime) -> list[ActiveAlert]:
    return [
        unobserved(alert, now)
        for alert in stored
        if alert.state != "pending" or now - alert.last_seen_at <= LONGEST_OUTAGE
    ]
