"""Alerts that fire and end time and again: from when on an end counts as one.

What has fired is remembered on disk, so that a restart forgives nothing.
"""

from collections.abc import MutableMapping
from datetime import datetime

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.damp import FREE, WINDOW, Damper
from sentinel.store.dispatch import Dispatches

Flapping = MutableMapping[str, datetime]
"""By key of the alert: from when on its end counts."""


class Flaps:
    def __init__(self, dispatches: Dispatches) -> None:
        self._dispatches = dispatches
        self._damper = Damper()

    def read(self) -> None:
        """What has fired lately, as it stands on disk."""
        self._damper = Damper(self._dispatches.firings())

    def fired(self, flapping: Flapping, alert: ActiveAlert, now: datetime) -> bool:
        """True if that was once too often."""
        flapping.pop(alert.key, None)
        self._dispatches.fired(alert.key, now)
        self._dispatches.forget_firings(now - WINDOW)
        return self._damper.fired(alert.key, now) > FREE

    def ended(
        self, flapping: Flapping, alert: ActiveAlert, ended_at: datetime, now: datetime
    ) -> None:
        until = self._damper.counts_from(alert.key, ended_at)
        if until > now:
            flapping[alert.key] = until
