"""The tokens of a Go template to a tree: the syntax of text/template, nothing of its meaning.

Unknown functions and undeclared variables are refused here, when a rule file is loaded,
because that is when Go refuses them.
"""

from collections.abc import Callable
from typing import NoReturn

from sentinel.core.alerting.template_lex import (
    TemplateSyntaxError,
    Token,
    lex,
    read_char,
    read_number,
    read_string,
)
from sentinel.core.alerting.template_tree import (
    Branch,
    Call,
    Dot,
    Fields,
    Include,
    Leave,
    Literal,
    Node,
    Nodes,
    Operand,
    Pipe,
    Print,
    Text,
    Tree,
    Variable,
)

_CONSTANTS = {"true": True, "false": False, "nil": None}
_DEEPEST = 100


def parse(text: str, is_function: Callable[[str], bool], variables: tuple[str, ...] = ()) -> Tree:
    """The tree of `text`; raises `TemplateSyntaxError`."""
    return _Parser(text, is_function, variables).tree()


class _Parser:
    def __init__(
        self, text: str, is_function: Callable[[str], bool], variables: tuple[str, ...]
    ) -> None:
        self._tokens = list(lex(text))
        self._at = 0
        self._is_function = is_function
        self._variables = ["$", *variables]
        self._loops = 0
        self._depth = 0
        self._defined: dict[str, Nodes] = {}

    def tree(self) -> Tree:
        body, ended_by = self._nodes()
        if ended_by:
            self._fail(f"unexpected {{{{{ended_by}}}}}")
        return Tree(body, self._defined)

    # Tokens.

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self) -> Token:
        token = self._peek()
        if token is None:
            self._fail("unexpected end of template")
        self._at += 1
        return token

    def _is(self, kind: str, text: str | None = None) -> bool:
        token = self._peek()
        return token is not None and token.kind == kind and text in (None, token.text)

    def _expect(self, kind: str, text: str | None = None) -> Token:
        if not self._is(kind, text):
            token = self._peek()
            self._fail(f"unexpected {token.text!r}" if token else "unexpected end of template")
        return self._take()

    def _fail(self, why: str) -> NoReturn:
        line = self._tokens[min(self._at, len(self._tokens) - 1)].line
        raise TemplateSyntaxError(f"line {line}: {why}")

    # Nodes.

    def _nodes(self) -> tuple[Nodes, str]:
        """Nodes up to the end of the text, an `end` or an `else`, which is said and taken."""
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail("nested too deeply")
        nodes: list[Node] = []
        ended_by = ""
        while (token := self._peek()) is not None and not ended_by:
            self._at += 1
            if token.kind == "text":
                nodes.extend([Text(token.text)] if token.text else [])
            elif self._is("word", "end") or self._is("word", "else"):
                ended_by = self._take().text
                if ended_by == "end":
                    self._expect("close")
            else:
                nodes.extend(self._action())
        self._depth -= 1
        return tuple(nodes), ended_by

    def _action(self) -> tuple[Node, ...]:
        token = self._peek()
        word = token.text if token is not None and token.kind == "word" else ""
        if word in ("if", "with", "range"):
            self._take()
            return (self._branch(word),)
        if word in ("define", "block", "template"):
            self._take()
            return self._include(word)
        if word in ("break", "continue") and not self._is_function(word):
            self._take()
            self._expect("close")
            if not self._loops:
                self._fail(f"{{{{{word}}}}} outside {{{{range}}}}")
            return (Leave(word),)
        pipe = self._pipe("command")
        self._expect("close")
        return (Print(pipe),)

    def _branch(self, kind: str) -> Branch:
        known = len(self._variables)
        pipe = self._pipe(kind)
        self._expect("close")
        self._loops += kind == "range"
        body, ended_by = self._nodes()
        self._loops -= kind == "range"
        otherwise: Nodes = ()
        if ended_by == "else":
            otherwise = self._otherwise(kind)
        elif not ended_by:
            self._fail("unexpected end of template, {{end}} is missing")
        del self._variables[known:]
        return Branch(kind, pipe, body, otherwise)

    def _otherwise(self, kind: str) -> Nodes:
        if kind == "if" and self._is("word", "if"):
            self._take()
            return (self._branch("if"),)
        self._expect("close")
        nodes, ended_by = self._nodes()
        if ended_by != "end":
            self._fail("expected {{end}}")
        return nodes

    def _include(self, word: str) -> tuple[Node, ...]:
        name = read_string(self._expect("string"))
        pipe = None if word == "define" or self._is("close") else self._pipe(word)
        self._expect("close")
        if word != "template":
            known, self._variables = self._variables, ["$"]
            self._defined[name], ended_by = self._nodes()
            self._variables = known
            if ended_by != "end":
                self._fail(f"{{{{{word}}}}} has no {{{{end}}}}")
        return () if word == "define" else (Include(name, pipe),)

    # Pipelines.

    def _pipe(self, context: str) -> Pipe:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail("nested too deeply")
        declares, assigns = self._declarations(context)
        commands = [self._command(context)]
        while self._is("mark", "|"):
            self._take()
            commands.append(self._command(context))
        for command in commands[1:]:
            if not isinstance(command[0], Call | Fields | Variable):
                self._fail("non executable command in pipeline")
        if not assigns:
            self._variables.extend(declares)
        self._depth -= 1
        return Pipe(tuple(commands), declares, assigns)

    def _declarations(self, context: str) -> tuple[tuple[str, ...], bool]:
        names: list[str] = []
        start = self._at
        while self._is("variable"):
            names.append(self._take().text)
            if self._is("mark", ":=") or self._is("mark", "="):
                assigns = self._take().text == "="
                for name in names if assigns else ():
                    self._known(name)
                return tuple(names), assigns
            if not (context == "range" and len(names) == 1 and self._is("mark", ",")):
                break
            self._take()
        self._at = start
        return (), False

    def _command(self, context: str) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while not (self._is("close") or self._is("mark", "|") or self._is("mark", ")")):
            token = self._peek()
            if operands and token is not None and not token.spaced:
                self._fail(f"unexpected {token.text!r} in operand")
            operands.append(self._operand(context))
        if not operands:
            self._fail(f"missing value for {context}")
        return tuple(operands)

    def _operand(self, context: str) -> Operand:
        term = self._term(context)
        names: list[str] = []
        while (token := self._peek()) and token.kind == "field" and not token.spaced:
            names.append(self._take().text[1:])
        if not names:
            return term
        if isinstance(term, Literal | Dot):
            self._fail(f"unexpected .{names[0]} after term")
        if isinstance(term, Fields):
            return Fields(term.of, (*term.names, *names))
        return Fields(term, tuple(names))

    def _term(self, context: str) -> Operand:
        token = self._take()
        if token.kind == "mark" and token.text == "(":
            pipe = self._pipe("parenthesis")
            self._expect("mark", ")")
            return pipe
        readers: dict[str, Callable[[Token], Operand]] = {
            "string": lambda t: Literal(read_string(t)),
            "char": lambda t: Literal(read_char(t)),
            "number": lambda t: Literal(read_number(t)),
            "variable": lambda t: Variable(self._known(t.text)),
            "field": lambda t: Fields(Dot(), (t.text[1:],)),
            "dot": lambda _: Dot(),
            "word": self._word,
        }
        if token.kind not in readers:
            self._fail(f"unexpected {token.text!r} in {context}")
        return readers[token.kind](token)

    def _word(self, token: Token) -> Operand:
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text])
        if not self._is_function(token.text):
            self._fail(f'function "{token.text}" not defined')
        return Call(token.text)

    def _known(self, name: str) -> str:
        if name not in self._variables:
            self._fail(f'undefined variable "{name}"')
        return name
