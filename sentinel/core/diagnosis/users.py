"""Which lines of a log hold what users sent: never evidence, never kept.

vLLM writes a prompt as one line, in quotes; others do not, so a record whose quotes are open
goes on until they are closed. While in doubt a line is taken for a user's, up to a limit: a
cause that is missed is found again, a prompt that is believed stops a healthy server.
"""

import re

from sentinel.core.diagnosis.line import Line
from sentinel.core.diagnosis.stream import MOST

_RECORD = re.compile(
    r"(?P<long>Received request\b|Request \S+ details:|Generated response |response_body\b)"
    r"|Request \S+ JSON body:|Dumping (?:input|scheduler)|Error with model "
    r"|[Vv]alidation error from (?:the )?request"
)
_SOURCES = frozenset({"logger.py", "request_logger.py", "dump_input.py"})
_ACCESS = re.compile(r'"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) [^"]*HTTP/')
_BEGINS = re.compile(r"(?:prompt|output|content)(?:: |=|': )(?P<quote>['\"]?)")
_ENDS = re.compile(
    r",? '?(?:params|sampling[_ ]params|prefix_pos|prompt_token_ids|prompt_embeds"
    r"|prompt_adapter_request|lora_request|output_token_ids|finish_reason|streaming)\b"
)
_UNHANDLED = "Exception in ASGI application"  # and the traceback, whose message may quote a request
_OF_VLLM = re.compile(r"(?:vllm\.[\w.]+)?\w*EngineDeadError\b")
_LONGEST = 1000  # lines
_MOST_RECORDS = 200  # lines that look like records, after which they are believed to be some
_CUT = MOST // 2  # characters: of a line so long the end may be missing


def is_access_log(text: str) -> bool:
    return _ACCESS.search(text) is not None


class UsersText:
    """Fed every line in order."""

    def __init__(self) -> None:
        self._is_open = False
        self._unhandled: str | None = None  # the process that tells what a request ran into
        self._quote = ""
        self._head = ""
        self._lines = 0
        self._heads = 0

    @property
    def is_open(self) -> bool:
        return self._is_open or self._unhandled is not None

    def hides(self, line: Line) -> bool:
        if self._is_open and self._goes_on(line):
            return True
        if self._unhandled == line.process and self._is_of_traceback(line):
            return not (line.is_code or _OF_VLLM.match(line.text))
        if line.text.startswith(_UNHANDLED):
            self._unhandled, self._lines = line.process, 0
        found = _RECORD.search(line.text)
        if found and found["long"]:
            self._begin(line)
        return found is not None or line.source in _SOURCES

    def _is_of_traceback(self, line: Line) -> bool:
        self._lines += 1
        if line.head or self._lines > _LONGEST:
            self._unhandled = None
        return self._unhandled is not None

    def _begin(self, line: Line) -> None:
        found = _BEGINS.search(line.text)
        if found is None or line.text.startswith("None", found.end()):
            return
        rest, quote = line.text[found.end() :], found["quote"]
        self._is_open = not _ends(rest, quote) and len(line.text) < _CUT
        self._quote, self._head, self._lines, self._heads = quote, line.head, 0, 0

    def _goes_on(self, line: Line) -> bool:
        self._lines += 1
        if _ends(line.text, self._quote):
            self._is_open = False
            return True
        another = bool(line.head) and line.head != self._head
        self._heads += another
        spent = self._lines > _LONGEST or self._heads > _MOST_RECORDS
        if spent or (another and not self._quote):
            self._is_open = False
            return False
        return True


def _ends(text: str, quote: str) -> bool:
    """Whether the text of a user ends here: what vLLM writes after it follows."""
    return any(text.endswith(quote, 0, found.start()) for found in _ENDS.finditer(text))
