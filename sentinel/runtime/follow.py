"""Follows the log of every target from the last line that was taken, whoever restarts what.

Streams live on a thread of their own; what they tell waits in a `Tail` until the loop's next
turn, which writes it down with the place to go on from, in one transaction. Only what cannot
wait (death, memory that ran out) calls for a turn.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from sentinel.core.diagnosis.traces import Launch as LogLaunch
from sentinel.core.logrecords import Record, moment_of
from sentinel.core.model.errors import Permanent
from sentinel.core.model.launch import Launch
from sentinel.ports import Clock, ContainerLogs
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.ledger import Ledger
from sentinel.runtime.net import NetAnswer
from sentinel.runtime.tail import Tail
from sentinel.runtime.target import Target
from sentinel.store.logbook import Position
from sentinel.store.memory import Memory

_FOR_EVER = 1e9  # seconds
_SOON, _AT_MOST, _HOPELESS = 1.0, 60.0, 3600.0  # seconds until a log is asked for again
_WRITE_EVERY = timedelta(minutes=1)  # positions past which nothing was counted
_BEFORE_ITS_START = timedelta(seconds=1)  # the engine says "started" after the first line


class Submit(Protocol):
    def __call__(
        self,
        work: Callable[[], Coroutine[Any, Any, None]],
        *,
        deadline: float,
        deliver: Callable[[NetAnswer[None]], Any],
    ) -> None: ...


class _DroppedError(Exception):
    """Nobody wants to know any more."""


@dataclass(slots=True)
class _Stream:
    """The reading of one log, as the loop knows it."""

    tail: Tail
    is_open: bool = False
    ended: tuple[datetime, datetime | None] | None = None  # the launch and end it was read to
    not_before: float = 0.0  # monotonic
    wait: float = _SOON
    trouble: str = ""  # why its log can never be read


class Follower:
    def __init__(
        self,
        logs: ContainerLogs,
        submit: Submit,
        memory: Memory,
        ledger: Ledger,
        inbox: Inbox,
        clock: Clock,
    ) -> None:
        self._logs, self._submit, self._memory = logs, submit, memory
        self._ledger, self._inbox, self._clock = ledger, inbox, clock
        self._streams: dict[str, _Stream] = {}  # by container id
        self._names: dict[str, str] = {}
        self._began = clock.now()
        self._written_at = self._began
        self.on_detached: Callable[[Target, str], None] = nobody  # told the line that says so

    def take(self, targets: Mapping[str, Target], now: datetime) -> None:
        """Write down what the logs told. Belongs into the transaction of a turn."""
        is_time = not timedelta(0) <= now - self._written_at < _WRITE_EVERY
        if is_time:
            self._written_at = now
        for target in targets.values():
            stream = self._streams.get(target.container.id)
            if stream is not None:
                self._take_one(target, stream.tail, now, is_time=is_time)

    def follow(self, targets: Mapping[str, Target], now: datetime) -> None:
        """Open what should be followed and is not. What a turn published stands by then."""
        wanted = {t.container.id: t for t in targets.values() if t.launch and not t.is_gone}
        for gone in self._streams.keys() - wanted.keys():
            self._streams.pop(gone).tail.dropped = True
        self._names = {one: target.name for one, target in wanted.items()}
        tick = self._clock.monotonic()
        for target in wanted.values():
            self._follow_one(target, now, tick)

    def launch(self, container_id: str, started_at: datetime) -> LogLaunch | None:
        """What the log told of one launch, as far as it was followed."""
        stream = self._streams.get(container_id)
        return stream.tail.launch(started_at) if stream else None

    def problems(self) -> Iterator[str]:
        for container_id, stream in self._streams.items():
            if stream.trouble and container_id in self._names:
                yield f"{self._names[container_id]}: {stream.trouble}"

    def _take_one(self, target: Target, tail: Tail, now: datetime, *, is_time: bool) -> None:
        told, launch = tail.told(), target.launch
        counted = self._ledger.counts.told(target.name, told.words)
        for heard in told.ooms:
            self._ledger.counts.logged_oom(
                target.name,
                target.container,
                heard.event,
                heard.at or now,
                was_ready=heard.was_ready,
            )
        if line := told.causes.get("gpu_detached"):
            self.on_detached(target, line)
        if told.facts is not None and launch is not None and launch.started_at == tail.started_at:
            target.launch = self._ledger.learn(launch, told.facts)
        target.loading = "" if launch is None or launch.ready_at else tail.loading
        if counted or is_time:
            self._memory.logbook.reached(target.container.id, told.position)

    def _follow_one(self, target: Target, now: datetime, tick: float) -> None:
        container, launch = target.container, target.launch
        assert launch is not None
        stream = self._streams.get(container.id)
        if stream is None:
            stream = self._streams[container.id] = _Stream(self._begin(launch, now))
        stream.tail.expect(launch.started_at)
        end = (launch.started_at, container.finished_at)
        is_over = not container.is_up
        if stream.is_open or tick < stream.not_before or (is_over and stream.ended == end):
            return
        stream.tail.goes_on()
        stream.is_open = True
        self._submit(
            partial(
                self._logs.follow,
                container.id,
                since=stream.tail.since,
                tty=container.tty,
                to_the_end=is_over,
                heard=partial(self._heard, stream.tail),
            ),
            deadline=_FOR_EVER,
            deliver=partial(self._ended, stream, end if is_over else None),
        )

    def _begin(self, launch: Launch, now: datetime) -> Tail:
        """Where the last daemon left off; else only what is written from now on is news."""
        known = self._memory.logbook.position(launch.container_id)
        is_news = launch.started_at >= self._began
        first = launch.started_at - _BEFORE_ITS_START
        if known is None:
            known = Position(_stamp(first if is_news else now), 0)
            self._memory.logbook.reached(launch.container_id, known)
            return Tail(
                launch.started_at, known, context_from=first, patterns=self._ledger.patterns
            )
        read_to = moment_of(known.stamp.encode())
        begun = launch
        if read_to is not None and read_to < launch.started_at:
            before = self._memory.launches.before(
                launch.target, launch.container_id, launch.started_at
            )
            if before is not None and before.container_id == launch.container_id:
                begun = before
        was_ready = begun.ready_at is not None
        return Tail(begun.started_at, known, was_ready=was_ready, patterns=self._ledger.patterns)

    # on the thread that follows

    def _heard(self, tail: Tail, records: Sequence[Record]) -> None:
        if tail.dropped:
            raise _DroppedError
        if tail.take(records, self._clock.monotonic()):
            self._inbox.put(_nothing)

    def _ended(
        self,
        stream: _Stream,
        end: tuple[datetime, datetime | None] | None,
        answer: NetAnswer[None],
    ) -> None:
        self._inbox.put_question(partial(self._closed, stream, end, answer.error))

    # on the loop's thread again

    def _closed(
        self,
        stream: _Stream,
        end: tuple[datetime, datetime | None] | None,
        error: BaseException | None,
    ) -> None:
        tick = self._clock.monotonic()
        stream.is_open = False
        if error is None:
            stream.ended, stream.trouble = end, ""
            stream.wait, stream.not_before = _SOON, tick + _SOON
            return
        if isinstance(error, Permanent):
            stream.trouble, stream.not_before = error.message, tick + _HOPELESS
            stream.ended = end
            return
        stream.not_before = tick + stream.wait
        stream.wait = min(stream.wait * 2, _AT_MOST)


class Unread:
    """Where nobody wants to know what is in the logs."""

    async def follow(self, *_: object, **__: object) -> None:
        return


def nobody(*_: object, **__: object) -> None:
    """Runs nothing."""


def _nothing() -> None:
    """Only to be woken."""


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z"
