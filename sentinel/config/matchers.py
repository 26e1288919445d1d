"""Matchers as Alertmanager writes them: `alertname="X"`, `model=~"qwen.*"`, `{a="b",c!="d"}`.

This is the classic syntax, which Alertmanager falls back to: values may go unquoted, and a
backslash escapes only itself, a quote and `n`, so that a regular expression stays readable.
Names may be any text, in quotes if need be, as they may since Alertmanager 0.27.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, InstanceOf, PlainSerializer

from sentinel.config.fault import quoted
from sentinel.config.section import Loc, wrong
from sentinel.core.model.labels import Matcher, MatchOp

_ALLOWED = 'a matcher such as alertname="X", model!="m", target=~"a|b" or severity!~"info"'
_ONE = re.compile(
    r"""\s*(?:"(?P<quoted>(?:[^"\\]|\\.)+)"|(?P<name>(?![0-9])[^\s{}!=~,"'`\\]+))
        \s*(?P<op>=~|!=|!~|=)\s*(?P<value>.*?)\s*""",
    re.VERBOSE | re.DOTALL,
)
_VALUE = re.compile(r'"((?:[^"\\]|\\.)*)"|((?:[^"{}\\]|\\.)*\\?)', re.DOTALL)
_PIECE = re.compile(r'(?:[^",\\]|\\.|\\$|"(?:[^"\\]|\\.)*"?)*', re.DOTALL)
_PLAIN_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse_matchers(text: str) -> tuple[Matcher, ...]:
    """Read one or more matchers, with or without braces. Raises `ValueError`."""
    inner = text.strip()
    if inner.startswith("{") != inner.endswith("}") or len(inner) == 1:
        raise ValueError(f"{quoted(text)} has an unpaired brace")
    inner = inner.removeprefix("{").removesuffix("}").strip().removesuffix(",")
    if not inner:
        raise ValueError(f"{quoted(text)} matches nothing in particular")
    return tuple(parse_matcher(piece) for piece in _pieces(inner))


def parse_matcher(text: str) -> Matcher:
    """Read exactly one matcher; a value without quotes goes to the end. Raises `ValueError`."""
    one = _ONE.fullmatch(text)
    value = _VALUE.fullmatch(one["value"]) if one else None
    if one is None or value is None:
        raise ValueError(f"{quoted(text)} is not a matcher")
    name = one["name"] or _unescape(one["quoted"])
    text_of_value = value[2] if value[1] is None else value[1]
    return Matcher(name, cast("MatchOp", one["op"]), _unescape(text_of_value))


def show_matcher(matcher: Matcher) -> str:
    """As `parse_matcher` reads it."""
    plain = _PLAIN_NAME.fullmatch(matcher.name)
    name = matcher.name if plain else _quote(matcher.name)
    return f"{name}{matcher.op}{_quote(matcher.value)}"


def _pieces(text: str) -> Iterator[str]:
    """What stands between the commas that are not in quotes."""
    position = 0
    while position <= len(text):
        piece = _PIECE.match(text, position)
        assert piece is not None  # it takes also nothing
        yield piece[0]
        position = piece.end() + 1


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
    return [show_matcher(matcher) for matcher in matchers]


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


_Several = tuple[InstanceOf[Matcher], ...]
_SHOWN = PlainSerializer(_show, return_type=list[str])
Matchers = Annotated[_Several, BeforeValidator(_read_list), _SHOWN]
EqualityMap = Annotated[_Several, _read_map("="), _SHOWN]
PatternMap = Annotated[_Several, _read_map("=~"), _SHOWN]
