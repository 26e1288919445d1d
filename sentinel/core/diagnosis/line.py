"""One line of a log without what others put before it: who wrote it, how loud, and what.

Timestamps of Docker, prefixes of Compose, Kubernetes and journald, terminal colours, names of
processes and vLLM's own heads of eight years all come off here, and nowhere else. What is
left begins with the very blanks it was written with: code in a traceback is told by them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]"
)
_LEVELS = r"TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
_STAMP = (
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?: std(?:out|err) [FP]\b)?(?: \|)?(?: |$)"
)
_OTHERS = re.compile(
    rf"(?:{_STAMP}"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ [^\s:\[]+(?:\[\d+\])?:(?: |$)"  # journald
    r"|[\w.-]+ [\w.@/-]+\[\d+\]: ?"  # the same, after a time of its own
    rf"|(?!(?:{_LEVELS})\b)[\w.-]+ *\|(?: |$)"  # Compose
    r"|\[(?:pod|container)/[^\]]+\] )"
)
_PROCESS = re.compile(
    r"\((?P<name>[^()\s]+)[^()]*\bpid=(?P<pid>\d+)[^()]*\) ?"
    r"|\[(?:rank|Stage-)\d+\]:?(?: (?!\[)|(?=\[rank))"
)
_VLLM = re.compile(
    rf"(?P<level>{_LEVELS})\s+(?:[\w:.,/-]+\s+){{0,3}}\[?(?P<source>[\w./-]+\.(?:pyx?|cpp)):\d+\] ?"
)
_PREFIXED = re.compile(  # VLLM_LOGGING_PREFIX, whatever it holds
    rf"(?P<prefix>[^'\"{{]{{1,80}}?)(?P<level>{_LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d\S* "
    r"\[?(?P<source>[\w./-]+\.(?:pyx?|cpp)):\d+\] ?"
)
_UVICORN = re.compile(rf"(?P<level>{_LEVELS}):\s+")
_LOGGING = re.compile(
    rf"(?:- )?(?:[\w.]+ - )?\[?(?P<level>{_LEVELS})(?:\] ?|:[\w.]+:| *[-|] |: | +)"
    r"(?:\[?(?P<source>[\w./-]+\.pyx?):\d+\]?:? |[\w.]+:\w+:\d+ - )?"
)
_TORCH = re.compile(
    r"(?:\[rank\d+\]:)?\[(?P<level>[IWEF])\d* ?(?:[\d:.]+ )?(?P<source>[\w./]+):\d+\] ?"
)
_CUT = re.compile(r"\[(?P<source>[\w./-]+\.pyx?):\d+\] ?")  # its beginning is lost
_HEADS = (_VLLM, _PREFIXED, _UVICORN, _TORCH, _LOGGING, _CUT)
_QUIET = frozenset({"TRACE", "DEBUG", "INFO", "WARN", "WARNING", "I", "W"})
_EXCEPTION = re.compile(
    r"(?:(?:[A-Za-z_]\w*\.)+[A-Z]\w*|[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Timeout)\w*)"
    r"(?:\(\w+\))?(?::|$)"
)
_CODE = re.compile(r'\s{4}|\s{2}File "|\s*[\^~]+$|\s{2}\[Previous line')


@dataclass(frozen=True, slots=True)
class Line:
    process: str  # `EngineCore pid=114`, or empty
    level: str  # as it was written, or empty
    source: str  # `core.py`, or empty
    head: str  # level, time and source as written: lines of one record share it
    text: str

    @property
    def is_quiet(self) -> bool:
        return self.level in _QUIET

    @property
    def is_exception(self) -> bool:
        """The last line of a traceback, which names what was raised."""
        return _EXCEPTION.match(self.text) is not None

    @property
    def is_code(self) -> bool:
        """A line of a program that a traceback shows: it may hold the words of any error."""
        return _CODE.match(self.text) is not None

    @property
    def may_accuse(self) -> bool:
        return not self.is_quiet and not self.is_code and bool(self.level or self.is_exception)


def undress(raw: str) -> Line:
    text = _ESCAPES.sub("", raw).rstrip()
    for _ in range(4):
        if (found := _OTHERS.match(text)) is None:
            break
        text = text[found.end() :]
    if text.startswith("{") and (told := _of_json(text)):
        return told
    process, text = _process_in(text)
    for head in _HEADS:
        if found := head.match(text):
            groups = found.groupdict()
            source = (groups.get("source") or "").rpartition("/")[2]
            process = process or _process_in(groups.get("prefix") or "", anywhere=True)[0]
            return Line(process, groups.get("level") or "", source, found[0], text[found.end() :])
    return Line(process, "", "", "", text)


def lines_of(raw: str) -> Iterator[Line]:
    """What one line of a log holds: a record of JSON may hold a whole traceback."""
    line = undress(raw)
    first, *others = line.text.split("\n")
    yield replace(line, text=first.rstrip()) if others else line
    for text in others:
        yield replace(line, head="", text=text.rstrip())


def _process_in(text: str, *, anywhere: bool = False) -> tuple[str, str]:
    """The process that a line begins with, and the rest of the line."""
    process = ""
    for _ in range(3):
        if (found := (_PROCESS.search if anywhere else _PROCESS.match)(text)) is None:
            break
        if found["name"]:
            process = f"{found['name']} pid={found['pid']}"
        text = text[found.end() :]
    return process, text


def _of_json(text: str) -> Line | None:
    """A record of Python's logging, written as JSON: vLLM's own, or by a configuration."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    message = _first(record, "message", "msg", "event", "text") if isinstance(record, dict) else ""
    if not message:
        return None
    if trace := _first(record, "exc_info", "exception", "stack_trace", "error.stack_trace"):
        message = f"{message}\n{trace}"
    level = _first(record, "levelname", "level", "severity", "log.level").upper()
    name = _first(record, "name", "logger")
    source = _first(record, "filename") or (f"{name.rpartition('.')[2]}.py" if name else "")
    pid, process = record.get("process"), _first(record, "vllm_process_name", "processName")
    told = f"{process} pid={pid}" if process and isinstance(pid, int) else ""
    return Line(told, level, source, "{", message)


def _first(record: Mapping[str, Any], *keys: str) -> str:
    return next((found for key in keys if isinstance(found := record.get(key), str)), "")
