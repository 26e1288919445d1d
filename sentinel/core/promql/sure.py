"""What is known of an expression before it is evaluated, so that it need not be.

Most rules find nothing at most evaluations. Yet an error is an answer as well, and is not to be
passed over: whoever leaves something out must know that it has none.
"""

from sentinel.core.promql.binary import COMPARISON
from sentinel.core.promql.nodes import (
    Aggregate,
    Binary,
    Call,
    Negate,
    Node,
    Number,
    Range,
    Selector,
    Text,
    type_of,
)

_OF_NOTHING = ("absent", "absent_over_time")  # these have an answer where there is no series


def cannot_fail(node: Node) -> bool:
    """Whether its evaluation ends in a vector, whatever the series are."""
    match node:
        case Selector():
            return True
        case Aggregate():
            return node.param is None and cannot_fail(node.inner)
        case Call(args=(Range() as window,)):  # of one metric: no two are alike without its name
            return window.selector.name is not None
        case Binary(op="and" | "unless"):
            return cannot_fail(node.left) and cannot_fail(node.right)
        case Binary(left=vector, right=Number()):
            return node.op in COMPARISON and not node.returns_bool and cannot_fail(vector)
        case _:
            return False


def needs_series(node: Node) -> bool:
    """Whether it has no element, and no error, where none of its metrics has a series."""
    match node:
        case Selector():
            return node.name is not None
        case Range():
            return needs_series(node.selector)
        case Negate():
            return needs_series(node.inner)
        case Aggregate():
            return node.param is None and needs_series(node.inner)
        case Call():
            fed = [arg for arg in node.args if not isinstance(arg, Number | Text)]
            is_plain = node.function not in _OF_NOTHING and type_of(node) == "vector"
            return is_plain and bool(fed) and all(needs_series(arg) for arg in fed)
        case Binary():
            sides = [side for side in (node.left, node.right) if not isinstance(side, Number)]
            return bool(sides) and all(needs_series(side) for side in sides)
        case _:
            return False
