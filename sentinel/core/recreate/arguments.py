"""Finds the `--max-num-seqs` a container is run with, and writes another in its place.

Read as vLLM's own parser reads it: the last one wins, `_` is `-`, `=` is a space, an
abbreviation counts. What cannot be proved to be the one that counts is `Unclear` and stays
untouched: nothing here may guess.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from sentinel.core.recreate.commandline import (
    CommandLine,
    Place,
    Token,
    Where,
    Words,
    with_text,
    without,
    words_of,
)
from sentinel.core.recreate.shellline import UnreadableLineError

OPTION = "--max-num-seqs"
DEFAULT = "default"  # instead of a number: nothing on the command line says one


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    where: Where
    place: Place  # of what is replaced
    value: int
    form: str  # `--max-num-seqs 256`, as it is spelt there
    prefix: str  # what stands before the number in the same word

    @property
    def position(self) -> int:
        """In entrypoint and command, counted together."""
        return self.place.position


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Not on the command line: vLLM's own default holds, or what `config_file` says."""

    append_where: Where
    place: Place
    config_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unclear:
    because: str
    guard: str = "arguments_unclear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    command_line: CommandLine
    was: Found | Absent
    now: str  # the number, or `DEFAULT`
    diff: tuple[str, str]


def max_num_seqs_of(command_line: CommandLine) -> Found | Absent | Unclear:
    try:
        words = words_of(command_line)
    except UnreadableLineError as reason:
        return Unclear(because=f"the shell line cannot be edited safely: {reason}")
    if not command_line.argv:
        return Unclear(because="the container does not say what it runs")
    last = _last(words, command_line)
    if last is None:
        return _absence(words, command_line)
    if isinstance(last, Found) and len(_MENTION.findall(words.line)) > _mentions(words):
        return Unclear(because=_ELSEWHERE)
    return last


def with_max_num_seqs(command_line: CommandLine, limit: int) -> Edited | Unclear:
    """The command line with `limit` as its `--max-num-seqs`, and nothing else changed."""
    was = max_num_seqs_of(command_line)
    if isinstance(was, Unclear):
        return was
    if isinstance(was, Found):
        text, before = f"{was.prefix}{limit}", was.form
        after, where = f"{_option_of(was.form)}{limit}", was.where
    else:
        text = after = f"{OPTION}={limit}"
        before, where = f"no {OPTION}", was.append_where
        if was.append_where is Where.SHELL_LINE:
            text = f" {text}"
    return Edited(
        command_line=with_text(command_line, was.place, text),
        was=was,
        now=str(limit),
        diff=(f"-{where}: {before}", f"+{where}: {after}"),
    )


def restored(command_line: CommandLine, original: str) -> Edited | Unclear:
    """The command line as its owner wrote it: with the number `original`, or with `DEFAULT`."""
    if original != DEFAULT:
        limit = _number(original)
        if limit is None:
            return Unclear(because=f"what it once was is not known: {original!r}")
        return with_max_num_seqs(command_line, limit)
    was = max_num_seqs_of(command_line)
    if isinstance(was, Unclear):
        return was
    if isinstance(was, Absent) or was.prefix != f"{OPTION}=":
        return Unclear(because=f"its {OPTION} is not the one that was added to it")
    return Edited(
        command_line=without(command_line, was.place),
        was=was,
        now=DEFAULT,
        diff=(f"-{was.where}: {was.form}", f"+{was.where}: no {OPTION}"),
    )


# No other option of any version begins like these and was ever taken for this one.
_NAMES = frozenset({OPTION, "--max-num-seq", "--max-num-se", "--max-num-s"})
_MENTION = re.compile(r"max[-_]num[-_]s(?:e|eq|eqs)?(?![\w-])", re.IGNORECASE)
_ELSEWHERE = f"the shell line speaks of {OPTION} in more than one place"
_ENDED = f"a `--` ends its options, so no {OPTION} can follow"


def _is_option(text: str) -> bool:
    return text.partition("=")[0].replace("_", "-") in _NAMES and text.startswith("--")


def _option_of(form: str) -> str:
    """All of it but the number."""
    return re.sub(r"[^=\s]*$", "", form)


def _last(words: Words, command_line: CommandLine) -> Found | Unclear | None:
    """What decides in the end, if anything here does."""
    last: Found | Unclear | None = None
    tokens = words.arguments
    for at, token in enumerate(tokens):
        if token.text == "--" and words.is_vllm:
            break
        if token.source and not _is_option(token.text or ""):
            last = _hidden(token) or last
        elif token.text is not None and _is_option(token.text):
            last = _read(tokens, at, words, command_line)
    return last


def _hidden(token: Token) -> Unclear | None:
    """What a shell fills in, where that is or may be ours."""
    if token.text is None and token.may_be_many:
        return Unclear(because=f"nobody can tell what {token.source} brings")
    if _MENTION.search(token.text or ""):
        return _from_environment(token.source)
    return None


def _from_environment(source: str) -> Unclear:
    return Unclear(because=f"its {OPTION} comes from the environment: {source}")


def _read(
    tokens: Sequence[Token], at: int, words: Words, command_line: CommandLine
) -> Found | Unclear:
    name, equals, value = (tokens[at].text or "").partition("=")
    number = tokens[at] if equals else (*tokens[at + 1 : at + 2], None)[0]
    if number is None:
        return Unclear(because=f"{name} has no value")
    if source := tokens[at].source or number.source:
        return _from_environment(source)
    text = value if equals else number.text or ""
    limit = _number(text)
    if limit is None:
        return Unclear(because=f"{name} is {text!r}, which vLLM does not take")
    return Found(
        where=_where(words, number.place, command_line),
        place=number.place,
        value=limit,
        form=f"{name}={text}" if equals else f"{name} {text}",
        prefix=f"{name}=" if equals else "",
    )


def _number(text: str) -> int | None:
    """As Python's `int` has it, which is what vLLM asks; below one vLLM refuses."""
    try:
        limit = int(text)
    except ValueError:
        return None
    return limit if limit > 0 and text.isascii() else None


def _where(words: Words, place: Place, command_line: CommandLine) -> Where:
    if words.where is Where.SHELL_LINE and place.end is not None:
        return Where.SHELL_LINE
    inside = place.position < len(command_line.entrypoint)
    return Where.ENTRYPOINT if inside else Where.COMMAND


def _mentions(words: Words) -> int:
    """In the words that stand in the line itself."""
    inside = (t for t in words.arguments if t.place.end is not None and t.text is not None)
    return sum(len(_MENTION.findall(token.text or "")) for token in inside if not token.source)


def _absence(words: Words, command_line: CommandLine) -> Absent | Unclear:
    texts = [token.text for token in words.arguments]
    named = [
        name
        for name, value in command_line.environment.items()
        if _MENTION.search(f"{name} {value}")
    ]
    if named:
        return _from_environment(", ".join(f"${name}" for name in sorted(named)))
    if not words.is_vllm:
        program = command_line.argv[0]
        return Unclear(because=f"{program} is not vLLM itself: what it does with words is its own")
    if _MENTION.search(words.line):
        return Unclear(because=_ELSEWHERE)
    if "--" in texts:
        return Unclear(because=_ENDED)
    return Absent(append_where=words.where, place=words.end, config_file=_config_file(texts))


def _config_file(texts: Sequence[str | None]) -> str | None:
    return next((file for option, file in pairwise(texts) if option == "--config"), None)
