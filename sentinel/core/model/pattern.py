"""Regular expressions as Prometheus reads them, matched against whole texts.

RE2 needs time in proportion to the text; Python's `re` may need for ever, and one label
value could then hold up the daemon. So `re` gets only patterns that cannot run away, and all
others are run by a machine that, like RE2's, follows every alternative at once.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from sentinel.core.model.pattern_tree import (
    Assertion,
    Char,
    Choice,
    Group,
    Repeat,
    Sequence,
    Tree,
    parse_pattern,
)

MAX_LENGTH = 4096
MAX_STEPS = 20_000  # of a machine
SAFE = 2  # endless repetitions one after the other that `re` may have
ENDLESS = 8  # a repetition that may go on longer is as good as endless
RUNAWAY = 1000


class Found(Protocol):
    def group(self, key: int | str, /) -> str | None: ...


class Pattern(Protocol):
    def fullmatch(self, text: str, /) -> Found | None: ...


@lru_cache(maxsize=512)
def compile_pattern(text: str) -> Pattern:
    """Compile RE2 `text`. Raises `ValueError` saying what is wrong."""
    if len(text) > MAX_LENGTH:
        raise ValueError(f"regular expression is longer than {MAX_LENGTH} characters")
    tree = parse_pattern(text)
    if _risk(tree) > SAFE:
        return _Machine(tree)
    try:
        return re.compile(_python(tree))
    except (re.error, OverflowError) as error:
        raise ValueError(f"bad regular expression {text!r}: {error}") from None


def compile_search(text: str) -> re.Pattern[str]:
    """Compile RE2 `text` for finding within a text, as templates of rules do.

    Raises `ValueError`. The author of a rule answers for how long it takes.
    """
    try:
        return re.compile(_python(parse_pattern(text)))
    except (re.error, OverflowError) as error:
        raise ValueError(f"bad regular expression {text!r}: {error}") from None


def _risk(tree: Tree) -> int:
    """How many endless repetitions can get in each other's way."""
    match tree:
        case Group():
            return _risk(tree.inner)
        case Sequence():
            return sum(map(_risk, tree.parts))
        case Choice():
            return max(map(_risk, tree.options))
        case Repeat():
            if tree.most is not None and tree.most <= 1:
                return _risk(tree.inner)
            if not _is_plain(tree.inner):
                return RUNAWAY
            return 1 if tree.most is None or tree.most > ENDLESS else 0
        case _:
            return 0


def _is_plain(tree: Tree) -> bool:
    """Whether there is only one way to match it."""
    match tree:
        case Group():
            return _is_plain(tree.inner)
        case Sequence():
            return all(map(_is_plain, tree.parts))
        case _:
            return isinstance(tree, Char)


def _python(tree: Tree) -> str:
    match tree:
        case Char():
            return tree.python
        case Assertion():
            return f"(?m:{tree.python})" if tree.python in "^$" else f"(?a:{tree.python})"
        case Sequence():
            return "".join(map(_python, tree.parts))
        case Choice():
            return f"(?:{'|'.join(map(_python, tree.options))})"
        case Repeat():
            most = "" if tree.most is None else tree.most
            lazy = "" if tree.greedy else "?"
            return f"(?:{_python(tree.inner)}){{{tree.least},{most}}}{lazy}"
        case Group():
            name = f"?P<{tree.name}>" if tree.name else ""
            return f"({name}{_python(tree.inner)})"


Captured = tuple[int, ...]  # begin and end of each group, -1 where there is none


class _Captures:
    """What the machine found."""

    def __init__(self, text: str, places: Captured, names: dict[str, int]) -> None:
        self._text = text
        self._places = places
        self._names = names

    def group(self, key: int | str, /) -> str | None:
        number = self._names[key] if isinstance(key, str) and key in self._names else key
        if not isinstance(number, int) or 2 * number >= len(self._places):
            raise IndexError(key)
        begin, end = self._places[2 * number : 2 * number + 2]
        return None if begin < 0 or end < 0 else self._text[begin:end]


class _Machine:
    """Pike's machine: threads in order of preference, at most one in each state."""

    def __init__(self, tree: Tree) -> None:
        self._tests: dict[int, Callable[[str], object]] = {}  # state: what it takes
        self._next: list[tuple[int, ...]] = [()]  # state 0 is the end; others in order
        self._assertions: dict[int, str] = {}
        self._marks: dict[int, int] = {}
        self._names: dict[str, int] = {}
        self._groups = 0
        body = self._build(tree, 0)
        self._start = body
        self._blank = (-1,) * (2 * self._groups + 2)

    def fullmatch(self, text: str, /) -> Found | None:
        blank = (0, len(text), *self._blank[2:])
        threads = self._spread([(self._start, blank)], text, 0)
        for place, char in enumerate(text):
            moved = [
                (self._next[state][0], captured)
                for state, captured in threads.items()
                if state in self._tests and self._tests[state](char)
            ]
            if not moved:
                return None
            threads = self._spread(moved, text, place + 1)
        return _Captures(text, threads[0], self._names) if 0 in threads else None

    def _spread(
        self, begun: list[tuple[int, Captured]], text: str, place: int
    ) -> dict[int, Captured]:
        """Every state that is reached without taking a character."""
        reached: dict[int, Captured] = {}
        stack = begun[::-1]
        while stack:
            state, captured = stack.pop()
            if state in reached:
                continue
            reached[state] = captured
            if state in self._tests:
                continue
            if state in self._assertions and not _holds(self._assertions[state], text, place):
                continue
            if state in self._marks:
                mark = self._marks[state]
                captured = (*captured[:mark], place, *captured[mark + 1 :])
            stack += [(after, captured) for after in reversed(self._next[state])]
        return reached

    def _state(self, *after: int) -> int:
        if len(self._next) >= MAX_STEPS:
            raise ValueError("regular expression is too large")
        self._next.append(after)
        return len(self._next) - 1

    def _build(self, tree: Tree, after: int) -> int:
        """Add the states of `tree`, which go on to `after`; the first of them."""
        match tree:
            case Char():
                state = self._state(after)
                self._tests[state] = _tester(tree.python)
                return state
            case Assertion():
                state = self._state(after)
                self._assertions[state] = tree.python
                return state
            case Sequence():
                for part in reversed(tree.parts):
                    after = self._build(part, after)
                return after
            case Choice():
                return self._state(*[self._build(option, after) for option in tree.options])
            case Group():
                return self._build_group(tree, after)
            case Repeat():
                return self._build_repeat(tree, after)

    def _build_group(self, tree: Group, after: int) -> int:
        self._groups = max(self._groups, tree.number)
        if tree.name:
            self._names[tree.name] = tree.number
        end = self._state(after)
        self._marks[end] = 2 * tree.number + 1
        begin = self._state(self._build(tree.inner, end))
        self._marks[begin] = 2 * tree.number
        return begin

    def _build_repeat(self, tree: Repeat, after: int) -> int:
        if tree.most is None:
            loop = self._state()
            inner = self._build(tree.inner, loop)
            self._next[loop] = (inner, after) if tree.greedy else (after, inner)
            after = loop
        else:
            end = after
            for _ in range(tree.most - tree.least):
                inner = self._build(tree.inner, after)
                after = self._state(*((inner, end) if tree.greedy else (end, inner)))
        for _ in range(tree.least):
            after = self._build(tree.inner, after)
        return after


@lru_cache(maxsize=2048)
def _tester(python: str) -> Callable[[str], object]:
    return re.compile(python).fullmatch


def _is_word(text: str, place: int) -> bool:
    return 0 <= place < len(text) and bool(re.match(r"\w", text[place], re.ASCII))


def _holds(assertion: str, text: str, place: int) -> bool:
    match assertion:
        case r"\A":
            return place == 0
        case r"\Z":
            return place == len(text)
        case "^":
            return place == 0 or text[place - 1] == "\n"
        case "$":
            return place == len(text) or text[place] == "\n"
        case _:
            at_edge = _is_word(text, place - 1) is not _is_word(text, place)
            return at_edge is (assertion == r"\b")
