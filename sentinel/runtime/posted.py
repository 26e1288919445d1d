"""Alerts that others post, in the form in which incidents hold alerts.

They come from no rule of ours: nothing re-evaluates them, so they live where the lifecycle
keeps them and in no other table.
"""

from datetime import datetime

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.dispatch.alert import Alert

_PREFIX = "posted/"


def active_of(alert: Alert, now: datetime) -> ActiveAlert:
    resolved = alert.is_resolved(now)
    return ActiveAlert(
        key=_PREFIX + alert.fingerprint,
        alertname=alert.labels.get("alertname", ""),
        labels=alert.labels,
        annotations=alert.annotations,
        state="resolved" if resolved else "firing",
        value=float("nan"),
        active_at=alert.starts_at,
        fired_at=alert.starts_at,
        resolved_at=alert.ends_at if resolved else None,
        last_seen_at=alert.updated_at,
        rule="",
    )


def is_posted(alert: ActiveAlert) -> bool:
    return alert.key.startswith(_PREFIX)
