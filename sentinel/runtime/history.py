"""Says what happened, once, in three places with the same words: the log, the timeline
of the incident, and the history of the target.
"""

from datetime import datetime

import structlog

from sentinel.core.model.incident import incident_id
from sentinel.core.model.record import SENTINEL, Record
from sentinel.store.incidents import Incidents

_log = structlog.get_logger("sentinel")


class History:
    def __init__(self, incidents: Incidents) -> None:
        self._incidents = incidents

    def write(
        self,
        event: str,
        because: str,
        *,
        at: datetime,
        target: str | None = None,
        incident: int | None = None,
        by: str = SENTINEL,
        **facts: object,
    ) -> None:
        self._incidents.write(
            Record(
                at=at,
                event=event,
                because=because,
                by=by,
                target=target,
                incident=incident,
                facts=facts,
            )
        )
        told = {"target": target, **facts}
        if incident is not None:
            told["incident"] = incident_id(incident)
        _log.info(
            event,
            because=because,
            by=by,
            **{key: value for key, value in told.items() if value is not None},
        )
