"""The functions a template may call: Go's own and Prometheus's, in one table.

Each entry says what its arguments must be, because Go checks that and the check decides
between a text and an error. Nothing here asks the world: the instant, the external address
and the way to run a query come with the `Scene`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote_plus, urlsplit

from sentinel.core.alerting import humanize
from sentinel.core.alerting.duration import parse_duration
from sentinel.core.alerting.go_format import type_of
from sentinel.core.alerting.go_functions import GO_FUNCTIONS
from sentinel.core.alerting.template_values import Function, Row, Scene, TemplateError
from sentinel.core.model.pattern import compile_search


def call(name: str, scene: Scene, arguments: Sequence[Any]) -> Any:
    function = FUNCTIONS[name]
    repeated = bool(function.takes) and function.takes[-1].startswith("*")
    least = len(function.takes) - repeated
    if len(arguments) < least or (len(arguments) > least and not repeated):
        wanted = f"at least {least}" if repeated else str(least)
        raise TemplateError(f"wrong number of args for {name}: want {wanted} got {len(arguments)}")
    kinds = (
        [*function.takes[:least], *[function.takes[-1][1:]] * (len(arguments) - least)]
        if function.takes
        else []
    )
    try:
        checked = [_CHECKS[kind](value) for kind, value in zip(kinds, arguments, strict=True)]
        return function.does(*([scene] if function.asks_scene else []), *checked)
    except (TemplateError, ValueError, ArithmeticError) as error:
        raise TemplateError(f"error calling {name}: {error}") from error


# What arguments must be.


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TemplateError(f"wrong type for value; expected string; got {type_of(value)}")
    return value


def _number(value: Any) -> float:
    """Prometheus's own functions also take a number that is written as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TemplateError(f"can't convert {type_of(value)} to float")
    try:
        return float(value)
    except ValueError:
        raise TemplateError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None


def _int(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TemplateError(f"expected integer; found {type_of(value)}")
    return value


def _rows(value: Any) -> list[Row]:
    if not isinstance(value, list):
        raise TemplateError(
            f"wrong type for value; expected a query's result; got {type_of(value)}"
        )
    return value


def _row(value: Any) -> Row:
    if not isinstance(value, Row):
        raise TemplateError(f"wrong type for value; expected a sample; got {type_of(value)}")
    return value


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "any": lambda value: value,
    "text": _text,
    "number": _number,
    "int": _int,
    "rows": _rows,
    "row": _row,
}


# Prometheus's own.


def _query(scene: Scene, text: str) -> list[Row]:
    return list(scene.query(text))


def _first(rows: list[Row]) -> Row:
    if not rows:
        raise TemplateError("first() called on vector with no elements")
    return rows[0]


def _sort_by_label(label: str, rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row.labels.get(label, ""))


def _matches(pattern: str, text: str) -> bool:
    return compile_search(pattern).search(text) is not None


def _replace_all(pattern: str, replacement: str, text: str) -> str:
    found = compile_search(pattern)

    def expand(match: re.Match[str]) -> str:
        def group(name: re.Match[str]) -> str:
            if name[0] == "$$":
                return "$"
            key = name[1] or name[2]
            try:
                return match[int(key) if key.isdigit() else key] or ""
            except IndexError:
                return ""

        return re.sub(r"\$(?:\$|\{(\w+)\}|(\w+))", group, replacement)

    return found.sub(expand, text)


def _title(text: str) -> str:
    return re.sub(r"(?:^|(?<=[^\w']))\w", lambda match: match[0].title(), text)


def _strip_port(text: str) -> str:
    match = re.fullmatch(r"\[([^\[\]]*)\]:[^:]*|([^:\[\]]*):[^:]*", text)
    return text if match is None else match[1] if match[1] is not None else match[2]


def _strip_domain(text: str) -> str:
    host, colon, port = text.partition(":")
    if re.fullmatch(r"[0-9.]+", host) or ":" in port:
        return text
    return host.split(".", 1)[0] + colon + port


def _link(expression: str, tab: int) -> str:
    return f"/graph?g0.expr={quote_plus(expression)}&g0.tab={tab}"


def _arguments(*values: Any) -> dict[str, Any]:
    return {f"arg{at}": value for at, value in enumerate(values)}


FUNCTIONS: dict[str, Function] = {
    **GO_FUNCTIONS,
    "query": Function(("text",), _query, asks_scene=True),
    "first": Function(("rows",), _first),
    "label": Function(("text", "row"), lambda name, row: row.labels.get(name, "")),
    "value": Function(("row",), lambda row: row.value),
    "strvalue": Function(("row",), lambda row: row.labels.get("__value__", "")),
    "sortByLabel": Function(("text", "rows"), _sort_by_label),
    "args": Function(("*any",), _arguments),
    "humanize": Function(("number",), humanize.humanize),
    "humanize1024": Function(("number",), humanize.humanize_1024),
    "humanizeDuration": Function(("number",), humanize.humanize_duration),
    "humanizePercentage": Function(("number",), humanize.humanize_percentage),
    "humanizeTimestamp": Function(("number",), humanize.humanize_timestamp),
    "toTime": Function(("number",), humanize.show_instant),
    "toDuration": Function(("number",), humanize.show_span),
    "parseDuration": Function(("text",), lambda text: parse_duration(text).total_seconds()),
    "now": Function((), lambda scene: scene.at.timestamp(), asks_scene=True),
    "reReplaceAll": Function(("text", "text", "text"), _replace_all),
    "match": Function(("text", "text"), _matches),
    "title": Function(("text",), _title),
    "toUpper": Function(("text",), str.upper),
    "toLower": Function(("text",), str.lower),
    "stripPort": Function(("text",), _strip_port),
    "stripDomain": Function(("text",), _strip_domain),
    "safeHtml": Function(("text",), str),
    "urlQueryEscape": Function(("text",), quote_plus),
    "graphLink": Function(("text",), lambda text: _link(text, 0)),
    "tableLink": Function(("text",), lambda text: _link(text, 1)),
    "externalURL": Function((), lambda scene: scene.external_url, asks_scene=True),
    "pathPrefix": Function((), lambda scene: urlsplit(scene.external_url).path, asks_scene=True),
}
