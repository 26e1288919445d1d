"""Says what happened, once, in three places with the same words: the log, the timeline
of the incident, and the history of the target; and to the audit, if there is one.
"""

from datetime import datetime

import structlog

from sentinel.core.model.incident import incident_id
from sentinel.core.model.record import SENTINEL, Record
from sentinel.runtime.audit import Audit
from sentinel.store.incidents import Incidents

_log = structlog.get_logger("sentinel")


class History:
    def __init__(self, incidents: Incidents, audit: Audit) -> None:
        self._incidents, self.audit = incidents, audit

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
        record = Record(
            at=at,
            event=event,
            because=because,
            by=by,
            target=target,
            incident=incident,
            facts=facts,
        )
        self.audit.note(record, self._incidents.write(record))
        told = {"target": target, **facts}
        if incident is not None:
            told["incident"] = incident_id(incident)
        _log.info(
            event,
            because=because,
            by=by,
            **{key: value for key, value in told.items() if value is not None},
        )
