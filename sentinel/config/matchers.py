"""Matchers as Alertmanager writes them: `alertname="X"`, `model=~"qwen.*"`, `{a="b",c!="d"}`.

This is the classic syntax, which Alertmanager falls back to: values may go unquoted, and a
backslash escapes only itself, a quote and `n`, so that a regular expression stays readable.
"""

import re
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, InstanceOf, PlainSerializer

from sentinel.config.fault import quoted
from sentinel.config.section import Loc, wrong
from sentinel.core.model.labels import Matcher, MatchOp

_ALLOWED = 'a matcher such as alertname="X", model!="m", target=~"a|b" or severity!~"info"'
_ONE = re.compile(
    r"""\s*(?:(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)|"(?P<quoted_name>(?:[^"\\]|\\.)+)")
        \s*(?P<op>=~|!=|!~|=)\s*
        (?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^",{}]*?))\s*(?P<end>,|$)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse_matchers(text: str) -> tuple[Matcher, ...]:
    """Read one or more matchers, with or without braces. Raises `ValueError`."""
    inner = text.strip()
    if inner.startswith("{") != inner.endswith("}") or len(inner) == 1:
        raise ValueError(f"{quoted(text)} has an unpaired brace")
    inner = inner.removeprefix("{").removesuffix("}").strip().removesuffix(",")
    if not inner:
        raise ValueError(f"{quoted(text)} matches nothing in particular")
    found: list[Matcher] = []
    position = 0
    while position < len(inner):
        one = _ONE.match(inner, position)
        if one is None:
            raise ValueError(f"{quoted(text)} is not a matcher")
        found.append(_matcher(one))
        position = one.end()
    return tuple(found)


def _matcher(one: re.Match[str]) -> Matcher:
    name = one["name"] or _unescape(one["quoted_name"])
    value = one["bare"] if one["quoted"] is None else _unescape(one["quoted"])
    return Matcher(name, cast("MatchOp", one["op"]), value)


def _unescape(text: str) -> str:
    return re.sub(r"\\.", lambda m: _ESCAPES.get(m[0], m[0]), text, flags=re.DOTALL)


def _read_list(value: object) -> object:
    """A list of texts, or one text."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        raise wrong("is not a list of matchers", allowed=_ALLOWED)
    found: list[Matcher] = []
    for index, item in enumerate(value):
        if isinstance(item, Matcher):
            found.append(item)
        else:
            found += _read_one(item, (index,))
    return tuple(found)


def _read_one(item: object, at: Loc) -> tuple[Matcher, ...]:
    if not isinstance(item, str):
        raise wrong("is not a matcher", allowed=_ALLOWED, at=at)
    try:
        return parse_matchers(item)
    except ValueError as error:
        raise wrong(str(error), allowed=_ALLOWED, at=at) from None


def _read_map(op: MatchOp) -> BeforeValidator:
    """Alertmanager's older `match` and `match_re`: label → value."""

    def read(value: object) -> object:
        if isinstance(value, tuple):
            return value
        if not isinstance(value, dict):
            raise wrong("is not a mapping", allowed="a mapping: label: value")
        found = []
        for name, text in value.items():
            try:
                found.append(Matcher(str(name), op, "" if text is None else str(text)))
            except ValueError as error:
                raise wrong(str(error), allowed=_ALLOWED, at=(name,)) from None
        return tuple(found)

    return BeforeValidator(read)


def _show(matchers: Any) -> list[str]:
    return [f"{m.name}{_op(m)}{_quote(m.value)}" for m in matchers]


def _op(matcher: Matcher) -> str:
    return str(getattr(matcher.op, "value", matcher.op))


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


_Several = tuple[InstanceOf[Matcher], ...]
_SHOWN = PlainSerializer(_show, return_type=list[str])
Matchers = Annotated[_Several, BeforeValidator(_read_list), _SHOWN]
EqualityMap = Annotated[_Several, _read_map("="), _SHOWN]
PatternMap = Annotated[_Several, _read_map("=~"), _SHOWN]
