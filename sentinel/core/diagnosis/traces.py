"""What one launch left in its log, line by line, kept to a few values."""

import re
from dataclasses import dataclass, field

from sentinel.core.diagnosis.facts import Facts
from sentinel.core.diagnosis.line import Line
from sentinel.core.diagnosis.pattern import Pattern, Rank
from sentinel.core.diagnosis.patterns import NARROWER
from sentinel.core.diagnosis.start_words import REFUSES

_MAIN = re.compile(r'  File "[^"]*/vllm/entrypoints/(?:cli/main\.py"|.*in <module>$)')
_BEGINNINGS = frozenset({"launch", "arguments", "engine", "loading", "start_failed"})
_PROCESSES = 256  # whose tracebacks are followed at a time
_LOADS = 12  # of vLLM's lines about its load, one each ten seconds
_BETWEEN = ("Traceback (", "The above exception", "During handling", "For further information")
_SAYS_NOTHING = (
    "KeyboardInterrupt",
    "SystemExit",
    "asyncio.exceptions.CancelledError",
    "CancelledError",
    "RuntimeError: Engine core initialization failed",
    "RuntimeError: Engine process failed to start",
    "Exception: WorkerProc initialization failed",
)


@dataclass(slots=True)
class Accusation:
    """A line that names a cause."""

    pattern: Pattern
    line: int
    text: str
    facts: Facts
    more: list[tuple[int, str]] = field(default_factory=list)

    @property
    def cause(self) -> str:
        return self.pattern.cause


@dataclass(slots=True)
class Launch:
    facts: Facts = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)  # event to the line that first told it
    last: dict[str, int] = field(default_factory=dict)
    accusations: dict[tuple[str, Rank], Accusation] = field(default_factory=dict)  # first each
    loads: list[tuple[int, Facts]] = field(default_factory=list)
    error: tuple[int, str] | None = None  # the first exception that no pattern knows
    stop_order: list[str] = field(default_factory=list)  # who was told to stop, in order
    _open: Accusation | None = None
    _has_main: bool = False  # a traceback begins where vLLM does
    _refusing: dict[str, bool] = field(default_factory=dict)  # by process: where a traceback is

    @property
    def wants_more(self) -> bool:
        return self._open is not None

    @property
    def was_ready(self) -> bool:
        """Also where the log begins after that: what is said of a load was said by a server."""
        return not self.first.keys().isdisjoint(("ready", "load", "served"))

    @property
    def has_begun(self) -> bool:
        return bool(self.first.keys() - {"launch", "arguments"}) or bool(self.accusations)

    @property
    def has_ended(self) -> bool:
        ends = self.first.keys() & {"stop_told", "stopping", "start_failed", "dead_error"}
        return bool(ends) or bool(self.accusations)

    def note(self, word: str, line: int, facts: Facts) -> None:
        if word == "ready" and not self.was_ready:
            self._get_over_the_start()
        self.first.setdefault(word, line)
        self.last[word] = line
        if word == "load":
            self.loads = [*self.loads[-_LOADS + 1 :], (line, facts)]
        elif word == "stop_told":
            if len(self.stop_order) < 8:
                self.stop_order.append("engine" if "signal" in facts else "server")
        else:
            self.facts.update(facts)

    def _get_over_the_start(self) -> None:
        """It serves: nothing that was said before has kept it from that."""
        kept = {key: a for key, a in self.accusations.items() if key[1] is Rank.OPERATOR}
        self.accusations, self.error, self._open = kept, None, None
        self.first.pop("start_failed", None)

    def note_error(self, line: int, told: Line) -> None:
        if self.error is None and not told.text.startswith(_SAYS_NOTHING):
            self.error = (line, told.text.strip())

    def follow(self, told: Line) -> None:
        """Where the traceback of a start has come to: the last file of vLLM's own counts."""
        self._has_main = self._has_main or _MAIN.match(told.text) is not None
        found = None if self.was_ready else REFUSES.match(told.text)
        if found and (len(self._refusing) < _PROCESSES or told.process in self._refusing):
            self._refusing[told.process] = found["refuses"] is not None

    def is_refused(self, told: Line) -> bool:
        raised_there = self._refusing.pop(told.process, False)
        begins = self._has_main or not self.first.keys().isdisjoint(_BEGINNINGS)
        return raised_there and begins and not self.was_ready

    def accuse(self, found: Accusation) -> None:
        kept = self.accusations.setdefault((found.cause, found.pattern.rank), found)
        self._open = found if kept is found and found.pattern.more else None

    def go_on(self, line: int, told: Line) -> None:
        """Keep a line that belongs to the accusation before it."""
        if self._open is None:
            return
        text = told.text.strip()
        if told.is_quiet:
            self._open = None
        elif text and not told.is_code and not text.startswith(_BETWEEN):
            self._open.more.append((line, text))
            if len(self._open.more) >= self._open.pattern.more:
                self._open = None

    def root(self) -> Accusation | None:
        """Of all that was accused the first of the highest rank, or what narrows it."""
        counted = [
            found
            for found in self.accusations.values()
            if not (found.pattern.only_starting and self.was_ready)
        ]
        if not counted:
            return None
        rank = max(found.pattern.rank for found in counted)
        equals = [found for found in counted if found.pattern.rank is rank]
        root = min(equals, key=lambda found: found.line)
        narrower = NARROWER.get(root.cause, frozenset())
        closer = [found for found in counted if found.cause in narrower]
        return min(closer, key=lambda found: found.line, default=root)

    def death(self) -> int:
        """The first line that says that something died or failed to start; 0 if none does."""
        found = [a.line for a in self.accusations.values() if a.pattern.rank is not Rank.OPERATOR]
        return min(filter(None, (*found, self.first.get("start_failed", 0))), default=0)
