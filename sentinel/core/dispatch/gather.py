"""Groups of alerts, and when each has its next tick.

A group speaks only at its ticks. One without members is quiet but stays until the next
clean-up: an alert that comes back before it waits for the group's tick, not as a new group.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heapify, heappop, heappush

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.ledger import Group, GroupId, has_left
from sentinel.core.dispatch.route import Place, Route, group_key, places_of, routes_of

CLEANUP = timedelta(seconds=30)
LONG_AGO = datetime.min.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cleanups(now: datetime) -> int:
    """How many clean-ups there have been."""
    return (now - _EPOCH) // CLEANUP


@dataclass(slots=True, kw_only=True)
class OpenGroup:
    key: str
    place: Place
    labels: Mapping[str, str]
    next_at: datetime
    has_flushed: bool = False
    members: dict[str, None] = field(default_factory=dict)

    @property
    def id(self) -> GroupId:
        return self.key, self.route.receiver

    @property
    def route(self) -> Route:
        return self.place.route

    @property
    def wait(self) -> timedelta:
        return self.route.group_interval if self.has_flushed else self.route.group_wait

    def catch_up(self, now: datetime) -> None:
        """Skip ticks that are over, in step."""
        if self.has_flushed and self.next_at <= now:
            interval = self.route.group_interval
            self.next_at = now + interval - (now - self.next_at) % interval

    def as_kept(self) -> Group:
        return Group(
            key=self.key,
            receiver=self.route.receiver,
            route_key=self.place.key,
            labels=self.labels,
            next_at=self.next_at,
            has_flushed=self.has_flushed,
            members=tuple(self.members),
        )


class Groups:
    def __init__(self, now: datetime) -> None:
        self._root = Route(receiver="")
        self._groups: dict[GroupId, OpenGroup] = {}
        self._of: dict[str, tuple[GroupId, ...]] = {}  # by fingerprint
        self._ticks: list[tuple[datetime, GroupId]] = []
        self._empty: set[GroupId] = set()
        self._cleaned = cleanups(now)
        self._now = now
        self._changed: set[GroupId] = set()

    def __iter__(self) -> Iterator[OpenGroup]:
        return iter(self._groups.values())

    def __contains__(self, key: object) -> bool:
        return key in self._groups

    def of(self, print_: str) -> tuple[GroupId, ...]:
        """The groups that routes lead an alert to."""
        return self._of.get(print_, ())

    # --- members

    def put(self, alert: Alert, now: datetime) -> None:
        self.clean(now)
        ids = []
        for place in routes_of(self._root, alert.matched):
            labels, id_ = _named(place, alert)
            self._insert(self._open(place, labels, id_, now), alert, now)
            ids.append(id_)
        self._of[alert.fingerprint] = tuple(ids)

    def drop(self, group: OpenGroup, prints: Iterable[str]) -> None:
        for print_ in prints:
            del group.members[print_]
            self._changed.add(group.id)
        if not group.members:
            self._empty.add(group.id)

    def forget(self, print_: str) -> None:
        self._of.pop(print_, None)

    # --- time

    def due_at(self) -> datetime | None:
        while self._ticks and not self._is_tick(*self._ticks[0]):
            heappop(self._ticks)
        tick = self._ticks[0][0] if self._ticks else None
        cleanup = _EPOCH + (self._cleaned + 1) * CLEANUP if self._empty else None
        return min((at for at in (tick, cleanup) if at), default=None)

    def due(self, now: datetime) -> list[OpenGroup]:
        """The groups whose tick has come. Call `ticked` for each."""
        if now < self._now:
            self._schedule_all(now)
        self._now = now
        found: dict[GroupId, OpenGroup] = {}
        while self._ticks and self._ticks[0][0] <= now:
            at, id_ = heappop(self._ticks)
            if self._is_tick(at, id_):
                found[id_] = self._groups[id_]
        return list(found.values())

    def ticked(self, group: OpenGroup, now: datetime) -> None:
        if not group.has_flushed:
            group.has_flushed = True
            self._changed.add(group.id)
        self._schedule(group, now + group.route.group_interval)

    def spoke(self, group: OpenGroup) -> None:
        self._changed.add(group.id)

    def wake(self, group: OpenGroup) -> None:
        if group.members:
            self._schedule(group, LONG_AGO)
            self._changed.add(group.id)

    def clean(self, now: datetime) -> None:
        if cleanups(now) != self._cleaned:
            self._cleaned = cleanups(now)
            for id_ in self._empty:
                del self._groups[id_]
                self._changed.add(id_)
            self._empty.clear()

    # --- memory

    def use(
        self, root: Route, kept: Iterable[Group], alerts: Mapping[str, Alert], now: datetime
    ) -> None:
        """Group everything anew; groups that are still there keep their time."""
        self._regroup_all(root, kept, alerts, now)
        self._schedule_all(now)

    def resume(
        self, root: Route, kept: Iterable[Group], alerts: Mapping[str, Alert], now: datetime
    ) -> None:
        """As `use`, after a time in which nobody looked: no tick is made up for."""
        self._regroup_all(root, kept, alerts, now)
        for group in self:
            group.catch_up(now)
        self._schedule_all(now)

    def take_changes(self) -> tuple[tuple[Group, ...], tuple[GroupId, ...]]:
        """Groups to write, and groups to forget, since last asked."""
        changed, self._changed = self._changed, set()
        put = tuple(self._groups[id_].as_kept() for id_ in changed if id_ in self._groups)
        return put, tuple(id_ for id_ in changed if id_ not in self._groups)

    def _regroup_all(
        self, root: Route, kept: Iterable[Group], alerts: Mapping[str, Alert], now: datetime
    ) -> None:
        before = {group.id: group for group in kept}
        self._root, self._of = root, {}
        self._groups = self._reopened(before.values(), alerts)
        members = {id_: frozenset(group.members) for id_, group in before.items()}
        held = frozenset[str]().union(*members.values())
        for alert in alerts.values():
            self._regroup(alert, members, held, now)
        self._changed |= before.keys() | self._groups.keys()

    def _reopened(
        self, kept: Iterable[Group], alerts: Mapping[str, Alert]
    ) -> dict[GroupId, OpenGroup]:
        """Groups whose route is still there; in them, only who has left: nobody else knows."""
        places = {(place.key, place.route.receiver): place for place in places_of(self._root)}
        return {
            group.id: OpenGroup(
                key=group.key,
                place=places[group.route_key, group.receiver],
                labels=group.labels,
                next_at=group.next_at,
                has_flushed=group.has_flushed,
                members=dict.fromkeys(
                    print_
                    for print_ in group.members
                    if print_ in alerts and has_left(group.labels, alerts[print_])
                ),
            )
            for group in kept
            if (group.route_key, group.receiver) in places
        }

    def _regroup(
        self,
        alert: Alert,
        members: Mapping[GroupId, frozenset[str]],
        held: frozenset[str],
        now: datetime,
    ) -> None:
        """One that is over goes back only where that has not been told."""
        print_ = alert.fingerprint
        ids = []
        for place in routes_of(self._root, alert.matched):
            labels, id_ = _named(place, alert)
            ids.append(id_)
            if alert.is_resolved(now) and print_ not in members.get(id_, held):
                continue
            if id_ in members:
                self._open(place, labels, id_, now).members[print_] = None
            else:
                self._insert(self._open(place, labels, id_, now), alert, now)
        self._of[print_] = tuple(ids)

    # --- one group

    def _open(
        self, place: Place, labels: Mapping[str, str], id_: GroupId, now: datetime
    ) -> OpenGroup:
        if id_ not in self._groups:
            self._groups[id_] = OpenGroup(
                key=id_[0], place=place, labels=labels, next_at=now + place.route.group_wait
            )
            self._changed.add(id_)
        return self._groups[id_]

    def _insert(self, group: OpenGroup, alert: Alert, now: datetime) -> None:
        was_empty = not group.members
        if alert.fingerprint not in group.members:
            group.members[alert.fingerprint] = None
            self._changed.add(group.id)
        if was_empty:
            group.catch_up(now)
            self._empty.discard(group.id)
            self._schedule(group, group.next_at)
        waited = alert.starts_at + group.route.group_wait
        if not group.has_flushed and waited < now < group.next_at:
            self._schedule(group, now)
            self._changed.add(group.id)

    def _schedule(self, group: OpenGroup, at: datetime) -> None:
        group.next_at = at
        heappush(self._ticks, (at, group.id))

    def _is_tick(self, at: datetime, id_: GroupId) -> bool:
        group = self._groups.get(id_)
        return group is not None and group.next_at == at and bool(group.members)

    def _schedule_all(self, now: datetime) -> None:
        """A tick further off than a group ever waits comes from a clock that was ahead."""
        self._empty = {group.id for group in self if not group.members}
        for group in self:
            if group.next_at > now + group.wait:
                group.next_at = now
        self._ticks = [(group.next_at, group.id) for group in self if group.members]
        heapify(self._ticks)


def _named(place: Place, alert: Alert) -> tuple[Mapping[str, str], GroupId]:
    labels = place.route.group_labels(alert)
    return labels, (group_key(place.key, labels), place.route.receiver)
