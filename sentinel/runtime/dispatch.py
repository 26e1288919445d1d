"""Between incidents and messages: what stands goes into the lifecycle, and the lifecycle's
memory onto disk.

By level: after each turn the lifecycle holds exactly what our rules say fires and what others
posted, whatever happened before. Nothing is flushed that is not written in the same
transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import uuid4

from sentinel.core.alerting.advance import ActiveAlert, Transition
from sentinel.core.dispatch.alert import INCIDENT, Alert, fingerprint
from sentinel.core.dispatch.board import Board
from sentinel.core.dispatch.dispatcher import Dispatcher, Due, Ear, Group, Routing
from sentinel.core.dispatch.receive import receive
from sentinel.core.dispatch.silence import Silence, expire, set_silence
from sentinel.core.model.command import ExpireSilence, PostedAlert, SetSilence
from sentinel.core.model.errors import Permanent
from sentinel.runtime.casebook import Case, Casebook
from sentinel.runtime.plan import Plan
from sentinel.runtime.posted import active_of, is_posted
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

_REDRAWN_AFTER = timedelta(seconds=30)  # intervals that mute begin and end with the minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One channel of a receiver."""

    channel: str
    is_machine: bool = False
    send_resolved: bool = True


Addresses = Mapping[str, Sequence[Address]]
"""The channels of each receiver."""


class Dispatch:
    def __init__(
        self,
        memory: Memory,
        casebook: Casebook,
        plan: Plan,
        addresses: Addresses,
        now: datetime,
    ) -> None:
        self._memory, self._casebook = memory, casebook
        self._plan, self._addresses = plan, addresses
        self._started_at = now
        self._board: tuple[Board | None, int] = (None, 0)
        self._latest: dict[str, ActiveAlert] = {}  # by fingerprint
        self._prints: dict[str, tuple[Mapping[str, str], str]] = {}  # by key of the alert
        self.read(now)

    def read(self, now: datetime) -> None:
        """Everything as it stands on disk."""
        kept = self._memory.dispatches
        self._core = Dispatcher(
            self._routing(),
            now,
            alerts=kept.alerts(),
            groups=kept.groups(),
            told=kept.told(),
            silences=self._memory.silences.all(),
        )

    def use(self, plan: Plan, addresses: Addresses, now: datetime) -> None:
        self._plan, self._addresses = plan, addresses
        self._prints.clear()
        self._core.use(self._routing(), now)

    def due_at(self) -> datetime | None:
        return self._core.due_at()

    def follow(self, active: Sequence[ActiveAlert], now: datetime) -> None:
        """Make what is told agree with what our own rules say."""
        self._latest = {}
        for alert in self._standing(active, now):
            print_ = self.print_of(alert)
            self._latest[print_] = alert
            known = self._core.alerts.get(print_)
            if known is None or known.is_resolved(now):
                self._core.put(self._told_as(alert, now), now)
        for print_, known in list(self._core.alerts.items()):
            if known.origin == "rule" and print_ not in self._latest and known.ends_at is None:
                self._core.put(replace(known, ends_at=now, updated_at=now), now)

    def post(
        self, posted: Sequence[PostedAlert], targets: Mapping[str, Target], now: datetime
    ) -> list[str]:
        """Take what others post; what is not valid is left out, and why is returned."""
        faults: list[str] = []
        for one in posted:
            try:
                self._take(one, targets, now)
            except Permanent as error:
                faults.append(error.message)
        self.write()
        return faults

    def lapsed(self, now: datetime) -> list[Transition]:
        """Posted alerts of open incidents that nobody has told us of for too long."""
        found: list[Transition] = []
        for case in self._casebook.cases.values():
            for alert in case.firing:
                if is_posted(alert):
                    known = self._core.alerts.get(fingerprint(alert.labels))
                    if known is None or known.is_resolved(now):
                        ended = replace(alert, state="resolved", resolved_at=now)
                        found.append(Transition("resolved", ended))
        return found

    def flush(self, now: datetime, closed: Sequence[Case] = ()) -> list[Due]:
        """What is owed now. `closed`: incidents that have just come to their end."""
        over = {case.incident.id for case in closed}
        if over:
            self._core.wake(lambda group: group.labels.get(INCIDENT) in over)
        due = self._core.flush(now, held=self._is_held)
        self._core.forget_old(now)
        self.write()
        return due

    def write(self) -> None:
        self._memory.dispatches.write(self._core.take_changes())

    def latest(self, alert: Alert) -> Alert:
        """`alert` with the annotations it has by now: its value may have changed."""
        active = self._latest.get(alert.fingerprint)
        return replace(alert, annotations=active.annotations) if active else alert

    def audience(self, case: Case, now: datetime) -> Iterator[Due]:
        """The channels that hear of this incident now, with the group each hears of it in."""
        prints = {self.print_of(alert) for alert in case.alerts.values() if alert.fired_at}
        return self._core.audience(prints, now)

    def set_silence(self, wanted: SetSilence, now: datetime) -> str:
        """The id it has from now on. Raises `Permanent` as Alertmanager would refuse it."""
        changed = set_silence(self._core.silences, wanted, now=now, new_id=lambda: str(uuid4()))
        self._silence(changed)
        return changed[-1].id

    def expire_silence(self, wanted: ExpireSilence, now: datetime) -> None:
        self._silence(expire(self._core.silences, wanted.id, now=now))

    def board(self, now: datetime) -> Board:
        """What stands now; drawn anew only when it may differ from the last one."""
        board, version = self._board
        if board is None or version != self._core.version or _ages(board, now):
            board = self._core.board(
                now,
                receivers=tuple(self._addresses),
                config=self._plan.as_alertmanager,
                started_at=self._started_at,
            )
            self._board = board, self._core.version
        return replace(board, at=now)

    def _routing(self) -> Routing:
        return Routing(
            root=self._plan.route,
            inhibit_rules=tuple(self._plan.inhibit_rules),
            intervals=self._plan.intervals,
            ears={
                receiver: tuple(
                    Ear(channel=address.channel, send_resolved=address.send_resolved)
                    for address in channels
                )
                for receiver, channels in self._addresses.items()
            },
        )

    def _standing(self, active: Sequence[ActiveAlert], now: datetime) -> Iterator[ActiveAlert]:
        yield from (alert for alert in active if alert.state == "firing")
        yield from self._casebook.flapping(now)

    def _told_as(self, alert: ActiveAlert, now: datetime) -> Alert:
        return Alert(
            labels={**self._plan.external_labels, **alert.labels},
            annotations=dict(alert.annotations),
            starts_at=alert.fired_at or alert.active_at,
            updated_at=now,
            incident=self._casebook.incident_of(alert.key),
        )

    def print_of(self, alert: ActiveAlert) -> str:
        if is_posted(alert):
            return fingerprint(alert.labels)
        known = self._prints.get(alert.key)
        if known is None or known[0] is not alert.labels:
            told = fingerprint({**self._plan.external_labels, **alert.labels})
            known = self._prints[alert.key] = (alert.labels, told)
        return known[1]

    def _take(self, one: PostedAlert, targets: Mapping[str, Target], now: datetime) -> None:
        known = self._core.alerts.get(fingerprint({n: v for n, v in one.labels.items() if v}))
        alert = receive(one, known, now, self._plan.resolve_timeout)
        if known is not None and known.origin == "rule":
            return  # somebody sends our own alert back to us
        was_firing = known is not None and not known.is_resolved(now)
        active = active_of(alert, now)
        if was_firing != (active.state == "firing"):
            transition = Transition("resolved" if was_firing else "firing", active)
            self._casebook.take([transition], targets, now)
        incident = self._casebook.incident_of(active.key) or alert.incident
        self._core.put(replace(alert, incident=incident), now)

    def _silence(self, changed: Sequence[Silence]) -> None:
        for silence in changed:
            self._memory.silences.save(silence)
        self._core.set_silences(changed)

    def _is_held(self, group: Group) -> bool:
        """Nothing is over in an incident before the incident is."""
        incident = group.labels.get(INCIDENT)
        return any(case.incident.id == incident for case in self._casebook.cases.values())


def _ages(board: Board, now: datetime) -> bool:
    """Whether time alone has changed something since it was drawn."""
    if now < board.at or now - board.at >= _REDRAWN_AFTER:
        return True
    edges = [edge for silence in board.silences for edge in (silence.starts_at, silence.ends_at)]
    edges += [each.alert.ends_at for each in board.alerts if each.alert.ends_at]
    return any(board.at < edge <= now for edge in edges)
