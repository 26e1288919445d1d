"""One container's log, as far as it was taken: what it told, and where to go on.

Lines are taken on the thread that follows logs, and asked about on the loop's; a lock stands
between. What was told and how far the log was taken are handed over together, so that whoever
writes them down together neither loses a line nor counts one twice.
"""

import copy
import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.diagnosis.facts import Facts
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.reader import LogEvent, LogReader
from sentinel.core.diagnosis.traces import Launch
from sentinel.core.logrecords import Record, moment_of, nanoseconds
from sentinel.store.logbook import Position

_URGENT = frozenset({"oom", "engine_died", "worker_died", "cause", "start_failed"})
_PHASES = {
    "launch": "it has begun",
    "engine": "its engine begins",
    "loading": "loading the weights",
    "loaded": "weights loaded, warming up",
    "kv_blocks": "KV cache laid out, warming up",
    "warmed_up": "about to serve",
    "ready": "",
}
_SHARDS = re.compile(rb"checkpoint shards:\s+(\d+)% Completed")
_MOST_OOMS = 20  # that wait to be asked for
_GOT_OVER = 3  # lines that say that it works, after which an old error killed nobody
_AGAIN = 1.0  # seconds between two that cannot wait


@dataclass(frozen=True, slots=True)
class HeardOom:
    event: LogEvent
    at: datetime | None  # None: the engine did not say
    was_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the log told since it was last asked; `position` goes with it."""

    words: Counter[str]
    ooms: Sequence[HeardOom]
    causes: Mapping[str, str]  # and the last line that named each
    facts: Facts | None  # None: nothing new
    position: Position


class Tail:
    def __init__(
        self,
        started_at: datetime,
        position: Position,
        *,
        was_ready: bool = False,
        context_from: datetime | None = None,
        patterns: Callable[[], Sequence[Pattern]] = tuple,
    ) -> None:
        """`context_from`: what was written from then to `position` is read, and is no news.

        `patterns`: the operator's own that are in force when a launch begins.
        """
        self._patterns = patterns
        self._context_from = context_from
        self._lock = threading.Lock()
        self._position = position
        self._going_on = True  # what comes may have been taken before
        self._is_new = True  # what was taken before is not known to this reader
        self._met = 0  # of the lines at the position
        self._next_at: datetime | None = None  # the launch after this one, not reached yet
        self._before: tuple[datetime, Launch] | None = None
        self._words: Counter[str] = Counter()
        self._ooms: list[HeardOom] = []
        self._causes: dict[str, str] = {}
        self._learned = False
        self._urgent_tick = float("-inf")
        self.loading = ""  # how far a start is, in words
        self.dropped = False  # nobody wants to know any more
        self._begin(started_at)
        if was_ready:
            self._reader.launch.note("served", 0, {})

    def _begin(self, started_at: datetime) -> None:
        self.started_at = started_at
        self._reader, self._fed = LogReader(self._patterns()), 0
        self._works: deque[int] = deque(maxlen=_GOT_OVER)  # lines about a load that moves
        self.loading = ""

    # on the loop's thread

    @property
    def since(self) -> str:
        """From where to ask: what of that very time was taken is known."""
        if self._context_from is not None and not self._fed:
            return f"{self._context_from.timestamp():.6f}"
        at = nanoseconds(self._position.stamp.encode())
        return f"{at // 1_000_000_000}.{at % 1_000_000_000:09d}"

    def goes_on(self) -> None:
        """It is asked for anew, from `since`."""
        with self._lock:
            self._going_on, self._is_new, self._met = True, not self._fed, 0

    def expect(self, started_at: datetime) -> None:
        """A launch began then; lines from there on are of that one."""
        with self._lock:
            if started_at != self.started_at:
                self._next_at = started_at

    def told(self) -> Told:
        with self._lock:
            told = Told(
                words=self._words,
                ooms=self._ooms,
                causes=self._causes,
                facts=dict(self._reader.launch.facts) if self._learned else None,
                position=self._position,
            )
            self._words, self._ooms, self._causes = Counter(), [], {}
            self._learned = False
            return told

    def launch(self, started_at: datetime) -> Launch | None:
        """All that its log told of one launch, if that is the one being read or the last."""
        with self._lock:
            if started_at == self.started_at and self._fed:
                return copy.deepcopy(self._reader.launch)
            if self._before is not None and self._before[0] == started_at:
                return self._before[1]
            return None

    # on the thread that follows

    def take(self, records: Sequence[Record], tick: float) -> bool:
        """Whether what they tell cannot wait."""
        with self._lock:
            fresh, urgent = self._fresh(records), False
            if self._next_at is not None:
                fresh, of_next = _parted(fresh, self._next_at)
                urgent = self._read(fresh)
                if of_next:
                    self._before = (self.started_at, self._reader.launch)
                    self._begin(self._next_at)
                    self._next_at = None
                    urgent = self._read(of_next) or urgent
            else:
                urgent = self._read(fresh)
            if not urgent or tick - self._urgent_tick < _AGAIN:
                return False
            self._urgent_tick = tick
            return True

    def _fresh(self, records: Sequence[Record]) -> Sequence[Record]:
        """Without what was taken before. What a fresh reader does not know, it is told."""
        if not self._going_on:
            return records
        edge = nanoseconds(self._position.stamp.encode())
        for place, record in enumerate(records):
            at = nanoseconds(record.stamp)
            self._met += at == edge
            if at > edge or (at == edge and self._met > self._position.taken):
                self._going_on = False
                self._know(records[:place])
                return records[place:]
        self._know(records)
        return ()

    def _know(self, records: Sequence[Record]) -> None:
        if not records or not self._is_new:
            return
        for event in self._reader.feed(b"\n".join([each.line for each in records]) + b"\n"):
            self._follow_start(event)
            self._follow_load(event)
        self._fed += len(records)
        self._learned = True

    def _read(self, records: Sequence[Record]) -> bool:
        if not records:
            return False
        data = b"\n".join([each.line for each in records]) + b"\n"
        begun, urgent = self._fed, False
        events = self._reader.feed(data)
        self._fed += len(records)
        for event in events:
            place = min(max(event.line - begun - 1, 0), len(records) - 1)
            self._note(event, records[place])
            urgent = urgent or event.word in _URGENT
        if not self._reader.launch.was_ready and (found := _SHARDS.findall(data)):
            self.loading = f"{int(found[-1])} % of the weights loaded"
        self._reached(records)
        return urgent

    def _reached(self, records: Sequence[Record]) -> None:
        stamps = [each.stamp for each in records]
        last, before = max(stamps), self._position
        at, edge = nanoseconds(last), nanoseconds(before.stamp.encode())
        if at >= edge and last:
            taken = stamps.count(last) + (before.taken if at == edge else 0)
            self._position = Position(last.decode("ascii", "replace"), taken)

    def _note(self, event: LogEvent, record: Record) -> None:
        self._words[event.word] += 1
        self._learned = self._learned or bool(event.facts) or event.word == "ready"
        self._follow_start(event)
        if event.cause:
            self._causes[event.cause] = event.text
        if event.word == "oom" and len(self._ooms) < _MOST_OOMS:
            was_ready = self._reader.launch.was_ready
            self._ooms.append(HeardOom(event, moment_of(record.stamp), was_ready))
        self._follow_load(event)

    def _follow_start(self, event: LogEvent) -> None:
        self.loading = _PHASES.get(event.word, self.loading)

    def _follow_load(self, event: LogEvent) -> None:
        """A server that goes on working for long after an error did not die of it."""
        if event.cause or (event.word == "load" and not event.facts.get("generation_rate")):
            self._works.clear()
        elif event.word == "load":
            self._works.append(event.line)
        if len(self._works) < _GOT_OVER:
            return
        since, launch = self._works[0], self._reader.launch
        for key, accusation in list(launch.accusations.items()):
            if accusation.line < since:
                del launch.accusations[key]
        if launch.error is not None and launch.error[0] < since:
            launch.error = None


def _parted(records: Sequence[Record], at: datetime) -> tuple[Sequence[Record], Sequence[Record]]:
    """Those written before an instant, and from the first that was not."""
    for place, record in enumerate(records):
        written = moment_of(record.stamp)
        if written is not None and written >= at:
            return records[:place], records[place:]
    return records, ()
