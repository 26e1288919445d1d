"""A lifecycle on a clock of its own, with a disk that it can be brought back from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.dispatcher import Dispatcher, Due, Ear, Group, Routing
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.interval import Interval
from sentinel.core.dispatch.ledger import Changes, GroupId, Told, ToldId
from sentinel.core.dispatch.route import Route
from sentinel.core.dispatch.silence import Silence
from sentinel.core.model.labels import Matcher

START = datetime(2026, 1, 1, tzinfo=UTC)
EARS = (Ear(channel="a/0"), Ear(channel="a/1", send_resolved=False))
ROUTE = Route(
    receiver="a",
    group_by=frozenset({"g"}),
    group_wait=timedelta(seconds=2),
    group_interval=timedelta(seconds=10),
    repeat_interval=timedelta(seconds=60),
)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def alert(
    name: str,
    starts: float = 0,
    ends: float | None = None,
    *,
    incident: str | None = None,
    **labels: str,
) -> Alert:
    return Alert(
        labels={"alertname": name, **labels},
        annotations={},
        starts_at=at(starts),
        ends_at=None if ends is None else at(ends),
        updated_at=at(starts if ends is None else ends),
        incident=incident,
    )


def silence(number: int, starts: float, ends: float, *matchers: Matcher) -> Silence:
    return Silence(
        id=f"s{number}",
        matchers=matchers,
        starts_at=at(starts),
        ends_at=at(ends),
        updated_at=START,
        created_by="me",
        comment="",
    )


def routing(
    root: Route = ROUTE,
    rules: tuple[InhibitRule, ...] = (),
    intervals: dict[str, Interval] | None = None,
    ears: dict[str, tuple[Ear, ...]] | None = None,
) -> Routing:
    return Routing(
        root=root, inhibit_rules=rules, intervals=intervals or {}, ears=ears or {"a": EARS}
    )


@dataclass
class Disk:
    alerts: dict[str, Alert] = field(default_factory=dict)
    groups: dict[GroupId, Group] = field(default_factory=dict)
    told: dict[ToldId, Told] = field(default_factory=dict)

    def write(self, changes: Changes) -> None:
        self.alerts.update((one.fingerprint, one) for one in changes.alerts_put)
        self.groups.update((one.id, one) for one in changes.groups_put)
        self.told.update((one.id, one) for one in changes.told_put)
        for print_ in changes.alerts_forgotten:
            self.alerts.pop(print_, None)
        for group in changes.groups_forgotten:
            self.groups.pop(group, None)
        for told in changes.told_forgotten:
            self.told.pop(told, None)


@dataclass(frozen=True)
class Said:
    """A message, in short."""

    at: float
    channel: str
    firing: frozenset[str]  # alertnames
    resolved: frozenset[str] = frozenset()


def said(second: float, channel: str, firing: str = "", resolved: str = "") -> Said:
    return Said(second, channel, frozenset(firing), frozenset(resolved))


class Scene:
    def __init__(self, routes: Routing | None = None) -> None:
        self.routing = routes or routing()
        self.now = START
        self.disk = Disk()
        self.held: Callable[[Group], bool] = lambda _: False
        self.dues: list[tuple[datetime, Due]] = []
        self.silences: dict[str, Silence] = {}
        self.dispatcher = Dispatcher(self.routing, START)

    @property
    def said(self) -> list[Said]:
        return [
            Said(
                at=(at - START).total_seconds(),
                channel=due.channel,
                firing=frozenset(a.labels["alertname"] for a, over in due.alerts if not over),
                resolved=frozenset(a.labels["alertname"] for a, over in due.alerts if over),
            )
            for at, due in self.dues
        ]

    def heard_by(self, channel: str) -> list[Said]:
        return [one for one in self.said if one.channel == channel]

    def until(self, second: float) -> None:
        """Let time pass, looking whenever the lifecycle asks for it."""
        while (due := self.dispatcher.due_at()) is not None and due <= at(second):
            self.now = max(self.now, due)
            self.flush()
        self.now = at(second)
        self.flush()

    def put(self, *alerts: Alert) -> None:
        for one in alerts:
            self.dispatcher.put(one, self.now)
        self.flush()

    def hush(self, *silences: Silence) -> None:
        self.silences.update((one.id, one) for one in silences)
        self.dispatcher.set_silences(silences)

    def flush(self) -> None:
        self.dues += [(self.now, due) for due in self.dispatcher.flush(self.now, held=self.held)]
        self.dispatcher.forget_old(self.now)
        self.disk.write(self.dispatcher.take_changes())

    def die_and_come_back(self, routes: Routing | None = None) -> None:
        self.routing = routes or self.routing
        self.dispatcher = Dispatcher(
            self.routing,
            self.now,
            alerts=self.disk.alerts.values(),
            groups=self.disk.groups.values(),
            told=self.disk.told.values(),
            silences=self.silences.values(),
        )

    def played(self, steps: Iterable[tuple[float, Callable[["Scene"], None]]]) -> "Scene":
        for second, step in steps:
            self.until(second)
            step(self)
        return self
