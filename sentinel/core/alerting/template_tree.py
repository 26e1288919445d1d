"""What a parsed template is made of. Frozen, so that one tree serves every alert of a rule."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Dot:
    pass


@dataclass(frozen=True, slots=True)
class Call:
    function: str


@dataclass(frozen=True, slots=True)
class Variable:
    name: str  # with its dollar sign


@dataclass(frozen=True, slots=True)
class Fields:
    """`operand.a.b`; the operand of `.a.b` is the dot."""

    of: "Operand"
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    commands: tuple[tuple["Operand", ...], ...]
    declares: tuple[str, ...] = ()
    assigns: bool = False


Operand = Literal | Dot | Call | Variable | Fields | Pipe


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Print:
    pipe: Pipe


@dataclass(frozen=True, slots=True)
class Branch:
    kind: str  # if | with | range
    pipe: Pipe
    body: "Nodes"
    otherwise: "Nodes"


@dataclass(frozen=True, slots=True)
class Include:
    name: str
    pipe: Pipe | None


@dataclass(frozen=True, slots=True)
class Leave:
    kind: str  # break | continue


Node = Text | Print | Branch | Include | Leave
Nodes = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    body: Nodes
    defined: dict[str, Nodes] = field(default_factory=dict)
