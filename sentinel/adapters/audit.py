"""The audit, to any HTTP endpoint: each line by itself, in order, as one JSON object.

Its own words, not Alertmanager's: there is no alert in it. Answers are sorted as a webhook's.
"""

from datetime import timedelta

import aiohttp

from sentinel.core.model.message import Notice
from sentinel.outbound import WITHIN, Secret, post, refusal


class AuditNotifier:
    """Keeps the `Notifier` promise."""

    def __init__(
        self, url: Secret, http: aiohttp.ClientSession, *, timeout: timedelta = WITHIN
    ) -> None:
        self._url, self._http, self._timeout = url, http, timeout

    async def send(self, notice: Notice) -> None:
        to = "audit"
        reply = await post(self._http, self._url, notice.line, to=to, within=self._timeout)
        if reply.status // 100 != 2:
            raise refusal(reply, to=to)
