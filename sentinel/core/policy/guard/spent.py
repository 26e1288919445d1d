"""What has been done already: what is under way, cooldown, budgets, remedies that do not help."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sentinel.core.model.intent import Outcome
from sentinel.core.model.launch import By, Launch
from sentinel.core.policy.guard.situation import (
    Held,
    Situation,
    is_cured_at_start,
    span_of,
)

_IN_VAIN = (Outcome.FAILED, Outcome.ROLLED_BACK)
_VAIN_ALLOWED = 2  # in a row, for one cause
_CURES_ALLOWED = 5  # in seven days, for one cause, however they ended


def journal_unreadable(now: Situation) -> Held | None:
    if not now.journal_trouble:
        return None
    because = f"nothing can be written down ({now.journal_trouble}), so nothing is done"
    return Held(guard="journal_unreadable", because=because)


def open_intent(now: Situation) -> Held | None:
    if now.open_intent is None:
        return None
    wish = now.open_intent.wish
    return Held(
        guard="open_intent", because=f"{now.open_intent.id} ({wish.action}) is not settled yet"
    )


def ineffective(now: Situation) -> Held | None:
    """A chronic cause is a person's: what was tried for it has not taken it away."""
    cause = f" ({now.cause})" if now.cause else ""
    vain = 0
    for intent in reversed(now.remedied):
        if intent.outcome not in _IN_VAIN:
            break
        vain += 1
    if vain >= _VAIN_ALLOWED:
        because = f"the last {vain} remedies for the same cause{cause} did not help"
        return Held(guard="ineffective", because=because)
    if len(now.remedied) >= _CURES_ALLOWED:
        times = len(now.remedied)
        because = f"{times} remedies for the same cause{cause} in 7 days have not kept it away"
        return Held(guard="ineffective", because=because)
    return None


def cooldown(now: Situation) -> Held | None:
    mine = [intent for intent in now.recent if intent.wish.target == now.target]
    last = max((i.closed_at or i.reserved_at for i in mine if i.reserved_at), default=None)
    if last is None or now.now - last >= now.cooldown:
        return None
    how = "was decided" if any(intent.is_reserved for intent in mine) else "ended"
    return Held(
        guard="cooldown",
        because=f"the last action on it {how} at {last:%H:%M:%S} UTC; "
        f"it is left alone for {span_of(now.cooldown)}",
        until=last + now.cooldown,
    )


def budget_target(now: Situation) -> Held | None:
    spent = [i.reserved_at for i in now.recent if i.wish.target == now.target and i.reserved_at]
    if not is_cured_at_start(now):  # its own loop must not keep it from what ends that
        spent += dockers_restarts(now.launches)
    windows = (
        (timedelta(hours=1), now.budget.target_per_hour, "hour"),
        (timedelta(days=1), now.budget.target_per_day, "day"),
    )
    for span, allowed, name in windows:
        within = sorted(at for at in spent if now.now - at < span)
        if len(within) >= allowed:
            free_at = within[len(within) - allowed] + span if allowed else None
            return Held(
                guard="budget_target",
                because=f"{len(within)} restarts in the last {name} (Docker's own among them), "
                f"{allowed} are allowed",
                until=free_at,
            )
    return None


def dockers_restarts(launches: Sequence[Launch]) -> list[datetime]:
    """When Docker itself restarted a target, those between two looks among them."""
    found: list[datetime] = []
    before: Launch | None = None
    for launch in launches:
        if launch.by is By.DOCKER:
            same = before is not None and before.container_id == launch.container_id
            known = before.restart_count if before is not None and same else 0
            times = max(launch.restart_count - known, 1) if same else 1
            found += [launch.started_at] * times
        before = launch
    return found


def budget_host(now: Situation) -> Held | None:
    others = [i for i in now.recent if i.is_reserved and i.wish.target != now.target]
    if len(others) >= now.budget.host_at_once:
        names = ", ".join(sorted(i.wish.target for i in others))
        return Held(guard="budget_host", because=f"an action on {names} is not settled yet")
    within = sorted(
        i.reserved_at
        for i in now.recent
        if i.reserved_at and now.now - i.reserved_at < timedelta(hours=1)
    )
    allowed = now.budget.host_per_hour
    if len(within) < allowed:
        return None
    return Held(
        guard="budget_host",
        because=f"{len(within)} actions on this host in the last hour, {allowed} are allowed",
        until=within[len(within) - allowed] + timedelta(hours=1) if allowed else None,
    )
