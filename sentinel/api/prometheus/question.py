"""One request to the API: what was asked, and the copies it is answered from."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from sentinel.api.prometheus.copies import Copies
from sentinel.api.prometheus.desk import Deadline
from sentinel.api.prometheus.envelope import Found, bad
from sentinel.api.prometheus.form import Form
from sentinel.core.model.moment import millis
from sentinel.core.promql import Expression, ExpressionError, compile_expression


@dataclass(frozen=True, slots=True)
class Question:
    form: Form
    path: dict[str, str]
    copies: Copies
    asked_at: datetime
    deadline: Deadline

    @property
    def within(self) -> float:
        """Seconds that are left."""
        return self.deadline.left()

    @property
    def now_ms(self) -> int:
        return millis(self.asked_at)


Answer = Callable[[Question], Found]


def expression(question: Question) -> Expression:
    text = question.form.get("query")
    try:
        return compile_expression(text)
    except ExpressionError as error:
        raise bad("query", said(error, text)) from None


def said(error: ExpressionError, text: str) -> str:
    """A fault in an expression, with its place, as Prometheus tells it."""
    if not text.strip():
        return "unknown position: parse error: no expression found in input"
    place = "unknown position"
    if error.column is not None:
        before = text[: error.column - 1]
        line = before.count("\n") + 1
        place = f"{line}:{len(before) - (before.rfind(chr(10)) + 1) + 1}"
    return f"{place}: parse error: {error.message}"


def one_of(parameter: str, given: str, allowed: Collection[str]) -> str:
    if given and given not in allowed:
        raise bad(parameter, f'not supported value "{given}"')
    return given
