"""Sends every log line to standard error: JSON for machines, readable on a terminal.

Under systemd each line starts with its priority, `<4>{…}`, which journald takes off. A
stream that can no longer be written to (full disk, closed pipe) loses lines and never stops
the daemon. Libraries that use `logging` come out in the same form, from warnings upward.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

PRIORITIES = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}


def configure(
    *,
    level: str = "info",
    stream: TextIO | None = None,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Make every logger of this process write to `stream` (standard error)."""
    out = Unfailing(sys.stderr if stream is None else stream)
    rendered = _renderers(out, environ)
    structlog.configure(
        processors=[*_facts(), *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=out),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,  # so that tests can capture lines
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
            foreign_pre_chain=[*_facts(), structlog.stdlib.add_logger_name],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)


class Unfailing:
    """A text stream that loses what it cannot write."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()

    @property
    def is_utf8(self) -> bool:
        return (self._stream.encoding or "").lower().replace("-", "") == "utf8"

    def isatty(self) -> bool:
        return self._stream.isatty()


def is_journal(stream: Unfailing, environ: Mapping[str, str]) -> bool:
    """Whether `stream` is the one that systemd connected to its journal."""
    named = environ.get("JOURNAL_STREAM", "")
    try:
        found = os.fstat(stream._stream.fileno())  # noqa: SLF001 - our own wrapper
    except (OSError, ValueError):
        return False
    return named == f"{found.st_dev}:{found.st_ino}"


def _facts() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]


def _renderers(out: Unfailing, environ: Mapping[str, str]) -> list[Processor]:
    if out.isatty():
        return [
            structlog.dev.ConsoleRenderer(
                colors=not environ.get("NO_COLOR") and environ.get("TERM") != "dumb",
                exception_formatter=structlog.dev.plain_traceback,
                timestamp_key="at",
            )
        ]
    json = structlog.processors.JSONRenderer(ensure_ascii=not out.is_utf8, default=str)
    last: list[Processor] = [_prefixed(json)] if is_journal(out, environ) else [json]
    return [structlog.processors.format_exc_info, *last]


def _prefixed(render: structlog.processors.JSONRenderer) -> Processor:
    def with_priority(logger: Any, name: str, line: MutableMapping[str, Any]) -> str:
        priority = PRIORITIES.get(str(line.get("level")), PRIORITIES["info"])
        return f"<{priority}>{render(logger, name, line)!s}"

    return with_priority
