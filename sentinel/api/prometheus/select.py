"""`series`, `labels` and the values of a label: what is there, not what it measured.

A series is there from its first sample until five minutes after its last, as long as an
instant query could still return it.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import islice

from sentinel.api.prometheus.envelope import TRUNCATED, ApiError, Found, Rendered, bad
from sentinel.api.prometheus.form import MAX_MS, MIN_MS
from sentinel.api.prometheus.question import Question, said
from sentinel.api.prometheus.results import in_order
from sentinel.api.snapshot import to_json
from sentinel.core.model.labels import NAME, Labels, value_of
from sentinel.core.promql import ExpressionError, Selection, selection

LOOKBACK_MS = 300_000
EMPTY = "match[] must contain at least one non-empty matcher"
_ESCAPED = re.compile(r"_(?:_|([0-9A-Fa-f]{1,6})_)")
_WELL_ESCAPED = re.compile(rf"(?:[^_]|{_ESCAPED.pattern})*")


def series(question: Question) -> Found:
    if not question.form.all("match[]"):
        raise ApiError("bad_data", "no match[] parameter provided")
    limit = question.form.limit()
    bounds = _bounds(question)
    try:
        wanted = selections(question.form.all("match[]"))
    except ApiError as error:
        raise bad("match[]", error.message) from None
    found = _matching(question, wanted, bounds)
    rows = [to_json(dict(labels)) for labels in islice(in_order(found), limit or None)]
    truncated = (TRUNCATED,) if len(rows) < len(found) else ()
    return Found(Rendered(b"[" + b",".join(rows) + b"]"), truncated)


def label_names(question: Question) -> Found:
    limit = question.form.limit()
    bounds = _bounds(question)
    found = _matching(question, selections(question.form.all("match[]")), bounds)
    return _limited(sorted({name for labels in found for name, _ in labels}), limit)


def label_values(question: Question) -> Found:
    name = question.path["name"]
    if name.startswith("U__"):
        name = _unescaped(name)
    if not name:
        raise ApiError("bad_data", 'invalid label name: ""')
    limit = question.form.limit()
    bounds = _bounds(question)
    found = _matching(question, selections(question.form.all("match[]")), bounds)
    values = {value_of(labels, name) for labels in found}
    return _limited(sorted(values - {""}), limit)


def selections(texts: Iterable[str]) -> list[Selection]:
    """What `match[]` asks for, one entry for each time it is given."""
    found = [_selection(text) for text in texts]
    if any(_is_empty(one) for one in found):
        raise ApiError("bad_data", EMPTY)
    return found


def _selection(text: str) -> Selection:
    try:
        return selection(text)
    except ExpressionError as error:
        is_empty = "at least one non-empty matcher" in error.message
        raise ApiError("bad_data", EMPTY if is_empty else said(error, text)) from None


def _is_empty(one: Selection) -> bool:
    return not one.name and all(matcher.matches("") for matcher in one.matchers)


def _bounds(question: Question) -> tuple[int, int]:
    return question.form.time("start", MIN_MS), question.form.time("end", MAX_MS)


def _matching(
    question: Question, wanted: Sequence[Selection], bounds: tuple[int, int]
) -> set[Labels]:
    """The label sets that are there within `bounds` and that any of `wanted` means."""
    start, end = bounds
    named = {one.name for one in wanted if one.name is not None}
    names = named if wanted and len(named) == len({one.name for one in wanted}) else None
    return {
        labels
        for labels, first_ms, last_ms in question.copies.known(names, question.within)
        if first_ms <= end
        and last_ms + LOOKBACK_MS >= start
        and (not wanted or any(_means(one, labels) for one in wanted))
    }


def _means(one: Selection, labels: Labels) -> bool:
    return (one.name is None or value_of(labels, NAME) == one.name) and one.matches(labels)


def _limited(found: Sequence[object], limit: int) -> Found:
    if 0 < limit < len(found):
        return Found(found[:limit], (TRUNCATED,))
    return Found(found)


def _unescaped(name: str) -> str:
    """`U__a_2e_b` → `a.b`: how a name that is no identifier is written in a path."""
    body = name.removeprefix("U__")
    if _WELL_ESCAPED.fullmatch(body) is None:
        return name
    try:
        plain = _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else "_", body)
        plain.encode()
    except (ValueError, OverflowError):
        return name
    return plain
