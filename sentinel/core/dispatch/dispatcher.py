"""Alertmanager's lifecycle: alerts go in, messages that are owed come out.

By value and by level: everything is in what is kept on disk (`take_changes`), so a daemon that
is killed between any two calls goes on as if it had not been. Ticks that were missed are not
made up for. What was told is noted when a message is owed; to deliver it is another's duty.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush

from sentinel.core.dispatch.alert import INCIDENT, Alert
from sentinel.core.dispatch.board import Board, Gathering, Standing
from sentinel.core.dispatch.due import Due, Ear, Routing, Seen, why
from sentinel.core.dispatch.gather import Groups, OpenGroup, cleanups
from sentinel.core.dispatch.ledger import Changes, Group, Told, ToldId, has_left
from sentinel.core.dispatch.mute import Mutes
from sentinel.core.dispatch.order import alert_order, label_order
from sentinel.core.dispatch.silence import Silence

__all__ = ["Changes", "Dispatcher", "Due", "Ear", "Group", "Routing", "Told"]

KEEP_RESOLVED = timedelta(minutes=30)
"""How long an alert that is over, and told, can still be merged with one that comes late."""

KEEP_TOLD = timedelta(hours=120)


class Dispatcher:
    def __init__(
        self,
        routing: Routing,
        now: datetime,
        *,
        alerts: Iterable[Alert] = (),
        groups: Iterable[Group] = (),
        told: Iterable[Told] = (),
        silences: Iterable[Silence] = (),
    ) -> None:
        self._alerts = {alert.fingerprint: alert for alert in alerts}
        self._told = {one.id: one for one in told}
        self._mutes = Mutes(silences)
        self._groups = Groups(now)
        self._ends = [(a.ends_at, a.fingerprint) for a in self._alerts.values() if a.ends_at]
        heapify(self._ends)
        self._tidied = cleanups(now)
        self.version = 0  # another number, another board, but for what time alone changes
        self._changed_alerts: set[str] = set()
        self._changed_told: set[ToldId] = set()
        self._listen(routing)
        self._groups.resume(routing.root, groups, self._alerts, now)

    @property
    def alerts(self) -> Mapping[str, Alert]:
        return self._alerts

    @property
    def silences(self) -> Mapping[str, Silence]:
        return self._mutes.silences

    @property
    def groups(self) -> Sequence[Group]:
        return [group.as_kept() for group in self._groups]

    @property
    def told(self) -> Sequence[Told]:
        return list(self._told.values())

    # --- what comes in

    def put(self, alert: Alert, now: datetime) -> None:
        """Take an alert as it is now; who calls has merged it with what is known of it."""
        self.version += 1
        print_ = alert.fingerprint
        if (known := self._alerts.get(print_)) is not None:
            self._mutes.inhibitor.forget(known)
        self._alerts[print_] = alert
        self._mutes.inhibitor.put(alert)
        self._groups.put(alert, now)
        if alert.ends_at is not None:
            heappush(self._ends, (alert.ends_at, print_))
        self._changed_alerts.add(print_)

    def set_silences(self, changed: Iterable[Silence]) -> None:
        self.version += 1
        self._mutes.set_silences(changed)

    def use(self, routing: Routing, now: datetime) -> None:
        """Go on with another configuration."""
        self.version += 1
        self._listen(routing)
        self._groups.use(routing.root, self.groups, self._alerts, now)

    def wake(self, predicate: Callable[[Group], bool]) -> None:
        """Let these groups tick at the next `flush`."""
        for group in self._groups:
            if predicate(group.as_kept()):
                self._groups.wake(group)

    # --- what goes out

    def due_at(self) -> datetime | None:
        """When to call `flush`, and look for alerts that have ended, at the latest."""
        while self._ends and not self._is_end(*self._ends[0]):
            heappop(self._ends)
        ends = [self._ends[0][0]] if self._ends else []
        tick = self._groups.due_at()
        return min([*ends, tick] if tick else ends, default=None)

    def flush(self, now: datetime, *, held: Callable[[Group], bool] = lambda _: False) -> list[Due]:
        """Every message owed now.

        A group that is `held` is not over yet, even if none of its alerts fires.
        """
        while self._ends and self._ends[0][0] <= now:
            heappop(self._ends)
        ticking = self._groups.due(now)
        self.version += bool(ticking)
        owed = [due for group in ticking for due in self._tick(group, now, held)]
        self._groups.clean(now)
        return owed

    def audience(self, prints: Collection[str], now: datetime) -> Iterator[Due]:
        """Who would hear now of the groups that have one of these alerts."""
        for group in self._groups:
            if not any(print_ in group.members for print_ in prints):
                continue
            heard = self._heard(group, self._seen(group, now), now)
            for ear in self._ears.get(group.route.receiver, ()) if heard else ():
                yield _due(group, ear, heard)

    def board(
        self, now: datetime, *, receivers: Sequence[str], config: str, started_at: datetime
    ) -> Board:
        standing = {
            print_: self._standing(alert, now)
            for print_, alert in self._alerts.items()
            if not alert.is_resolved(now)
        }
        return Board(
            at=now,
            alerts=tuple(standing[print_] for print_ in sorted(standing)),
            groups=tuple(self._gatherings(standing, now)),
            silences=tuple(self.silences.values()),
            receivers=tuple(receivers),
            config=config,
            started_at=started_at,
        )

    # --- memory

    def take_changes(self) -> Changes:
        """What must be written since last asked."""
        alerts, self._changed_alerts = self._changed_alerts, set()
        told, self._changed_told = self._changed_told, set()
        groups_put, groups_forgotten = self._groups.take_changes()
        return Changes(
            alerts_put=tuple(self._alerts[one] for one in alerts if one in self._alerts),
            alerts_forgotten=tuple(one for one in alerts if one not in self._alerts),
            groups_put=groups_put,
            groups_forgotten=groups_forgotten,
            told_put=tuple(self._told[one] for one in told if one in self._told),
            told_forgotten=tuple(one for one in told if one not in self._told),
        )

    def forget_old(self, now: datetime) -> None:
        """Let go of what nobody will ask for again; looks at most once per clean-up."""
        if cleanups(now) == self._tidied:
            return
        self._tidied = cleanups(now)
        held = {print_ for group in self._groups for print_ in group.members}
        for alert in list(self._alerts.values()):
            if alert.fingerprint not in held and alert.is_resolved(now - KEEP_RESOLVED):
                self._forget(alert)
        keys = {group.key for group in self._groups}
        for one in list(self._told.values()):
            if one.group_key not in keys and one.at < now - KEEP_TOLD:
                del self._told[one.id]
                self._changed_told.add(one.id)

    def _forget(self, alert: Alert) -> None:
        self.version += 1
        del self._alerts[alert.fingerprint]
        self._mutes.inhibitor.forget(alert)
        self._groups.forget(alert.fingerprint)
        self._changed_alerts.add(alert.fingerprint)

    def _listen(self, routing: Routing) -> None:
        self._ears = routing.ears
        self._mutes.use(routing.inhibit_rules, routing.intervals, self._alerts.values())

    def _is_end(self, at: datetime, print_: str) -> bool:
        alert = self._alerts.get(print_)
        return alert is not None and alert.ends_at == at

    # --- one group

    def _tick(
        self, group: OpenGroup, now: datetime, held: Callable[[Group], bool]
    ) -> Iterator[Due]:
        self._groups.ticked(group, now)
        seen = self._seen(group, now)
        over = [alert.fingerprint for alert, is_resolved in seen if is_resolved]
        if len(over) == len(seen) and held(group.as_kept()):
            return
        yield from self._told_now(group, self._heard(group, seen, now), now)
        self._groups.drop(group, over)

    def _seen(self, group: OpenGroup, now: datetime) -> list[Seen]:
        return [_seen(group, self._alerts[print_], now) for print_ in group.members]

    def _heard(self, group: OpenGroup, seen: list[Seen], now: datetime) -> list[Seen]:
        if self._mutes.muted_by(group.route, now):
            return []
        return [one for one in seen if not self._mutes.are_on(one[0], now)]

    def _told_now(self, group: OpenGroup, heard: list[Seen], now: datetime) -> Iterator[Due]:
        if not heard:
            return
        resolved = frozenset(alert.fingerprint for alert, is_resolved in heard if is_resolved)
        firing = frozenset(alert.fingerprint for alert, is_resolved in heard if not is_resolved)
        for ear in self._ears.get(group.route.receiver, ()):
            told = self._told.get((group.key, ear.channel))
            because = why(firing, resolved, told, ear, now - group.route.repeat_interval)
            if because is None:
                continue
            told_now = Told(
                group_key=group.key, channel=ear.channel, firing=firing, resolved=resolved, at=now
            )
            self._told[told_now.id] = told_now
            self._changed_told.add(told_now.id)
            self._groups.spoke(group)
            if firing or ear.send_resolved:
                new = firing - told.firing if told else firing
                yield replace(_due(group, ear, heard), is_repeat=because == "repeat", new=new)

    # --- the board

    def _standing(self, alert: Alert, now: datetime) -> Standing:
        return Standing(
            alert=alert,
            receivers=tuple(
                dict.fromkeys(receiver for _, receiver in self._groups.of(alert.fingerprint))
            ),
            silenced_by=self._mutes.silenced_by(alert, now),
            inhibited_by=self._mutes.inhibited_by(alert, now),
        )

    def _gatherings(self, standing: Mapping[str, Standing], now: datetime) -> list[Gathering]:
        found = []
        for group in self._groups:
            alerts = [
                standing[print_]
                for print_ in group.members
                if print_ in standing and not has_left(group.labels, standing[print_].alert)
            ]
            if alerts:
                found.append(
                    Gathering(
                        labels=group.labels,
                        receiver=group.route.receiver,
                        alerts=tuple(sorted(alerts, key=lambda one: alert_order(one.alert.labels))),
                        muted_by=self._mutes.muted_by(group.route, now),
                    )
                )
        return sorted(found, key=lambda one: (label_order(one.labels), one.receiver))


def _seen(group: OpenGroup, alert: Alert, now: datetime) -> Seen:
    """One that has left for another incident is over in the one that this group tells of."""
    if not has_left(group.labels, alert):
        return alert, alert.is_resolved(now)
    ends_at = min(alert.starts_at, now)
    return replace(alert, ends_at=ends_at, incident=group.labels[INCIDENT]), True


def _due(group: OpenGroup, ear: Ear, heard: list[Seen]) -> Due:
    sent = [_as_told(one) for one in heard if ear.send_resolved or not one[1]]
    return Due(
        channel=ear.channel,
        receiver=group.route.receiver,
        group_key=group.key,
        group_labels=group.labels,
        alerts=tuple(sorted(sent, key=lambda one: alert_order(one[0].labels))),
    )


def _as_told(seen: Seen) -> Seen:
    """When an alert that fires will be given up on is nobody's business."""
    alert, is_resolved = seen
    return seen if is_resolved or alert.ends_at is None else (replace(alert, ends_at=None), False)
