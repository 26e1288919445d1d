"""Alerts as a Prometheus posts them, and what Alertmanager would refuse of them.

What an Alertmanager's webhook posts is taken as well: the list is in its `alerts`. One bad
alert does not cost the others: the good ones are taken and the answer names the bad.
"""

import re

from sentinel.api.alertmanager.body import Fields, read_json
from sentinel.api.alertmanager.errors import WRONG_KIND, ApiError, missing, unreadable
from sentinel.core.model.command import PostedAlert

MOST = 10_000  # alerts in one request
_URI = re.compile(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:|/)(?:[^%\x00-\x1f\x7f]|%[0-9a-fA-F]{2})*")


def read_alerts(body: bytes) -> tuple[list[PostedAlert], list[str]]:
    """The good ones, and why the others are not. Raises `ApiError` if it is no list of alerts."""
    value = read_json("alerts", body)
    if value is None:
        return [], []
    if isinstance(value, dict):
        value = value.get("alerts")
    if not isinstance(value, list):
        raise unreadable("alerts", "it is not a list")
    if len(value) > MOST:
        raise ApiError(413, f"more than {MOST} alerts in one request")
    read = [_alert(index, item) for index, item in enumerate(value)]
    told = [why for alert in read if (why := _fault(alert))]
    return [alert for alert in read if not _fault(alert)], told


def _alert(index: int, value: object) -> PostedAlert:
    given = Fields("alerts", value)
    if not given.has("labels"):
        raise missing(f"{index}.labels")
    url = given.text("generatorURL")
    if url and _URI.fullmatch(url) is None:
        says = f'{index}.generatorURL in body must be of type uri: "{url}"'
        raise ApiError(422, says, code=WRONG_KIND)
    return PostedAlert(
        labels=given.texts("labels"),
        annotations=given.texts("annotations"),
        starts_at=given.time("startsAt"),
        ends_at=given.time("endsAt"),
        generator_url=url,
    )


def _fault(alert: PostedAlert) -> str:
    """Why Alertmanager would not take it; empty if it would."""
    starts, ends = alert.starts_at, alert.ends_at
    if starts is not None and ends is not None and ends < starts:
        return "start time must be before end time"
    if not alert.labels:
        return "at least one label pair required"
    for what, pairs in (("label set", alert.labels), ("annotations", alert.annotations)):
        if "" in pairs:
            return f'invalid {what}: invalid name ""'
    return ""
