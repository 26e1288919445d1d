"""The functions every Go template has: comparison, logic, indexing, printing.

Go does not compare 1 with 1.0: `gt $value 5` is an error there and so it is here, or a rule
would work in Sentinel and not in Prometheus.
"""

import html
import json
import math
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

from sentinel.core.alerting.go_format import join, show, sprintf, type_of
from sentinel.core.alerting.template_values import Function, Row, TemplateError


def truth(value: Any) -> bool:
    if isinstance(value, Row) or (isinstance(value, float) and math.isnan(value)):
        return True
    return bool(value)


def _basic(value: Any) -> str:
    kind = type_of(value)
    if kind not in ("bool", "int", "float64", "string"):
        raise TemplateError("invalid type for comparison")
    return kind


def _equal(first: Any, *others: Any) -> bool:
    if not others:
        raise TemplateError("missing argument for comparison")
    return any(_same(first, other) for other in others)


def _same(first: Any, other: Any) -> bool:
    if first is None or other is None:
        return first is other
    if _basic(first) != _basic(other):
        raise TemplateError("incompatible types for comparison")
    return bool(first == other)


def _less(first: Any, second: Any) -> bool:
    if _basic(first) != _basic(second):
        raise TemplateError("incompatible types for comparison")
    if isinstance(first, bool):
        raise TemplateError("invalid type for comparison")
    return bool(first < second)


def _at_most(first: Any, second: Any) -> bool:
    return _less(first, second) or _same(first, second)


def _length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, list | Mapping):
        return len(value)
    raise TemplateError(f"len of type {type_of(value)}")


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping):
            if not isinstance(key, str):
                raise TemplateError(f"value has type {type_of(key)}; should be string")
            value = value.get(key, "")
        elif isinstance(value, list | str):
            if isinstance(key, bool) or not isinstance(key, int):
                raise TemplateError(f"cannot index slice/array with type {type_of(key)}")
            if not 0 <= key < len(value):
                raise TemplateError(f"index out of range: {key}")
            value = value.encode()[key] if isinstance(value, str) else value[key]
        else:
            raise TemplateError(f"can't index item of type {type_of(value)}")
    return value


def _slice(value: Any, *bounds: int) -> Any:
    if not isinstance(value, list | str) or len(bounds) > 2:
        raise TemplateError(f"can't slice item of type {type_of(value)}")
    start, end = [*bounds, *(0, len(value))[len(bounds) :]]
    if not 0 <= start <= end <= len(value):
        raise TemplateError(f"invalid slice index: {start} > {end}")
    return value[start:end]


def _javascript(*values: Any) -> str:
    escaped = json.dumps(join(values), ensure_ascii=False)[1:-1].replace("'", "\\'")
    for char in "<>&=":
        escaped = escaped.replace(char, f"\\u{ord(char):04X}")
    return escaped


def _html(*values: Any) -> str:
    return html.escape(join(values)).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


# `and` and `or` are here for their names: they are evaluated lazily, in the template itself.
GO_FUNCTIONS: dict[str, Function] = {
    "and": Function(("any", "*any"), lambda *_: None),
    "or": Function(("any", "*any"), lambda *_: None),
    "not": Function(("any",), lambda value: not truth(value)),
    "eq": Function(("any", "*any"), _equal),
    "ne": Function(("any", "any"), lambda first, second: not _same(first, second)),
    "lt": Function(("any", "any"), _less),
    "le": Function(("any", "any"), _at_most),
    "gt": Function(("any", "any"), lambda first, second: not _at_most(first, second)),
    "ge": Function(("any", "any"), lambda first, second: not _less(first, second)),
    "len": Function(("any",), _length),
    "index": Function(("any", "*any"), _index),
    "slice": Function(("any", "*int"), _slice),
    "print": Function(("*any",), lambda *values: join(values)),
    "printf": Function(("text", "*any"), lambda text, *values: sprintf(text, values)),
    "println": Function(("*any",), lambda *values: " ".join(map(show, values)) + "\n"),
    "html": Function(("*any",), _html),
    "js": Function(("*any",), _javascript),
    "urlquery": Function(("*any",), lambda *values: quote_plus(join(values))),
}
