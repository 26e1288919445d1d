r"""Puts right, before the text is parsed, what the native parser reads otherwise than Prometheus.

It compiles the regular expressions of matchers as Rust's `regex` and refuses what RE2 takes,
like `[[a]` or a quoted `\Q..\E`: so it is shown stand-ins, all of them after `=~`, and nobody
but `Matcher` checks what they stand for. And it takes a backslash between backticks for an
escape: so it is shown quotes instead.
"""

import re

from sentinel.core.model.labels import MatchOp

_STRING = r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)"""
_MATCH = re.compile(
    rf"(?P<op>[=!]~)(?P<space>(?:\s|\#[^\n]*\n)*)(?P<pattern>{_STRING})|(?P<other>{_STRING})|\#[^\n]*",
)
_STAND_IN = re.compile(r"pattern-(\d+)", re.ASCII)


class Veil:
    """A text with its patterns hidden, and how to find them again."""

    def __init__(self, text: str) -> None:
        self.original = text
        self._hid: list[tuple[MatchOp, str]] = []
        self.text = _MATCH.sub(self._hidden, text)

    def _hidden(self, found: re.Match[str]) -> str:
        if found["other"] is not None:
            return _quoted(found["other"])
        if found["pattern"] is None:
            return found[0]
        op: MatchOp = "=~" if found["op"] == "=~" else "!~"
        self._hid.append((op, _quoted(found["pattern"])))
        return f'=~{found["space"]}"pattern-{len(self._hid) - 1}"'

    def hidden(self, shown: str) -> tuple[MatchOp, str]:
        """The operator, and the string in its quotes, where the parser read `=~` and `shown`."""
        stand_in = _STAND_IN.fullmatch(shown)
        if stand_in is None:
            raise ValueError("a pattern that is no plain string")
        return self._hid[int(stand_in[1])]

    def unveiled(self, message: str) -> str:
        """What the parser says, in the author's words."""
        return _STAND_IN.sub(self._worded, message)

    def _worded(self, found: re.Match[str]) -> str:
        number = int(found[1])
        return self._hid[number][1][1:-1] if number < len(self._hid) else found[0]


def _quoted(literal: str) -> str:
    if not literal.startswith("`"):
        return literal
    raw = literal[1:-1].replace("\\", "\\\\").replace('"', '\\"')
    return '"' + raw.replace("\n", "\\n").replace("\r", "") + '"'
