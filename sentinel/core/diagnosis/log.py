"""What the end of a vLLM log says about why the server went away.

What was raised first is the cause, the rest is consequence. `EngineDeadError` and its
traceback also appear on a clean stop, so they prove nothing to the daemon and are told apart.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from sentinel.core.diagnosis.facts import Facts
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.reader import LogReader
from sentinel.core.diagnosis.traces import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReading:
    """`line` counts from 1 within the text that was read; 0 where nothing was found."""

    cause: str = "unknown"
    line: int = 0
    text: str = ""
    was_ready: bool = False
    died: bool = False  # says that it died, before anything says that it was told to stop
    told_to_stop: bool = False  # says that it was told to stop, before anything says it died
    sure: float = 0.0
    facts: Facts = field(default_factory=dict)
    more: tuple[tuple[int, str], ...] = ()  # lines that belong to `text`
    pattern: Pattern | None = None


def read_log(text: str | bytes, patterns: Sequence[Pattern] = ()) -> LogReading:
    """Read a log, oldest line first; of several launches in it the last counts."""
    reader = LogReader(patterns)
    reader.feed(text)
    reader.close()
    return reading_of(reader.launch)


def reading_of(launch: Launch) -> LogReading:
    root, died_at = launch.root(), launch.death()
    stopped_at = launch.first.get("stop_told", 0)
    ordered_at = stopped_at or launch.first.get("stopping", 0)
    named_at = min(root.line, died_at or root.line) if root is not None else died_at
    if not named_at or 0 < ordered_at < named_at:
        return LogReading(
            was_ready=launch.was_ready, told_to_stop=bool(stopped_at), facts=launch.facts
        )
    if root is None:
        return LogReading(was_ready=launch.was_ready, died=True, facts=launch.facts)
    stopped_first = 0 < ordered_at < (died_at or ordered_at + 1)
    return LogReading(
        cause=_named(root.cause, launch),
        line=root.line,
        text=root.text,
        was_ready=launch.was_ready,
        died=bool(died_at) and not stopped_first,
        told_to_stop=stopped_first and bool(stopped_at),
        sure=root.pattern.sure,
        facts={**launch.facts, **root.facts},
        more=tuple(root.more),
        pattern=root.pattern,
    )


def _named(cause: str, launch: Launch) -> str:
    if cause == "cuda_oom":
        return "cuda_oom_runtime" if launch.was_ready else "cuda_oom_startup"
    return cause
