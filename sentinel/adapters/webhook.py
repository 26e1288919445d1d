"""Any HTTP endpoint, in the form Alertmanager gives its own webhooks (version 4).

Whoever reads Alertmanager's webhook reads this one unchanged; what only Sentinel knows is
under one more key, `sentinel`. Answers are sorted as Alertmanager sorts them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import aiohttp

from sentinel.core.model.message import AlertFacts, Notice
from sentinel.outbound import WITHIN, Secret, post, refusal


class WebhookNotifier:
    """Keeps the `Notifier` promise."""

    def __init__(
        self,
        url: Secret,
        http: aiohttp.ClientSession,
        *,
        receiver: str,
        external_url: str = "",
        max_alerts: int = 0,
        timeout: timedelta = WITHIN,
    ) -> None:
        self._url = url
        self._http = http
        self._receiver = receiver
        self._external_url = external_url
        self._max_alerts = max_alerts  # 0: all
        self._timeout = timeout

    async def send(self, notice: Notice) -> None:
        to = f"webhook of {self._receiver}"
        reply = await post(self._http, self._url, self.payload(notice), to=to, within=self._timeout)
        if reply.status // 100 != 2:
            raise refusal(reply, to=to)

    def payload(self, notice: Notice) -> dict[str, Any]:
        told = notice.alerts[: self._max_alerts] if self._max_alerts else notice.alerts
        firing = any(alert.status == "firing" for alert in notice.alerts)
        return {
            "version": "4",
            "groupKey": notice.group_key,
            "truncatedAlerts": len(notice.alerts) - len(told),
            "status": "firing" if firing else "resolved",
            "receiver": self._receiver,
            "groupLabels": notice.group_labels,
            "commonLabels": _common(alert.labels for alert in told),
            "commonAnnotations": _common(alert.annotations for alert in told),
            "externalURL": self._external_url,
            "alerts": [_alert(alert) for alert in told],
            "sentinel": {
                "incident": _without_timeline(notice.incident),
                "kind": notice.kind,
                "decision": asdict(notice.decision) if notice.decision else None,
            },
        }


def _alert(alert: AlertFacts) -> dict[str, Any]:
    return {
        "status": alert.status,
        "labels": alert.labels,
        "annotations": alert.annotations,
        "startsAt": alert.starts_at,
        "endsAt": alert.ends_at,
        "generatorURL": alert.generator_url,
        "fingerprint": alert.fingerprint,
    }


def _common(sets: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """What all of `sets` say alike."""
    first, *others = list(sets) or [{}]
    return {
        name: value
        for name, value in first.items()
        if all(other.get(name) == value for other in others)
    }


def _without_timeline(incident: dict[str, Any] | None) -> dict[str, Any] | None:
    if incident is None:
        return None
    return {key: value for key, value in incident.items() if key != "timeline"}
