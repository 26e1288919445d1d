"""Operators with a scalar on at least one side, and what an operator does to two numbers.

A comparison is a filter that keeps the vector's own value, on whichever side it stands;
with `bool`, and for arithmetic, the metric name goes.
"""

import math
import operator
from collections.abc import Callable

from sentinel.core.promql.arithmetic import divide, modulo, power
from sentinel.core.promql.frame import (
    Context,
    Frame,
    Remembered,
    Scalar,
    Vector,
    checked,
    nameless,
)
from sentinel.core.promql.nodes import Binary

Operate = Callable[[float, float], float]

ARITHMETIC: dict[str, Operate] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
    "%": modulo,
    "^": power,
    "atan2": math.atan2,
}
COMPARISON: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
SETS = ("and", "or", "unless")


def operation(op: str, *, returns_bool: bool) -> Callable[[float, float], float | None]:
    """What the operator makes of a pair; None where a comparison filters it out."""
    if op in ARITHMETIC:
        return ARITHMETIC[op]
    compare = COMPARISON[op]
    if returns_bool:
        return lambda left, right: 1.0 if compare(left, right) else 0.0
    return lambda left, right: left if compare(left, right) else None


def scalars(node: Binary, left: Scalar, right: Scalar) -> Scalar:
    work = operation(node.op, returns_bool=True)
    return lambda ctx: work(left(ctx), right(ctx)) or 0.0


def with_scalar(node: Binary, vector: Vector, scalar: Scalar, *, scalar_is_left: bool) -> Vector:
    work = operation(node.op, returns_bool=node.returns_bool)
    is_filter = node.op in COMPARISON and not node.returns_bool
    renamed = Remembered(nameless)

    def evaluate(ctx: Context) -> Frame:
        frame = vector(ctx)
        other = scalar(ctx)
        values: list[float | None]
        if not scalar_is_left:
            values = [None if v is None else work(v, other) for v in frame.values]
        elif is_filter:  # what stays is the vector's value, on whichever side it stands
            compare = COMPARISON[node.op]
            values = [v if v is not None and compare(other, v) else None for v in frame.values]
        else:
            values = [None if v is None else work(other, v) for v in frame.values]
        if is_filter:
            return Frame(frame.shape, values)
        return checked(Frame(renamed(frame.shape), values))

    return evaluate
