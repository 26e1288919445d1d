"""The tree of a regular expression in RE2's syntax, as Prometheus takes it.

What RE2 refuses (back references, look-around, possessive quantifiers) is refused here too,
so that a rule file which loads here also loads in Prometheus. Flags are settled while
reading: every leaf already knows whether it ignores case, and what `^`, `$` and `.` mean.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from sentinel.core.model.char_classes import PERL, category_members, posix_members

MAX_REPEAT = 1000
MAX_DEPTH = 100

_CONTROLS = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_PROPERTY = re.compile(r"\\([pP])(?:([A-Z])|\{(\^?\w+)\})", re.ASCII)
_RANGE = re.compile(r"-[^\]]")
_GROUP = re.compile(r"\((?:\?(?:P?<([A-Za-z_]\w*)>|([imsU]*)(?:-([imsU]+))?([:)])))?", re.ASCII)
_HEX = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2})")
_OCTAL = re.compile(r"[0-7]{1,3}")


@dataclass(frozen=True, slots=True)
class Char:
    """One character out of a set: `python` is that set in `re`'s syntax."""

    python: str


@dataclass(frozen=True, slots=True)
class Assertion:
    """A place between characters, in the syntax of `re`: `^`, `$` or an escaped A, Z, b, B."""

    python: str


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple["Tree", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    inner: "Tree"
    least: int
    most: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Group:
    inner: "Tree"
    number: int
    name: str | None


Tree = Char | Assertion | Sequence | Choice | Repeat | Group


def parse_pattern(text: str) -> Tree:
    """Raises `ValueError` saying what is wrong."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.groups = 0
        self.depth = 0
        self.flags = frozenset("s")  # matchers take newlines for characters

    def refuse(self, why: str) -> NoReturn:
        raise ValueError(f"bad regular expression {self.text!r}: {why}")

    def read(self) -> Tree:
        tree = self._choice()
        if self.at < len(self.text):
            self.refuse("unexpected )")
        return tree

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _choice(self) -> Tree:
        options = [self._sequence()]
        while self._next() == "|":
            self.at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while (char := self._next()) and char not in "|)":
            if char == "(":
                found = self._group()
                if found is None:  # only flags
                    continue
                parts.append(self._repeated(found))
            elif char in "*+?" or _COUNT.match(self.text, self.at):
                self.refuse("nothing to repeat")
            elif self.text.startswith(r"\Q", self.at):
                parts.extend(self._quoted())
            else:
                parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, atom: Tree) -> Tree:
        char = self._next()
        counted = _COUNT.match(self.text, self.at)
        if counted is not None:
            least, most = self._counts(counted)
            self.at = counted.end()
        elif char and char in "*+?":
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
            self.at += 1
        else:
            return atom
        lazy = self._next() == "?"
        self.at += lazy
        if (again := self._next()) and (again in "*+?" or _COUNT.match(self.text, self.at)):
            self.refuse("a repetition of a repetition")
        return Repeat(atom, least, most, lazy is ("U" in self.flags))

    def _counts(self, counted: re.Match[str]) -> tuple[int, int | None]:
        low, comma, high = counted.groups()
        least = int(low)
        most = int(high) if high else None if comma else least
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            self.refuse(f"bad repeat count {counted.group()}")
        return least, most

    def _group(self) -> Tree | None:
        found = _GROUP.match(self.text, self.at)
        if found is None or (found.group() == "(" and self.text.startswith("(?", self.at)):
            self.refuse("unsupported group")
        self.at = found.end()
        name, on, off, end = found.groups()
        if end == ")":
            self.flags = (self.flags | set(on)) - set(off or "")
            return None
        number = 0
        if end is None:
            self.groups += 1
            number = self.groups
        outer = self.flags
        self.flags = outer if end is None else (outer | set(on)) - set(off or "")
        inner = self._within()
        self.flags = outer
        return Group(inner, number, name) if number else inner

    def _within(self) -> Tree:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse("nested too deeply")
        inner = self._choice()
        self.depth -= 1
        if self._next() != ")":
            self.refuse("missing closing )")
        self.at += 1
        return inner

    def _quoted(self) -> list[Tree]:
        end = self.text.find(r"\E", self.at)
        stop = len(self.text) if end < 0 else end
        chars = [self._char(ord(char)) for char in self.text[self.at + 2 : stop]]
        self.at = stop if end < 0 else end + 2
        return [*chars[:-1], self._repeated(chars[-1])] if chars else []

    def _atom(self) -> Tree:
        char = self._next()
        if char == "[":
            return self._leaf(self._brackets())
        if char == "\\":
            return self._escape()
        self.at += 1
        if char == ".":
            return Char(r"[\x00-\U0010ffff]" if "s" in self.flags else r"[^\n]")
        if char == "^":
            return Assertion("^" if "m" in self.flags else r"\A")
        if char == "$":
            return Assertion("$" if "m" in self.flags else r"\Z")
        return self._char(ord(char))

    def _leaf(self, members: str) -> Char:
        return Char(f"(?i:{members})" if "i" in self.flags else members)

    def _char(self, code: int) -> Char:
        return self._leaf(f"\\U{code:08x}")

    def _escape(self) -> Tree:
        char = self.text[self.at + 1 : self.at + 2]
        if char and char in "AzbB":
            self.at += 2
            return Assertion(r"\Z" if char == "z" else f"\\{char}")
        members = self._named()
        if members is not None:
            return self._leaf(f"[{members}]")
        return self._char(self._code())

    def _code(self) -> int:
        """The character that an escape at the cursor stands for."""
        char = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if not char:
            self.refuse("trailing backslash")
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "x":
            return self._number(_HEX, 16)
        if char == "0" or (char in "1234567" and self._next().isdigit()):
            self.at -= 1
            return self._number(_OCTAL, 8)
        if char.isalnum() or not char.isascii():
            self.refuse(f"unsupported escape \\{char}")
        return ord(char)

    def _number(self, digits: re.Pattern[str], base: int) -> int:
        found = digits.match(self.text, self.at)
        if found is None:
            self.refuse("bad escape")
        self.at = found.end()
        code = int(found.group().strip("{}"), base)
        if code > 0x10FFFF:
            self.refuse("bad escape")
        return code

    def _named(self) -> str | None:
        r"""The members of a class like `\d`, `\pL` or `\P{Lu}`; None if there is none here."""
        letter = self.text[self.at + 1 : self.at + 2] if self._next() == "\\" else ""
        if letter and letter in PERL:
            self.at += 2
            return PERL[letter]
        found = _PROPERTY.match(self.text, self.at)
        if found is None:
            return None
        name = found[2] or found[3]
        negated = (found[1] == "P") is not name.startswith("^")
        members = category_members(name.removeprefix("^"), negated=negated)
        if members is None:
            self.refuse(f"unsupported character class {found[0]}")
        self.at = found.end()
        return members

    def _brackets(self) -> str:
        self.at += 1
        negated = self._next() == "^"
        self.at += negated
        members = [self._member()]
        while self._next() != "]":
            members.append(self._member())
        self.at += 1
        return f"[{'^' if negated else ''}{''.join(members)}]"

    def _member(self) -> str:
        """One class, one character, or one range of characters, inside of brackets."""
        if self.text.startswith("[:", self.at):
            end = self.text.find(":]", self.at)
            name = self.text[self.at + 2 : end] if end > 0 else ""
            members = posix_members(name)
            if members is None:
                self.refuse("invalid character class")
            self.at = end + 2
            return members
        if (members := self._named()) is not None:
            return members
        low = self._single()
        if not _RANGE.match(self.text, self.at):
            return f"\\U{low:08x}"
        self.at += 1
        high = self._single()
        if high < low:
            self.refuse("bad character range")
        return f"\\U{low:08x}-\\U{high:08x}"

    def _single(self) -> int:
        char = self._next()
        if not char:
            self.refuse("missing closing ]")
        if char == "\\":
            return self._code()
        self.at += 1
        return ord(char)
