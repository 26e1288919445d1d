"""A log read as it comes, piece by piece: events, and what is known of the launch at its end.

Several launches may stand in one log; each begins anew, and the last one counts. Memory is
bounded by the longest line, never by the log. How the bytes are cut must never change what
is read: whatever looks at a line sees it whole.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sentinel.core.diagnosis.facts import FACTS, Facts, fact_in, numbers_of
from sentinel.core.diagnosis.line import Line, lines_of
from sentinel.core.diagnosis.pattern import Pattern, Rank
from sentinel.core.diagnosis.patterns import PATTERNS
from sentinel.core.diagnosis.start_words import REFUSAL
from sentinel.core.diagnosis.stream import MOST, LineStream
from sentinel.core.diagnosis.traces import Accusation, Launch
from sentinel.core.diagnosis.users import UsersText, is_access_log

EVENTS = (
    *dict.fromkeys(fact.event for fact in FACTS),
    "stop_told",
    "stopping",
    "oom",
    "worker_died",
    "engine_died",
    "cause",
    "error",
)

_TOLD = re.compile(
    r"\[shutdown\] API server: shutdown triggered|trigger received signal=(?P<signal>SIG\w+)"
)
# Up to 0.24 that is said on a signal, too; the servers of a dead engine may say it after the death.
_STOPPING = re.compile(
    r"(?i:Shutting down FastAPI HTTP server)|Gracefully stopping http server"
    r"|[Rr]eceived (?:signal )?SIG(?:TERM|INT)\b|^Shutting down$|^KeyboardInterrupt\b"
    r"|Engine is gracefully shutting down"
)
# What no line lacks that anybody looks for: one of these texts decides whether a line is read.
_SIGNS: tuple[str, ...] = (
    *dict.fromkeys(fact.sign for fact in FACTS if fact.sign != "odel "),
    "odel loading took",
    "model weights took",
    "ERROR",
    "CRITICAL",
    "FATAL",
    "Error",
    "xception",
    "imeout",
    "rrors.",
    "rror: ",
    "rror encountered",
    "hutdown triggered",
    "received signal",
    "eceived SIG",
    "hutting down",
    "stopping http server",
    "KeyboardInterrupt",
    "died unexpectedly",
    "exited unexpectedly",
    "died, exit code",
    "Xid (",
    "NVML",
    "fallen off the bus",
    "GPU is lost",
    "busy or unavailable",
    "shared memory",
    "/dev/shm",  # noqa: S108 - a text, not a place to write to
    "posix_fallocate",
    "ftruncate",
    "device handle",
    "requires reset",
    "uncorrectable",
    "memory pressure",
    "Illegal instruction",
    "orker died",
    "exec",
    "not found",
    "can't open file",
    "runtime create failed",
    "nvidia-container-cli",
    "device driver",
    "already allocated",
    "died with exit",
    "Kill",
    "killed as a result",
    "ncclShmOpen",
    "shm_open",
    "Bus error",
    "oom-kill:",
    "atchdog",
    "eartbeat monitor",
    "Memory access fault",
    "Segfault",
    "Segmentation fault",
    "Aborted",
    "terminate called",
    "mismatch",
    "CUBLAS_STATUS",
    "RuntimeError",
    "Received request",
    "Request ",
    "Generated response",
    "Dumping ",
    "_body",
    "logger.py",
)
_ACCUSING = ("start_failed", "dead_error", "served")
_ANSWERED = '" 200'
_OWN_FILES = "/vllm/"  # in a traceback
_SIGNS_AT_START = (*_SIGNS, _ANSWERED, _OWN_FILES)  # of a log that begins late an answer is one
_FRONT = re.compile(
    r"serving\w*\.py|\w*(?:tool|reasoning)_parser\.py|api_router\.py|protocol\.py|chat_utils\.py|preprocess\.py"
    r"|(?:http|exception|vllm_error|validation|connection|renderer|speech_to_text)\.py"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    word: str  # one of EVENTS
    line: int
    text: str
    process: str = ""
    cause: str = ""  # where a pattern named one
    facts: Facts = field(default_factory=dict)


class LogReader:
    """Feed it a log in pieces of any size, and `close` it where the log ends."""

    def __init__(self, patterns: Sequence[Pattern] = ()) -> None:
        self._own = tuple(patterns)
        self._patterns = (*self._own, *PATTERNS)
        self._stream = LineStream()
        self._users = UsersText()
        self._held: dict[str, str] = {}  # parts of a line that Docker wrote in several records
        self.launch = Launch()
        self.launches = 1

    def feed(self, data: bytes | str) -> list[LogEvent]:
        """The events of the lines that this piece completes."""
        if isinstance(data, str):
            data = data.encode("utf-8", "replace")
        return self._read(self._stream.feed(data))

    def close(self) -> list[LogEvent]:
        return self._read(self._stream.close())

    def _read(self, lines: Iterable[tuple[int, str]]) -> list[LogEvent]:
        events: list[LogEvent] = []
        own, users = self._own, self._users
        for number, text in lines:
            if text.startswith('{"log":'):
                for part in self._unwrapped(text):
                    events += self._look(number, part)
                continue
            if not own and not users.is_open and not self.launch.wants_more:
                signs = _SIGNS if self.launch.was_ready else _SIGNS_AT_START
                for sign in signs:
                    if sign in text:
                        break
                else:
                    continue
            events += self._look(number, text)
        return events

    def _unwrapped(self, text: str) -> Iterator[str]:
        """A record of Docker's json-file log; what ends in no line feed goes on in the next."""
        try:
            record = json.loads(text)
            log, stream = record["log"], str(record.get("stream"))
        except (ValueError, KeyError, TypeError, AttributeError):
            yield text
            return
        if isinstance(log, str):
            whole = (self._held.pop(stream, "") + log)[:MOST]
            if log.endswith("\n") or len(self._held) > 2:
                yield whole.rstrip("\n")
            else:
                self._held[stream] = whole

    def _look(self, number: int, text: str) -> Iterator[LogEvent]:
        for part in text.rstrip("\r").split("\r") if "\r" in text else (text,):
            for line in lines_of(part):
                if self._users.hides(line):
                    continue
                if is_access_log(line.text):
                    if _ANSWERED in line.text:
                        self.launch.note("served", number, {})
                    continue
                yield from self._events(number, line)

    def _events(self, number: int, line: Line) -> Iterator[LogEvent]:
        if line.is_code:
            self.launch.follow(line)
        if not line.text or (line.is_code and not self._own):
            return
        if (found := fact_in(line.text)) and not line.is_code:
            word, facts = found
            if word not in _ACCUSING or line.may_accuse:
                if self._begins_anew(word):
                    self.launch = Launch()
                    self.launches += 1
                self.launch.note(word, number, facts)
                yield self._event(word, number, line, facts=facts)
        if (stop := _stop_in(line)) is not None:
            word, facts = stop
            self.launch.note(word, number, facts)
            yield self._event(word, number, line, facts=facts)
            return
        yield from self._accusations(number, line)

    def _begins_anew(self, word: str) -> bool:
        if word == "launch":
            return self.launch.has_begun
        # Engines of one server start side by side: one that begins says nothing before it served.
        return word == "engine" and self.launch.was_ready and self.launch.has_ended

    def _accusations(self, number: int, line: Line) -> Iterator[LogEvent]:
        pattern, found = self._matching(line)
        if pattern is None or found is None:
            self.launch.go_on(number, line)
            front = _FRONT.fullmatch(line.source) is not None
            if line.may_accuse and line.is_exception and not front and not _is_dead(line):
                self.launch.note_error(number, line)
                yield self._event("error", number, line)
            return
        facts = numbers_of(found)
        self.launch.accuse(Accusation(pattern, number, line.text.strip(), facts))
        word = _word_of(pattern.cause)
        yield self._event(word, number, line, cause=pattern.cause, facts=facts)

    def _matching(self, line: Line) -> tuple[Pattern | None, re.Match[str] | None]:
        front = _FRONT.fullmatch(line.source) is not None  # what it says may quote a request
        accuses = line.may_accuse and not front
        told = not line.is_code and not front and line.level not in ("INFO", "DEBUG", "TRACE")
        for pattern in self._patterns:
            asked = pattern.rank is Rank.OPERATOR or accuses or (pattern.anywhere and told)
            if asked and (found := pattern.match.search(line.text)):
                return pattern, found
        if accuses and line.is_exception and self.launch.is_refused(line):
            return REFUSAL, REFUSAL.match.search(line.text)
        return None, None

    def _event(
        self, word: str, number: int, line: Line, *, cause: str = "", facts: Facts | None = None
    ) -> LogEvent:
        return LogEvent(
            word=word,
            line=number,
            text=line.text.strip(),
            process=line.process,
            cause=cause,
            facts=facts or {},
        )


def _is_dead(line: Line) -> bool:
    return "EngineDeadError" in line.text


def _stop_in(line: Line) -> tuple[str, Facts] | None:
    if line.is_code or not (line.level or line.text.startswith("KeyboardInterrupt")):
        return None
    if found := _TOLD.search(line.text):
        return "stop_told", numbers_of(found)
    if _STOPPING.search(line.text):
        return "stopping", {}
    return None


def _word_of(cause: str) -> str:
    if "oom" in cause:
        return "oom"
    return cause if cause in ("worker_died", "engine_died") else "cause"
