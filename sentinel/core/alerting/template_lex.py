"""The text of a Go template to tokens, and Go's literals to values.

Whether a space stands before a token is kept, because it decides: `$labels.job` is one
operand, `$labels .job` are two.
"""

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass

_SPACE = " \t\r\n"
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`)
    |(?P<char>'(?:\\.|[^'\\\n])+')
    |(?P<number>[+-]?(?:0[xXbBoO][0-9a-fA-F_]+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))
    |(?P<variable>\$\w*)
    |(?P<field>\.[^\W\d]\w*)
    |(?P<dot>\.)
    |(?P<word>[^\W\d]\w*)
    |(?P<mark>:=|[()|,=])""",
    re.VERBOSE,
)
_CLOSE = re.compile(r"[ \t\r\n]-\}\}|\}\}")
_COMMENT_CLOSE = re.compile(r"([ \t\r\n]-)?\}\}")


class TemplateSyntaxError(ValueError):
    """The text is no template. Says in which line, and why."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # a group of _TOKEN, or: text open close
    text: str
    line: int
    spaced: bool = False


def lex(text: str) -> Iterator[Token]:
    at, trim = 0, False
    while True:
        start = text.find("{{", at)
        piece = text[at:] if start < 0 else text[at:start]
        if trim:
            piece = piece.lstrip(_SPACE)
        if start < 0:
            yield Token("text", piece, text.count("\n") + 1)
            return
        line = text.count("\n", 0, start) + 1
        inside = start + 2
        if text.startswith("-", inside) and text[inside + 1 : inside + 2] in tuple(_SPACE):
            piece = piece.rstrip(_SPACE)
            inside += 2
        yield Token("text", piece, line)
        if text.startswith("/*", inside):
            at, trim = _comment_end(text, inside, line)
        else:
            yield Token("open", "{{", line)
            at, trim = yield from _lex_action(text, inside, line)
            yield Token("close", "}}", line)


def _comment_end(text: str, at: int, line: int) -> tuple[int, bool]:
    end = text.find("*/", at + 2)
    if end < 0:
        raise TemplateSyntaxError(f"line {line}: unclosed comment")
    closing = _COMMENT_CLOSE.match(text, end + 2)
    if closing is None:
        raise TemplateSyntaxError(f"line {line}: comment ends before closing delimiter")
    return closing.end(), closing[1] is not None


def _lex_action(text: str, at: int, line: int) -> Generator[Token, None, tuple[int, bool]]:
    """The tokens up to the closing braces; returns where they end and whether they trim."""
    spaced = False
    while True:
        closing = _CLOSE.match(text, at)
        if closing:
            return closing.end(), closing[0] != "}}"
        found = _TOKEN.match(text, at)
        if found is None:
            if at >= len(text):
                raise TemplateSyntaxError(f"line {line}: unclosed action")
            raise TemplateSyntaxError(f"line {line}: unexpected {text[at]!r} in action")
        at = found.end()
        if found.lastgroup == "space":
            if _CLOSE.match(text, at - 1):
                at -= 1  # the space belongs to a trimming close
                continue
            spaced = True
            continue
        yield Token(str(found.lastgroup), found[0], line, spaced)
        spaced = False


_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.?))",
    re.DOTALL,
)


def unquote(text: str) -> str:
    """The value of a Go string in its quotes; raises `ValueError`."""
    if text.startswith("`"):
        return text[1:-1].replace("\r", "")
    return _ESCAPE.sub(_unescape, text[1:-1])


def _unescape(match: re.Match[str]) -> str:
    simple, two, four, eight, octal, _ = match.groups()
    if simple:
        return _SIMPLE[simple]
    digits, base = (octal, 8) if octal else (two or four or eight, 16)
    if digits is None:
        raise ValueError(f"unknown escape sequence {match[0]}")
    return chr(int(digits, base))


def read_string(token: Token) -> str:
    try:
        return unquote(token.text)
    except (ValueError, OverflowError) as error:
        raise TemplateSyntaxError(f"line {token.line}: {token.text}: {error}") from None


def read_char(token: Token) -> int:
    char = read_string(token)
    if len(char) != 1:
        raise TemplateSyntaxError(f"line {token.line}: malformed character constant: {token.text}")
    return ord(char)


def read_number(token: Token) -> int | float:
    text = token.text.replace("_", "")
    try:
        if re.fullmatch(r"[+-]?0[0-7]+", text):
            return int(text, 8)
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise TemplateSyntaxError(f"line {token.line}: bad number syntax: {token.text!r}") from None
