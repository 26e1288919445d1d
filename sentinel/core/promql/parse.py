"""Expression text to our own tree; the one file that knows promql_parser.

What Sentinel does not evaluate is refused here, when a rule file is loaded, never later.
The parser is native code: deep nesting ends the process and some timestamps panic with a
`BaseException`, so text is measured before it is parsed and every failure is translated.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from itertools import accumulate
from typing import Any, Literal

import promql_parser as upstream

from sentinel.core.model.labels import NAME, Matcher, MatchOp
from sentinel.core.promql.errors import ExpressionError
from sentinel.core.promql.nodes import (
    Aggregate,
    Binary,
    Call,
    Matching,
    Negate,
    Node,
    Number,
    Range,
    Selector,
    Subquery,
    Text,
    Type,
    When,
    type_of,
)
from sentinel.core.promql.veil import Veil

MAX_LENGTH = 10_240
MAX_DEPTH = 200
MAX_OPERATORS = 2_000  # the native parser's stack ends between 2 400 and 5 000
MAX_MS = 100 * 365 * 86_400_000

_QUOTED = re.compile(r"""#[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`""")
_OPERATORS = re.compile(r"[-+*/%^=<>!]")
_SYSTEM_TIME = re.compile(r"SystemTime \{\s*tv_sec: (-?\d+),\s*tv_nsec: (\d+)")
_NAMED = re.compile(r"with name '(\w+)'|^(\w+)\(\)")
_PAIRS = ("()", "[]", "{}")
_DEPTH = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

_OPS = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}
_MANY: dict[str, Literal["left", "right"]] = {"ManyToOne": "left", "OneToMany": "right"}
_HOLT_WINTERS = upstream.Function(  # Prometheus 2's name of double_exponential_smoothing
    "holt_winters",
    [upstream.ValueType.Matrix, upstream.ValueType.Scalar, upstream.ValueType.Scalar],
    upstream.ValueType.Vector,
)
with suppress(ValueError):  # a later parser may know it
    upstream.register_extra_functions([_HOLT_WINTERS])
_EXPERIMENTAL_OPS = {"limit_ratio": "limit_ratio is not supported"}


def parse(text: str, refuse: Callable[[Call], str | None]) -> Node:
    """Parse `text`. `refuse` says why a call cannot be evaluated, or None.

    Raises `ExpressionError`.
    """
    _measure(text)
    veil = Veil(text)
    try:
        tree = upstream.parse(veil.text)
    except BaseException as error:  # noqa: BLE001 - native code panics with one; see _translated
        raise _translated(error, veil) from None
    return _Converter(text, veil, refuse).convert(tree, 0)


def pretty(text: str, refuse: Callable[[Call], str | None]) -> str:
    """`text` as Prometheus lays it out; as it is, if that would change its meaning.

    Raises `ExpressionError`.
    """
    node = parse(text, refuse)
    try:
        shown: str = upstream.parse(text).prettify()
        return shown if parse(shown, refuse) == node else text
    except (ExpressionError, ValueError):
        return text


def _measure(text: str) -> None:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(f"expression is longer than {MAX_LENGTH} characters")
    bare = _QUOTED.sub("", text)
    if not bare.strip() and not text.strip():
        raise ExpressionError("expression is empty")
    depth = max(accumulate((_DEPTH.get(char, 0) for char in bare), initial=0))
    if depth > MAX_DEPTH or len(_OPERATORS.findall(bare)) > MAX_OPERATORS:
        raise ExpressionError(f"expression is nested deeper than {MAX_DEPTH} levels")


def _translated(error: BaseException, veil: Veil) -> BaseException:
    """An `ExpressionError` for what the parser raises; what is not the parser's stays."""
    if isinstance(error, ValueError | TypeError | OverflowError):
        message = (str(error) or "invalid expression").replace(
            "invalid promql query", "syntax error"
        )
        return ExpressionError(veil.unveiled(message), column=_column(message, veil.original))
    if type(error).__name__ == "PanicException":
        return ExpressionError("the parser cannot read this expression")
    return error


def _column(message: str, text: str) -> int | None:
    """Where in `text` the fault is, as far as the message or the brackets tell."""
    if (named := _NAMED.search(message)) is not None:
        word = re.escape(named[1] or named[2])
        found = re.search(rf"(?<![\w:]){word}(?![\w:])", text)
        return None if found is None else found.start() + 1
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), text)
    opened: list[tuple[str, int]] = []
    for place, char in enumerate(bare, 1):
        if char in "([{":
            opened.append((char, place))
        elif char in ")]}" and (not opened or opened.pop()[0] + char not in _PAIRS):
            return place
    return opened[-1][1] if opened else None


class _Converter:
    def __init__(self, text: str, veil: Veil, refuse: Callable[[Call], str | None]) -> None:
        self._text = text
        self._veil = veil
        self._refuse = refuse

    def convert(self, tree: Any, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise ExpressionError(f"expression is nested deeper than {MAX_DEPTH} levels")
        depth += 1
        match tree:
            case upstream.ParenExpr():
                return self.convert(tree.expr, depth)
            case upstream.NumberLiteral():
                return Number(float(tree.val))
            case upstream.StringLiteral():
                return Text(tree.val)
            case upstream.VectorSelector():
                return self._selector(tree)
            case upstream.MatrixSelector():
                return Range(self._selector(tree.vector_selector), _milliseconds(tree, "range"))
            case upstream.UnaryExpr():
                inner = self.convert(tree.expr, depth)
                return Negate(inner, type_of(inner))
            case _:
                return self._compound(tree, depth)

    def _compound(self, tree: Any, depth: int) -> Node:
        match tree:
            case upstream.SubqueryExpr():
                inner = self.convert(tree.expr, depth)
                step = _milliseconds(tree, "step") or None
                return Subquery(inner, _milliseconds(tree, "range"), step, _when(tree))
            case upstream.Call():
                return self._call(tree, depth)
            case upstream.AggregateExpr():
                return self._aggregate(tree, depth)
            case upstream.BinaryExpr():
                return self._binary(tree, depth)
            case _:
                raise ExpressionError(f"{type(tree).__name__} is not supported")

    def _call(self, tree: Any, depth: int) -> Call:
        args = tuple(self.convert(arg, depth) for arg in tree.args)
        call = Call(tree.func.name, args, _type(tree.func.return_type))
        why = self._refuse(call)
        if why is not None:
            raise ExpressionError(why, column=_column(why, self._text))
        return call

    def _aggregate(self, tree: Any, depth: int) -> Aggregate:
        op = str(tree.op).lower()
        if op in _EXPERIMENTAL_OPS:
            raise ExpressionError(_EXPERIMENTAL_OPS[op])
        by, labels = True, ()
        if tree.modifier is not None:
            by = str(tree.modifier.type).endswith("By")
            labels = tuple(tree.modifier.labels)
        param = None if tree.param is None else self.convert(tree.param, depth)
        return Aggregate(op, self.convert(tree.expr, depth), param, by, labels)

    def _binary(self, tree: Any, depth: int) -> Binary:
        left, right = self.convert(tree.lhs, depth), self.convert(tree.rhs, depth)
        both_scalar = type_of(left) == type_of(right) == "scalar"
        return Binary(
            str(tree.op).lower(),
            left,
            right,
            tree.modifier is not None and bool(tree.modifier.return_bool),
            _matching(tree.modifier),
            "scalar" if both_scalar else "vector",
        )

    def _selector(self, tree: Any) -> Selector:
        if tree.matchers.or_matchers:
            raise ExpressionError('"or" between label matchers is not PromQL')
        name: str | None = tree.name
        matchers = [self._matcher(matcher) for matcher in tree.matchers.matchers]
        if name is None and all(m.matches("") for m in matchers):
            raise ExpressionError("vector selector must contain at least one non-empty matcher")
        fixed = [m for m in matchers if m.name == NAME and m.op == "="]
        if name is None and len(fixed) == 1:
            name = fixed[0].value
            matchers.remove(fixed[0])
        return Selector(name, tuple(matchers), _when(tree))

    def _matcher(self, tree: Any) -> Matcher:
        op: MatchOp = _OPS[str(tree.op)]  # type: ignore[assignment]
        value: str = tree.value
        try:
            if op == "=~":
                op, text = self._veil.hidden(value)
                literal: Any = upstream.parse(text)
                value = literal.val
            return Matcher(tree.name, op, value)
        except ValueError as error:
            raise ExpressionError(str(error)) from None


def _matching(modifier: Any) -> Matching:
    if modifier is None:
        return Matching()
    on, labels = False, ()
    if modifier.matching is not None:
        on = str(modifier.matching.type).endswith("Include")
        labels = tuple(modifier.matching.labels)
    card = str(modifier.card).rpartition(".")[2]
    fill = modifier.fill_values
    return Matching(
        on,
        labels,
        _MANY.get(card, "none"),
        tuple(modifier.group_labels or ()),
        fill.lhs,
        fill.rhs,
    )


def _when(tree: Any) -> When:
    offset = _milliseconds(tree, "offset")
    if tree.at is None:
        return When(offset)
    kind = str(tree.at.type).rpartition(".")[2]
    if kind == "Start":
        return When(offset, "start")
    if kind == "End":
        return When(offset, "end")
    return When(offset, _timestamp(tree))


def _timestamp(tree: Any) -> int:
    """The instant after `@`. Reading `tree.at.at` panics for times before 1970."""
    seconds = float(str(tree.at).removeprefix("@ "))
    if seconds == 0 and (spelled := _SYSTEM_TIME.findall(repr(tree))):
        whole, nanos = spelled[-1]
        return int(whole) * 1000 + round(int(nanos) / 1e6)
    if seconds * 1000 > MAX_MS:
        raise ExpressionError("timestamp after @ is out of range")
    return round(seconds * 1000)


def _milliseconds(tree: Any, name: str) -> int:
    """A duration of the node, 0 if it has none. Reading one that is too long raises."""
    try:
        span: timedelta | None = getattr(tree, name)
    except (ValueError, OverflowError):
        raise ExpressionError("duration out of range") from None
    ms = (span or timedelta()) // timedelta(milliseconds=1)
    if abs(ms) > MAX_MS:
        raise ExpressionError("duration out of range")
    return ms


def _type(value_type: Any) -> Type:
    kind: Type = str(value_type).rpartition(".")[2].lower()  # type: ignore[assignment]
    return kind
