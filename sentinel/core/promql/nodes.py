"""The tree of an expression, as Sentinel's own frozen values.

Durations are milliseconds. Parentheses are gone, since they mean nothing once there is a
tree. Nodes are compared by value and may be shared; nothing here evaluates.
"""

from dataclasses import dataclass
from typing import Literal

from sentinel.core.model.labels import Matcher

Type = Literal["vector", "scalar", "matrix", "string"]


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class When:
    """The instant a selector reads: `@ at`, then `offset`."""

    offset_ms: int = 0
    at: int | Literal["start", "end"] | None = None


@dataclass(frozen=True, slots=True)
class Selector:
    name: str | None  # None: no single fixed name
    matchers: tuple[Matcher, ...]  # the name is among them only if `name` is None
    when: When


@dataclass(frozen=True, slots=True)
class Range:
    selector: Selector
    range_ms: int


@dataclass(frozen=True, slots=True)
class Subquery:
    inner: "Node"
    range_ms: int
    step_ms: int | None  # None: the evaluation interval
    when: When


@dataclass(frozen=True, slots=True)
class Call:
    function: str
    args: tuple["Node", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Aggregate:
    op: str
    inner: "Node"
    param: "Node | None"
    by: bool  # True: keep `labels`; False: drop them
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which elements of two vectors belong together."""

    on: bool = False  # True: equal `labels`; False: equal but for `labels`
    labels: tuple[str, ...] = ()
    many: Literal["none", "left", "right"] = "none"  # group_left, group_right
    include: tuple[str, ...] = ()
    fill_left: float | None = None
    fill_right: float | None = None


@dataclass(frozen=True, slots=True)
class Binary:
    op: str
    left: "Node"
    right: "Node"
    returns_bool: bool
    matching: Matching
    type: Type


@dataclass(frozen=True, slots=True)
class Negate:
    inner: "Node"
    type: Type


Node = Number | Text | Selector | Range | Subquery | Call | Aggregate | Binary | Negate


def type_of(node: Node) -> Type:
    match node:
        case Number():
            return "scalar"
        case Text():
            return "string"
        case Selector() | Aggregate():
            return "vector"
        case Range() | Subquery():
            return "matrix"
        case _:
            return node.type


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Range():
            return (node.selector,)
        case Subquery() | Negate():
            return (node.inner,)
        case Call():
            return node.args
        case Aggregate():
            return (node.inner,) if node.param is None else (node.param, node.inner)
        case Binary():
            return (node.left, node.right)
        case _:
            return ()
