"""Reads a shell line far enough to change one word of it, and no further.

Total in one direction: what is understood here means to a POSIX shell exactly what it means
here, and everything else is `UnreadableLineError`. Whoever teaches this a new construct must
know what every shell makes of it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


class UnreadableLineError(Exception):
    """The line is, or may be, more than a list of simple commands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A part of a word that the shell fills in when it runs."""

    raw: str
    name: str = ""  # of the variable; empty where it is more than a plain variable
    default: str | None = None
    quoted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LineWord:
    """One word of a simple command, and where in the line it stands."""

    parts: tuple[str | Filled, ...]
    begin: int
    end: int
    is_pattern: bool = False  # * ? [ { or ~ outside quotes: the shell may make it another word

    @property
    def fillings(self) -> tuple[Filled, ...]:
        return tuple(part for part in self.parts if isinstance(part, Filled))

    @property
    def is_plain(self) -> bool:
        return not self.fillings and not self.is_pattern

    @property
    def text(self) -> str:
        """As it stands, without its quotes."""
        return "".join(part if isinstance(part, str) else part.raw for part in self.parts)

    def filled(self, known: Mapping[str, str]) -> str | None:
        """As the program gets it; None if that cannot be known."""
        texts = [part if isinstance(part, str) else _value(part, known) for part in self.parts]
        return None if None in texts else "".join(text or "" for text in texts)


def commands_of(line: str) -> list[list[LineWord]]:
    """The simple commands of `line`, without what is redirected."""
    commands = [command for command in _commands(line) if command]
    for command in commands:
        if _RESERVED.fullmatch(command[0].text):
            raise UnreadableLineError(f"it is a compound command ({command[0].text})")
    return commands


_RESERVED = re.compile(
    r"if|then|elif|else|fi|for|while|until|do|done|case|esac|select|function|coproc|eval|alias"
    r"|[{}!]|\[\["
)
_SPACE = re.compile(r"(?:[ \t]|\\\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_REDIRECTION = re.compile(r"&>>?|[<>]&|>>|>\||<>|[<>]")
_SEPARATOR = re.compile(r"&&|\|\||\|&|[;&|()\n]")
_REFUSED = (
    ("<<", "a here-document"),
    ("((", "arithmetic"),
    (";;", "a case"),
    ("<(", "a process substitution"),
    (">(", "a process substitution"),
    ("$'", "an ANSI-C quote"),
    ('$"', "a translated string"),
)
_VARIABLE = re.compile(r"\$(\w+|[@*#?$!-])|\$\{(\w+)(?::?-([^{}$`\"'\\]*))?\}")
_ENDS_WORD = frozenset(" \t\n;&|()<>")
_PATTERN = frozenset("*?[{")
_ESCAPABLE_IN_QUOTES = frozenset('$`"\\')


def _value(part: Filled, known: Mapping[str, str]) -> str | None:
    if part.name not in known:
        return part.default
    return known[part.name] or part.default or ""


def _commands(line: str) -> Iterator[list[LineWord]]:
    command: list[LineWord] = []
    at, is_target = 0, False
    while at < len(line):
        _refuse(line, at)
        if space := _SPACE.match(line, at) or _COMMENT.match(line, at):
            at = space.end()
        elif redirection := _REDIRECTION.match(line, at):
            at, is_target = redirection.end(), True
        elif separator := _SEPARATOR.match(line, at):
            yield command
            command, at = [], separator.end()
        else:
            word = _Reader(line, at).word()
            at = word.end
            names_a_stream = line[at : at + 1] in ("<", ">") and word.text.isdigit()
            if not is_target and not names_a_stream:
                command.append(word)
            is_target = False
    yield command


def _refuse(line: str, at: int) -> None:
    for begins, what in _REFUSED:
        if line.startswith(begins, at):
            raise UnreadableLineError(f"it has {what}")


class _Reader:
    """Reads one word, from where it begins."""

    def __init__(self, line: str, at: int) -> None:
        self._line, self._begin, self._at = line, at, at
        self._parts: list[str | Filled] = []
        self._is_pattern = line[at] == "~"

    def word(self) -> LineWord:
        while self._at < len(self._line) and self._line[self._at] not in _ENDS_WORD:
            _refuse(self._line, self._at)
            self._step(self._line[self._at])
        return LineWord(
            parts=tuple(self._parts),
            begin=self._begin,
            end=self._at,
            is_pattern=self._is_pattern,
        )

    def _step(self, char: str) -> None:
        if char == "'":
            end = self._find("'", self._at + 1)
            self._take(self._line[self._at + 1 : end], to=end + 1)
        elif char == '"':
            self._double_quoted()
        elif char == "\\":
            self._escaped()
        elif char in "$`":
            self._filling(quoted=False)
        else:
            self._is_pattern = self._is_pattern or char in _PATTERN
            self._take(char, to=self._at + 1)

    def _double_quoted(self) -> None:
        self._take("", to=self._at + 1)
        while (char := self._line[self._at : self._at + 1]) != '"':
            if not char:
                raise UnreadableLineError("a quote does not close")
            following = self._line[self._at + 1 : self._at + 2]
            if char == "\\" and following in (*_ESCAPABLE_IN_QUOTES, "\n"):
                self._escaped()
            elif char in "$`":
                self._filling(quoted=True)
            else:
                self._take(char, to=self._at + 1)
        self._at += 1

    def _escaped(self) -> None:
        following = self._line[self._at + 1 : self._at + 2]
        if not following:
            raise UnreadableLineError("it ends in a backslash")
        self._take("" if following == "\n" else following, to=self._at + 2)

    def _filling(self, *, quoted: bool) -> None:
        line, begin = self._line, self._at
        if variable := _VARIABLE.match(line, begin):
            name, default = variable[1] or variable[2], variable[3]
            self._fill(variable.end(), name=name, default=default, quoted=quoted)
        elif line[begin] == "`":
            self._fill(self._find("`", begin + 1) + 1, quoted=quoted)
        elif line.startswith(("$(", "${"), begin):
            self._fill(self._closing(begin + 1), quoted=quoted)
        else:
            self._take("$", to=begin + 1)

    def _closing(self, at: int) -> int:
        """One past the bracket that closes the one at `at`. Quotes in between are not read."""
        opens, depth = self._line[at], 0
        closes = {"(": ")", "{": "}"}[opens]
        for position in range(at, len(self._line)):
            char = self._line[position]
            if char in "'\"\\`":
                raise UnreadableLineError("it has quotes inside a substitution")
            depth += (char == opens) - (char == closes)
            if not depth:
                return position + 1
        raise UnreadableLineError("a bracket does not close")

    def _find(self, char: str, start: int) -> int:
        end = self._line.find(char, start)
        if end < 0:
            raise UnreadableLineError("a quote does not close")
        return end

    def _fill(self, end: int, *, name: str = "", default: str | None = None, quoted: bool) -> None:
        raw = self._line[self._at : end]
        self._parts.append(Filled(raw=raw, name=name, default=default, quoted=quoted))
        self._at = end

    def _take(self, text: str, *, to: int) -> None:
        if self._parts and isinstance(self._parts[-1], str):
            self._parts[-1] += text
        else:
            self._parts.append(text)
        self._at = to
