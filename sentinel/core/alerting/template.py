"""The Go templates of rule files: `{{ $labels.target }}`, `{{ $value | humanize }}` and the like.

A template is compiled once, which is where what is misspelt is found, and expanded for each
alert. Expanding never costs an alert: what goes wrong becomes part of the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sentinel.core.alerting.go_format import show, type_of
from sentinel.core.alerting.go_functions import truth
from sentinel.core.alerting.template_functions import FUNCTIONS, call
from sentinel.core.alerting.template_lex import TemplateSyntaxError
from sentinel.core.alerting.template_parse import parse
from sentinel.core.alerting.template_tree import (
    Branch,
    Call,
    Dot,
    Fields,
    Include,
    Leave,
    Literal,
    Nodes,
    Operand,
    Pipe,
    Print,
    Text,
    Tree,
    Variable,
)
from sentinel.core.alerting.template_values import Row, Scene, TemplateError

__all__ = ["Row", "Scene", "TemplateError", "TemplateSyntaxError", "compile_template", "expand"]

_VARIABLES = ("$labels", "$externalLabels", "$externalURL", "$value")
_FIELDS = ("Labels", "ExternalLabels", "ExternalURL", "Value")
_DEEPEST = 50


@lru_cache(maxsize=4096)
def compile_template(text: str) -> Tree:
    """Raises `TemplateSyntaxError`, in Go's words where they are short enough."""
    return parse(text, FUNCTIONS.__contains__, _VARIABLES)


def expand(
    text: str,
    labels: Mapping[str, str],
    value: float,
    scene: Scene,
    external_labels: Mapping[str, str] | None = None,
) -> str:
    """The text of one label or annotation; raises `TemplateError`."""
    if "{{" not in text:
        return text
    given = (dict(labels), dict(external_labels or {}), scene.external_url, value)
    tree = compile_template(text)
    data = _Data(dict(zip(_FIELDS, given, strict=True)))
    run = _Run(tree, scene)
    run.variables = [("$", data), *zip(_VARIABLES, given, strict=True)]
    try:
        run.nodes(tree.body, data)
    except RecursionError:
        raise TemplateError("exceeded maximum template depth") from None
    return "".join(run.written)


@dataclass(frozen=True, slots=True)
class _Data:
    """What the dot is to begin with: a struct, so a field it lacks is an error."""

    fields: Mapping[str, Any]

    def __str__(self) -> str:
        return "{" + " ".join(show(value) for value in self.fields.values()) + "}"


class _Left(Exception):  # noqa: N818 - control flow of a range
    def __init__(self, kind: str) -> None:
        self.kind = kind


class _Run:
    """One expansion: what has been written, and the variables in sight."""

    def __init__(self, tree: Tree, scene: Scene, depth: int = 0) -> None:
        self.written: list[str] = []
        self.variables: list[tuple[str, Any]] = []
        self._tree = tree
        self._scene = scene
        self._depth = depth

    def nodes(self, nodes: Nodes, dot: Any) -> None:
        for node in nodes:
            match node:
                case Text(text):
                    self.written.append(text)
                case Print(pipe):
                    value = self._pipe(pipe, dot)
                    if not pipe.declares:
                        self.written.append(show(value, nil="<no value>"))
                case Branch():
                    self._branch(node, dot)
                case Include(name, given):
                    self._include(name, None if given is None else self._pipe(given, dot))
                case Leave(kind):
                    raise _Left(kind)

    def _branch(self, branch: Branch, dot: Any) -> None:
        known = len(self.variables)
        if branch.kind == "range":
            self._range(branch, dot)
        else:
            value = self._pipe(branch.pipe, dot)
            inner = value if branch.kind == "with" and truth(value) else dot
            self.nodes(branch.body if truth(value) else branch.otherwise, inner)
        del self.variables[known:]

    def _range(self, branch: Branch, dot: Any) -> None:
        value = self._pipe(Pipe(branch.pipe.commands), dot)
        pairs = self._pairs(value)
        if not pairs:
            self.nodes(branch.otherwise, dot)
        known = len(self.variables)
        for key, item in pairs:
            names = branch.pipe.declares
            self.variables.extend(
                zip(names, (key, item) if len(names) > 1 else (item,), strict=False)
            )
            try:
                self.nodes(branch.body, item)
            except _Left as left:
                if left.kind == "break":
                    break
            finally:
                del self.variables[known:]

    def _pairs(self, value: Any) -> list[tuple[Any, Any]]:
        if isinstance(value, Mapping):
            return [(key, value[key]) for key in sorted(value)]
        if isinstance(value, list):
            return list(enumerate(value))
        if value is None:
            return []
        raise TemplateError(f"range can't iterate over {show(value)}")

    def _include(self, name: str, dot: Any) -> None:
        if name not in self._tree.defined:
            raise TemplateError(f'template "{name}" not defined')
        if self._depth >= _DEEPEST:
            raise TemplateError("exceeded maximum template depth")
        inner = _Run(self._tree, self._scene, self._depth + 1)
        inner.variables = [("$", dot)]
        inner.nodes(self._tree.defined[name], dot)
        self.written.extend(inner.written)

    def _pipe(self, pipe: Pipe, dot: Any) -> Any:
        value: Any = None
        for at, command in enumerate(pipe.commands):
            value = self._command(command, dot, [value] if at else [])
        for name in pipe.declares:
            if pipe.assigns:
                self._assign(name, value)
            else:
                self.variables.append((name, value))
        return value

    def _assign(self, name: str, value: Any) -> None:
        for at in range(len(self.variables) - 1, -1, -1):
            if self.variables[at][0] == name:
                self.variables[at] = (name, value)
                return

    def _command(self, command: tuple[Operand, ...], dot: Any, piped: list[Any]) -> Any:
        head, *rest = command
        if isinstance(head, Call):
            if head.function in ("and", "or"):
                return self._logic(head.function, rest, dot, piped)
            arguments = [self._operand(operand, dot) for operand in rest]
            return call(head.function, self._scene, [*arguments, *piped])
        if rest or piped:
            raise TemplateError("can't give argument to non-function")
        if isinstance(head, Literal) and head.value is None:
            raise TemplateError("nil is not a command")
        return self._operand(head, dot)

    def _logic(self, name: str, operands: list[Operand], dot: Any, piped: list[Any]) -> Any:
        """Stops at the first operand that decides."""
        if not operands and not piped:
            raise TemplateError(f"wrong number of args for {name}: want at least 1 got 0")
        value: Any = None
        for operand in operands:
            value = self._operand(operand, dot)
            if truth(value) is (name == "or"):
                return value
        return piped[0] if piped else value

    def _operand(self, operand: Operand, dot: Any) -> Any:
        match operand:
            case Literal(value):
                return value
            case Dot():
                return dot
            case Variable(name):
                return next(value for known, value in reversed(self.variables) if known == name)
            case Pipe():
                return self._pipe(operand, dot)
            case Call(function):
                return self._command((operand,), dot, []) if function else None
            case Fields(of, names):
                value = self._operand(of, dot)
                for name in names:
                    value = _field(value, name)
                return value


def _field(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name, "")  # Prometheus expands with missingkey=zero
    if isinstance(value, Row) and name in ("Labels", "Value"):
        return value.labels if name == "Labels" else value.value
    if isinstance(value, _Data) and name in value.fields:
        return value.fields[name]
    if value is None:
        raise TemplateError(f"nil pointer evaluating interface {{}}.{name}")
    raise TemplateError(f"can't evaluate field {name} in type {type_of(value)}")
