"""What became of trouble that nothing was done about, and what that says of the remedy.

Pure hindsight: nothing is ever done because of it. It is what a person needs to know before
the mode is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sentinel.core.model.intent import Intent
from sentinel.core.model.launch import By, Launch
from sentinel.core.model.record import SENTINEL

PERSON_WITHIN = timedelta(hours=1)


class Verdict(StrEnum):
    HEALED = "healed"  # by itself, within the time that the step would have had
    PERSON = "person"  # did the same within the hour
    DONE = "done"  # by Sentinel itself, a little later
    WENT_ON = "went_on"  # or ended only long after


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """One step that was held at `at`, and what is known of the time since."""

    at: datetime
    deadline: datetime
    action: str
    resolved_at: datetime | None = None
    intents: Sequence[Intent] = ()  # of its incident
    launches: Sequence[Launch] = ()  # of its target, since then


def judge(seen: Hindsight, now: datetime) -> Verdict | None:
    """None while it is too early to say."""
    if (did := _same(seen)) is not None:
        return did
    if seen.resolved_at is not None and seen.resolved_at <= seen.deadline:
        return Verdict.HEALED
    return Verdict.WENT_ON if now - seen.at >= PERSON_WITHIN else None


def _same(seen: Hindsight) -> Verdict | None:
    for intent in seen.intents:
        if intent.wish.action == seen.action and intent.reserved_at is not None:
            by_sentinel = intent.wish.by == SENTINEL and intent.proposed_at is None
            return Verdict.DONE if by_sentinel else Verdict.PERSON
    for launch in seen.launches:
        if launch.by is By.OTHER and timedelta(0) < launch.started_at - seen.at <= PERSON_WITHIN:
            return Verdict.PERSON
    return None
