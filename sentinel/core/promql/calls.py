"""Function calls: which there are, and what each makes of its compiled arguments.

`refusal` names what the parser knows and Sentinel does not evaluate; a function missing here
is refused when a file is loaded. Functions drop the metric name unless they only choose.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from sentinel.core.model.labels import Labels, value_of
from sentinel.core.promql import histogram
from sentinel.core.promql.aggregate import sorted_by, sorted_by_value
from sentinel.core.promql.errors import ExpressionError
from sentinel.core.promql.frame import (
    Context,
    Frame,
    Ranges,
    Remembered,
    Scalar,
    Shape,
    Vector,
    checked,
    nameless,
)
from sentinel.core.promql.functions import (
    DATE,
    ELEMENT,
    is_label_name,
    joiner,
    natural_key,
    replacer,
)
from sentinel.core.promql.nodes import Call, Node, Range, Selector, Text, type_of
from sentinel.core.promql.overtime import KEEP_NAME, OVER_TIME, OverTime, over_time
from sentinel.core.promql.select import fixed_labels, instant_times

ALONE = Shape(((),))  # one element without labels


class Compiler(Protocol):
    legacy: bool

    def vector(self, node: Node) -> Vector: ...
    def scalar(self, node: Node) -> Scalar: ...
    def ranges(self, node: Node) -> Ranges: ...


SCALARS: dict[str, Scalar] = {
    "time": lambda ctx: ctx.at / 1000,
    "pi": lambda _: math.pi,
    "start": lambda ctx: ctx.start / 1000,
    "end": lambda ctx: ctx.end / 1000,
    "range": lambda ctx: (ctx.end - ctx.start) / 1000,
    "step": lambda ctx: ctx.step / 1000,
}


def scalar_call(node: Call, compiler: Compiler) -> Scalar:
    if node.function != "scalar":
        return SCALARS[node.function]
    inner = compiler.vector(node.args[0])

    def only_value(ctx: Context) -> float:
        present = [value for value in inner(ctx).values if value is not None]
        return present[0] if len(present) == 1 else math.nan

    return only_value


def vector_call(node: Call, compiler: Compiler) -> Vector:
    name = node.function
    if name in ELEMENT:
        rest = [compiler.scalar(arg) for arg in node.args[1:]]
        return mapped(compiler.vector(node.args[0]), ELEMENT[name], rest)
    if name in DATE:
        inner = compiler.vector(node.args[0]) if node.args else alone(SCALARS["time"])
        return mapped(inner, DATE[name], ())
    reduce = over_time(name, legacy=compiler.legacy)
    if reduce is not None:
        return _over_ranges(node, compiler, reduce)
    return SPECIAL[name](node, compiler)


def mapped(inner: Vector, work: Callable[..., float | None], rest: Sequence[Scalar]) -> Vector:
    """Every element through `work`, without its name."""
    renamed = Remembered(nameless)

    def evaluate(ctx: Context) -> Frame:
        frame = inner(ctx)
        arguments = [scalar(ctx) for scalar in rest]
        values = [None if value is None else work(value, *arguments) for value in frame.values]
        return checked(Frame(renamed(frame.shape), values))

    return evaluate


def alone(scalar: Scalar) -> Vector:
    return lambda ctx: Frame(ALONE, [scalar(ctx)])


def _over_ranges(node: Call, compiler: Compiler, reduce: OverTime) -> Vector:
    matrix_at = next(i for i, arg in enumerate(node.args) if not _is_scalar(arg))
    ranges = compiler.ranges(node.args[matrix_at])
    rest = [compiler.scalar(arg) for i, arg in enumerate(node.args) if i != matrix_at]
    keeps_name = node.function in KEEP_NAME
    renamed = Remembered(nameless)

    def evaluate(ctx: Context) -> Frame:
        arguments = [scalar(ctx) for scalar in rest]
        matrix = ranges(ctx)
        values: list[float | None] = [None] * len(matrix.shape.labels)
        for place, window in matrix.windows:
            values[place] = reduce(window, *arguments)
        if keeps_name:
            return checked(Frame(matrix.shape, values))
        return checked(Frame(renamed(matrix.shape), values))

    return evaluate


def _is_scalar(node: Node) -> bool:
    return type_of(node) == "scalar"


def _absent(node: Call, compiler: Compiler) -> Vector:
    argument = node.args[0]
    inner = compiler.vector(argument)
    shape = Shape((fixed_labels(argument) if isinstance(argument, Selector) else (),))

    def evaluate(ctx: Context) -> Frame:
        absent = all(value is None for value in inner(ctx).values)
        return Frame(shape, [1.0 if absent else None])

    return evaluate


def _absent_over_time(node: Call, compiler: Compiler) -> Vector:
    argument = node.args[0]
    ranges = compiler.ranges(argument)
    labels = fixed_labels(argument.selector) if isinstance(argument, Range) else ()
    shape = Shape((labels,))

    def evaluate(ctx: Context) -> Frame:
        absent = next(iter(ranges(ctx).windows), None) is None
        return Frame(shape, [1.0 if absent else None])

    return evaluate


def _timestamp(node: Call, compiler: Compiler) -> Vector:
    argument = node.args[0]
    if isinstance(argument, Selector):
        return mapped(instant_times(argument), lambda at: at, ())
    inner = compiler.vector(argument)
    return mapped(inner, lambda _, at: at, [SCALARS["time"]])


def _text(node: Node) -> str:
    assert isinstance(node, Text)
    return node.value


def _relabelled(inner: Vector, work: Callable[[Labels], Labels]) -> Vector:
    changed = Remembered(lambda shape: Shape(tuple(work(labels) for labels in shape.labels)))

    def evaluate(ctx: Context) -> Frame:
        frame = inner(ctx)
        return checked(Frame(changed(frame.shape), frame.values))

    return evaluate


def _target(name: str, node: Node, compiler: Compiler) -> str:
    target = _text(node)
    if not is_label_name(target, legacy=compiler.legacy):
        raise ExpressionError(f"invalid destination label name in {name}(): {target}")
    return target


def _label_replace(node: Call, compiler: Compiler) -> Vector:
    vector, target, template, source, pattern = node.args
    name = _target("label_replace", target, compiler)
    try:
        work = replacer(name, _text(template), _text(source), _text(pattern))
    except ValueError as error:
        raise ExpressionError(f"label_replace(): {error}") from None
    return _relabelled(compiler.vector(vector), work)


def _label_join(node: Call, compiler: Compiler) -> Vector:
    vector, target, separator, *sources = node.args
    name = _target("label_join", target, compiler)
    work = joiner(name, _text(separator), tuple(_text(source) for source in sources))
    return _relabelled(compiler.vector(vector), work)


def _sort(*, descending: bool) -> Callable[[Call, Compiler], Vector]:
    return lambda node, compiler: sorted_by_value(
        compiler.vector(node.args[0]), descending=descending
    )


def _sort_by_label(*, descending: bool) -> Callable[[Call, Compiler], Vector]:
    def compiled(node: Call, compiler: Compiler) -> Vector:
        names = [_text(arg) for arg in node.args[1:]]

        def key(labels: Labels) -> object:
            return [natural_key(value_of(labels, name)) for name in names], labels

        return sorted_by(compiler.vector(node.args[0]), key, descending=descending)

    return compiled


def _histogram(read: Callable[..., float]) -> Callable[[Call, Compiler], Vector]:
    def compiled(node: Call, compiler: Compiler) -> Vector:
        *scalars, vector = node.args
        return histogram.over_buckets(
            read, [compiler.scalar(arg) for arg in scalars], compiler.vector(vector)
        )

    return compiled


SPECIAL: dict[str, Callable[[Call, Compiler], Vector]] = {
    "absent": _absent,
    "absent_over_time": _absent_over_time,
    "timestamp": _timestamp,
    "vector": lambda node, compiler: alone(compiler.scalar(node.args[0])),
    "label_replace": _label_replace,
    "label_join": _label_join,
    "sort": _sort(descending=False),
    "sort_desc": _sort(descending=True),
    "sort_by_label": _sort_by_label(descending=False),
    "sort_by_label_desc": _sort_by_label(descending=True),
    "histogram_quantile": _histogram(histogram.quantile),
    "histogram_fraction": _histogram(histogram.fraction),
}

KNOWN = frozenset(
    {"scalar", "rate", "increase", "delta", *SCALARS, *SPECIAL, *ELEMENT, *DATE, *OVER_TIME}
)


def refusal(call: Call, *, legacy: bool) -> str | None:
    """Why a call cannot be evaluated; None if it can."""
    if call.function == "holt_winters":
        return None if legacy else "holt_winters() is double_exponential_smoothing() now"
    if call.function in KNOWN:
        return None
    if call.function.startswith("histogram_"):
        return f"{call.function}() needs native histograms, which are not supported"
    return f"{call.function}() is not supported"
