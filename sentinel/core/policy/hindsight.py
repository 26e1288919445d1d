"""What became of trouble that nothing was done about, and what that says of the remedy.

Pure hindsight: nothing is ever done because of it. It is what a person needs to know before
the mode is raised.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sentinel.core.model.intent import Action, Intent
from sentinel.core.model.launch import By, EndedAs, Launch
from sentinel.core.model.record import SENTINEL
from sentinel.core.recreate.arguments import Found, max_num_seqs_of
from sentinel.core.recreate.commandline import CommandLine

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
    under_way: Launch | None = None  # the one it was in


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
    return Verdict.PERSON if _person_did(seen) else None


def _person_did(seen: Hindsight) -> bool:
    if seen.action == Action.STOP_LOOP:
        ends = [launch.ending for launch in (seen.under_way, *seen.launches) if launch is not None]
        stops = (end.at for end in ends if end is not None and end.kind is EndedAs.PERSON)
        return any(at is not None and _is_soon(at, seen) for at in stops)
    started = [one for one in seen.launches if one.by is By.OTHER]
    if seen.action == Action.LOWER_MAX_NUM_SEQS:
        started = [one for one in started if _is_lower(one, seen.under_way)]
    return any(_is_soon(launch.started_at, seen) for launch in started)


def _is_soon(at: datetime, seen: Hindsight) -> bool:
    return timedelta(0) < at - seen.at <= PERSON_WITHIN


def _is_lower(launch: Launch, before: Launch | None) -> bool:
    limit, was = _limit_of(launch), _limit_of(before) if before is not None else None
    return limit is not None and (was is None or limit < was)


def _limit_of(launch: Launch) -> int | None:
    found = max_num_seqs_of(CommandLine(command=launch.argv))
    return found.value if isinstance(found, Found) else None
