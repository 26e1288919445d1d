"""Sends what the outbox owes, each channel in its order and at its pace.

The loop calls `pump` and `settled`; sends run elsewhere, through `submit`. A message is
marked sent only after the channel took it, so a kill in between repeats that one and loses
none: never mark first. What is held in memory here may be forgotten at any time.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from sentinel.core.model.errors import Permanent, SentinelError
from sentinel.core.voice.bundle import BUNDLED, bundle
from sentinel.ports import Notifier
from sentinel.store.outbox import LONGEST_WAIT, Outbox, Owed
from sentinel.telemetry import events

SHORTEST_RETRY = timedelta(seconds=1)
LONGEST_RETRY = timedelta(minutes=5)
GIVE_UP_AFTER = timedelta(hours=24)
CROWDED = 5
"""More than this many waiting in a channel that has a rate, and they become one message."""
MOST_BUNDLED = 50

Send = Callable[[], Coroutine[Any, Any, None]]
OnDone = Callable[[BaseException | None], None]
Submit = Callable[[Send, OnDone], None]
"""Runs a send on the network thread and calls the second with what it raised, or None."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most `count` messages in any span of `per`."""

    count: int
    per: timedelta


SLACK = Rate(1, timedelta(seconds=1))
WECOM = Rate(18, timedelta(minutes=1))  # WeCom's own limit is 20


@dataclass(frozen=True, slots=True)
class Channel:
    notifier: Notifier
    rate: Rate | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of one send: for the loop's inbox, and from there to `Deliver.settled`."""

    number: int
    error: BaseException | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """What happened to a message or a channel, for the loop to log, record and count."""

    event: str
    channel: str
    number: int
    incident: int | None
    because: str
    reason: str = ""  # transient | permanent | expired | …, if it was not sent


@dataclass(slots=True)
class _Pace:
    """When a channel last sent. Times ahead of now are of a clock since set back."""

    rate: Rate
    starts: deque[datetime] = field(default_factory=deque)

    def free_at(self, now: datetime) -> datetime:
        recent = [at for at in self.starts if now - self.rate.per < at <= now]
        return now if len(recent) < self.rate.count else recent[0] + self.rate.per

    def started(self, now: datetime) -> None:
        self.starts.append(now)
        while len(self.starts) > self.rate.count:
            self.starts.popleft()


class Deliver:
    def __init__(
        self,
        outbox: Outbox,
        channels: Mapping[str, Channel],
        submit: Submit,
        inbox: Callable[[Settled], None],
        *,
        fallback: Sequence[str] = (),
    ) -> None:
        self._outbox = outbox
        self._submit = submit
        self._inbox = inbox
        self._flying: dict[str, tuple[Owed, ...]] = {}  # by channel; several if bundled
        self._paces: dict[str, _Pace] = {}
        self.use(channels, fallback=fallback)

    def use(self, channels: Mapping[str, Channel], *, fallback: Sequence[str] = ()) -> None:
        """Go on with these channels; after a reload, none of them counts as disabled."""
        self._channels = dict(channels)
        self._fallback = tuple(fallback)
        self._disabled: set[str] = set()
        paces = {name: _Pace(channel.rate) for name, channel in channels.items() if channel.rate}
        kept = {name: pace for name, pace in self._paces.items() if name in paces}
        self._paces = paces | {n: pace for n, pace in kept.items() if pace.rate == paces[n].rate}

    @property
    def disabled(self) -> frozenset[str]:
        """Channels whose receiver refused the last message for good, whatever it had said."""
        return frozenset(self._disabled)

    def condition(self) -> dict[str, bool]:
        """Of each channel: whether messages get through, as far as is known."""
        stuck = {backlog.channel for backlog in self._outbox.backlogs() if backlog.attempts}
        return {name: name not in stuck and name not in self._disabled for name in self._channels}

    def pump(self, now: datetime) -> list[Delivery]:
        """Start whatever may be sent now: one message of each channel at most."""
        told: list[Delivery] = []
        while dropped := [
            delivery for head in self._outbox.due(now) for delivery in self._advance(head, now)
        ]:
            told += dropped  # and look again: what stood behind may go
        return told

    def wake_at(self, now: datetime) -> datetime | None:
        """When `pump` next has something to start, unless a send ends before; None: not known."""
        waits = [
            max(now if head.is_due(now) else head.due_at, self._free_at(head.channel, now))
            for head in self._outbox.heads()
            if head.channel not in self._flying
        ]
        return min(waits, default=None)

    def settled(self, number: int, error: BaseException | None, now: datetime) -> list[Delivery]:
        """Write down what came of a send. The loop pumps after it: the next may go."""
        flown = self._landed(number)
        owed = self._outbox.get(number)
        if owed is None:
            return []
        together = flown or (owed,)
        if error is None:
            return [told for one in together for told in self._sent(one, now)]
        return self._disabling(owed, error) + self._failed(together, error, now)

    def _advance(self, head: Owed, now: datetime) -> list[Delivery]:
        channel = self._channels.get(head.channel)
        if head.channel in self._flying or self._free_at(head.channel, now) > now:
            return []
        if head.notice is None:
            return self._dropped(head, "what is stored of it cannot be read", "unreadable", now)
        if channel is None:
            return self._dropped(head, "its receiver is no longer configured", "no_receiver", now)
        self._start(channel, self._together(head, channel), now)
        return []

    def _together(self, head: Owed, channel: Channel) -> tuple[Owed, ...]:
        """`head`, and what goes with it in one message because the channel is crowded."""
        if channel.rate is None or self._outbox.owed_count(head.channel) <= CROWDED:
            return (head,)
        waiting = self._outbox.waiting(head.channel, MOST_BUNDLED)
        alike = takewhile(lambda owed: owed.notice and owed.notice.kind in BUNDLED, waiting)
        return tuple(alike) or (head,)

    def _start(self, channel: Channel, flying: tuple[Owed, ...], now: datetime) -> None:
        head = flying[0]
        self._flying[head.channel] = flying
        if pace := self._paces.get(head.channel):
            pace.started(now)
        notices = [owed.notice for owed in flying if owed.notice]
        notice = notices[0] if len(notices) == 1 else bundle(notices)
        self._submit(
            lambda: channel.notifier.send(notice),
            lambda error: self._inbox(Settled(head.number, error)),
        )

    def _landed(self, number: int) -> tuple[Owed, ...]:
        for name, flown in self._flying.items():
            if flown[0].number == number:
                return self._flying.pop(name)
        return ()

    def _sent(self, owed: Owed, now: datetime) -> list[Delivery]:
        self._outbox.sent(owed.number, now)
        after = f" at attempt {owed.attempts + 1}" if owed.attempts else ""
        told = [_tell(events.MESSAGE_SENT, owed, f"{owed.channel} took it{after}")]
        if owed.channel in self._disabled:
            self._disabled.discard(owed.channel)
            told.append(_tell(events.RECEIVER_BACK, owed, f"{owed.channel} takes messages again"))
        return told

    def _disabling(self, owed: Owed, error: BaseException) -> list[Delivery]:
        """Each message is still offered once to a disabled channel: that is how it comes back."""
        if owed.channel in self._disabled or not _facts(error).get("receiver_refused"):
            return []
        self._disabled.add(owed.channel)
        hint = error.hint if isinstance(error, SentinelError) else ""
        because = ". ".join(part for part in (_in_words(error), hint) if part)
        return [_tell(events.RECEIVER_DISABLED, owed, because, "permanent")]

    def _failed(
        self, together: tuple[Owed, ...], error: BaseException, now: datetime
    ) -> list[Delivery]:
        owed = together[0]
        if reason := _gives_up(owed, error, now):
            refused = together if reason == "permanent" else (owed,)
            return [d for one in refused for d in self._dropped(one, _in_words(error), reason, now)]
        wait = back_off(owed.attempts + 1, _facts(error).get("retry_after"))
        self._outbox.retry(owed.number, now + wait, _in_words(error))
        because = f"{_in_words(error)}; trying again in {wait.total_seconds():g} s"
        return [_tell(events.MESSAGE_RETRIED, owed, because, "transient")]

    def _dropped(self, owed: Owed, because: str, reason: str, now: datetime) -> list[Delivery]:
        """Dropped here; and owed to the fallback, unless this is it. The audit is nobody else's."""
        self._outbox.drop(owed.number, now, because)
        told = owed.notice is not None and owed.notice.kind != "audit"
        if owed.notice is not None and told and owed.channel not in self._fallback:
            for name in self._fallback:
                self._outbox.owe(name, owed.notice, owed.incident, now)
        return [_tell(events.MESSAGE_DROPPED, owed, because, reason)]

    def _free_at(self, channel: str, now: datetime) -> datetime:
        pace = self._paces.get(channel)
        return pace.free_at(now) if pace else now


def back_off(attempt: int, retry_after: float | None = None) -> timedelta:
    """How long to wait after the `attempt`-th failure: 1 s, 2 s, 4 s … 5 min.

    Longer if the other side asked for it, and then up to an hour.
    """
    own = min(SHORTEST_RETRY * 2.0 ** min(max(attempt, 1) - 1, 30), LONGEST_RETRY)
    asked = timedelta(seconds=min(retry_after or 0.0, LONGEST_WAIT.total_seconds()))
    return max(own, asked)


def _gives_up(owed: Owed, error: BaseException, now: datetime) -> str:
    """Why there will be no further attempt; "" if there will."""
    if isinstance(error, Permanent):
        return "permanent"
    if owed.attempts + 1 >= _facts(error).get("at_most", float("inf")):
        return "too_often"
    return "expired" if now - owed.queued_at >= GIVE_UP_AFTER else ""


def _facts(error: BaseException) -> dict[str, Any]:
    return error.facts if isinstance(error, SentinelError) else {}


def _in_words(error: BaseException) -> str:
    """Only our own errors are quoted: the text of any other may hold a secret."""
    if isinstance(error, SentinelError):
        return error.message
    return f"the send failed ({type(error).__name__})"


def _tell(event: str, owed: Owed, because: str, reason: str = "") -> Delivery:
    return Delivery(
        event=event,
        channel=owed.channel,
        number=owed.number,
        incident=owed.incident,
        because=because,
        reason=reason,
    )
