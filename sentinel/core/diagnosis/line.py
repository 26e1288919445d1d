"""One line of a log without what others put before it: who wrote it, how loud, and what.

Timestamps of Docker, prefixes of Compose, Kubernetes and journald, terminal colours, names of
processes and vLLM's own heads of eight years all come off here, and nowhere else. What is
left begins with the very blanks it was written with: code in a traceback is told by them.
"""

import json
import re
from dataclasses import dataclass

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]"
)
_STAMP = (
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?: std(?:out|err) [FP]\b)?(?: \|)?(?: |$)"
)
_OTHERS = re.compile(
    rf"(?:{_STAMP}"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? \S+ [^\s:\[]+(?:\[\d+\])?:(?: |$)"  # journald
    r"|[\w.-]+ [\w.@/-]+\[\d+\]: ?"  # the same, after a time of its own
    r"|[\w.-]+ *\|(?: |$)"  # Compose
    r"|\[(?:pod|container)/[^\]]+\] )"
)
_PROCESS = re.compile(
    r"\((?P<name>[^()\s]+)[^()]*\bpid=(?P<pid>\d+)[^()]*\) ?|\[(?:rank|Stage-)\d+\]:? (?!\[)"
)
_LEVELS = r"TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL"
_VLLM = re.compile(
    rf"(?P<level>{_LEVELS})\s+(?:[\w:.,/-]+\s+){{0,3}}\[?(?P<source>[\w./-]+\.(?:pyx?|cpp)):\d+\] ?"
)
_UVICORN = re.compile(rf"(?P<level>{_LEVELS}):\s+")
_LOGGING = re.compile(rf"(?:- )?(?:[\w.]+ - )?(?P<level>{_LEVELS})(?: - |: | )")
_TORCH = re.compile(
    r"(?:\[rank\d+\]:)?\[(?P<level>[IWEF])\d* ?(?:[\d:.]+ )?(?P<source>[\w./]+):\d+\] ?"
)
_CUT = re.compile(r"\[(?P<source>[\w./-]+\.pyx?):\d+\] ?")  # its beginning is lost
_HEADS = (_VLLM, _UVICORN, _TORCH, _LOGGING, _CUT)
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
    process = ""
    for _ in range(3):
        if (found := _PROCESS.match(text)) is None:
            break
        if found["name"]:
            process = f"{found['name']} pid={found['pid']}"
        text = text[found.end() :]
    for head in _HEADS:
        if found := head.match(text):
            groups = found.groupdict()
            source = (groups.get("source") or "").rpartition("/")[2]
            return Line(process, groups.get("level") or "", source, found[0], text[found.end() :])
    return Line(process, "", "", "", text)


def _of_json(text: str) -> Line | None:
    """A record of Python's logging, written as JSON."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    message = record.get("message", record.get("msg")) if isinstance(record, dict) else None
    if not isinstance(message, str):
        return None
    if isinstance(trace := record.get("exc_info"), str):
        message = f"{message}\n{trace}"
    level = record.get("levelname", record.get("level", record.get("severity")))
    level = level.upper() if isinstance(level, str) else ""
    return Line("", level, str(record.get("filename", "")), "{", message)
