"""Prometheus's short notation for test input: `metric{a="b"}` and `1+2x3 _ stale 5`.

`1+2x3` is four values, 1 3 5 7, each added to the last; `1x3` is four ones; `_x3` is three
gaps. There is no hexadecimal: `0x10` is eleven zeros. All of it as promtool reads it.
"""

import math
import re
from typing import Final

from sentinel.core.alerting.template_lex import unquote

LARGEST_REPEAT = 1_000_000

STALE: Final = "stale"
Value = float | str | None  # a number, STALE, or None for no sample

_NUMBER = r"(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[iI][nN][fF]|[nN][aA][nN])"
_ITEM = re.compile(
    rf"(?P<gap>_)(?:x(?P<gaps>[0-9]+))?"
    rf"|(?P<start>[+-]?{_NUMBER})(?:(?P<step>[+-]{_NUMBER})(?=x))?(?:x(?P<times>[0-9]+))?"
    rf"|(?P<stale>stale)"
)
_STRING = r'"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'|`[^`]*`"
_METRIC_NAME = re.compile(r"\s*([A-Za-z_:][A-Za-z0-9_:]*)?\s*")
_LABEL = re.compile(
    rf"\s*(?:([A-Za-z_][A-Za-z0-9_]*)|({_STRING}))\s*(?:=\s*({_STRING})\s*)?(,|(?=\}}))"
)


def parse_series(text: str) -> dict[str, str]:
    """The labels of one series, its name as `__name__`; raises `ValueError`."""
    start = _METRIC_NAME.match(text)
    assert start is not None  # it matches the empty text
    labels = {"__name__": start[1]} if start[1] else {}
    at = start.end()
    if at == len(text) and labels:
        return labels
    if not text.startswith("{", at):
        raise ValueError(f"not a series: {text!r}")
    at += 1
    while not re.compile(r"\s*\}").match(text, at):
        found = _LABEL.match(text, at)
        if found is None:
            raise ValueError(f"not a series: {text!r}")
        at = found.end()
        _take_label(labels, found, text)
    if text[text.index("}", at) + 1 :].strip():
        raise ValueError(f"not a series: {text!r}")
    return labels


def _take_label(labels: dict[str, str], found: re.Match[str], text: str) -> None:
    word, quoted, value = found[1], found[2], found[3]
    name = word or unquote(quoted)
    if value is None:  # {"metric name"}
        if not quoted or "__name__" in labels:
            raise ValueError(f"not a series: {text!r}")
        labels["__name__"] = name
    else:
        labels[name] = unquote(value)


def parse_values(text: str) -> list[Value]:
    """The values of one series, one for each interval; raises `ValueError`."""
    values: list[Value] = []
    for item in text.split():
        if item.startswith("{{"):
            raise ValueError("native histograms are not supported")
        found = _ITEM.fullmatch(item)
        if found is None:
            raise ValueError(f"unexpected {item!r} in series values")
        if int(found["times"] or found["gaps"] or 0) > LARGEST_REPEAT:
            raise ValueError(f"more than {LARGEST_REPEAT} values in {item!r}")
        values.extend(_expanded(found))
    return values


def _expanded(found: re.Match[str]) -> list[Value]:
    if found["gap"]:
        return [None] * int(found["gaps"] or 1)
    if found["stale"]:
        return [STALE]
    value = _number(found["start"])
    step = _number(found["step"]) if found["step"] else 0.0
    values: list[Value] = [value]
    for _ in range(int(found["times"] or 0)):
        value = value + step if found["step"] else value
        values.append(value)
    return values


def _number(text: str) -> float:
    """As Go reads it: a leading zero makes a whole number octal."""
    sign, digits = (-1.0 if text[0] == "-" else 1.0), text.lstrip("+-")
    if digits.lower() in ("inf", "nan"):
        return math.inf * sign if digits.lower() == "inf" else math.nan
    if re.fullmatch(r"0[0-7]+", digits):
        return sign * int(digits, 8)
    return sign * float(digits)
