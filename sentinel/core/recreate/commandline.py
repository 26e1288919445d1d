"""What a container runs, word by word, and where each word of vLLM's can be changed.

A word stands in the entrypoint, in the command, or in a line that a shell reads; the one rule
is that a place given out here can be overwritten without touching any other word.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from sentinel.core.recreate.shellline import LineWord, UnreadableLineError, commands_of


class Where(StrEnum):
    COMMAND = "command"
    ENTRYPOINT = "entrypoint"
    SHELL_LINE = "shell line"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """`Entrypoint` and `Cmd` as the engine says them, and the environment they run in."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def argv(self) -> tuple[str, ...]:
        return self.entrypoint + self.command


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a text stands: characters of one word of argv. One past the last word: a new one."""

    position: int
    begin: int = 0
    end: int | None = None  # None: to the end of the word


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One word as vLLM gets it. `text` is None where only the running shell knows it."""

    text: str | None
    place: Place
    source: str = ""  # what a shell fills it in from; empty: it stands there in full
    may_be_many: bool = False  # filled in without quotes


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words after the program, and where one more can be put."""

    arguments: tuple[Token, ...]
    end: Place
    is_vllm: bool  # False: some other program, to which they are given
    where: Where
    line: str = ""  # the shell's


def words_of(command_line: CommandLine) -> Words:
    """Raises `UnreadableLineError` with the reason."""
    argv = command_line.argv
    serves = _serving(argv)
    shell = _shell_script(argv)
    if shell is not None and (serves is None or shell < serves):
        return _of_line(argv, shell, command_line.environment)
    begin = 1 if serves is None else serves
    return Words(
        arguments=tuple(_given(argv, at) for at in range(begin, len(argv))),
        end=Place(position=len(argv)),
        is_vllm=serves is not None,
        where=Where.COMMAND,
    )


def with_text(command_line: CommandLine, place: Place, text: str) -> CommandLine:
    """The same, with `text` in the place of what stands there."""
    if place.position == len(command_line.argv):
        return replace(command_line, command=(*command_line.command, text))
    word = command_line.argv[place.position]
    end = len(word) if place.end is None else place.end
    return _with_words(command_line, place.position, word[: place.begin] + text + word[end:])


def without(command_line: CommandLine, place: Place) -> CommandLine:
    """The same, without the word that stands there."""
    if place.end is None:
        return _with_words(command_line, place.position)
    word = command_line.argv[place.position]
    rest = word[: place.begin].rstrip(" ") + word[place.end :]
    return _with_words(command_line, place.position, rest)


def _with_words(command_line: CommandLine, at: int, *words: str) -> CommandLine:
    split = len(command_line.entrypoint)
    if at < split:
        entrypoint = command_line.entrypoint
        return replace(command_line, entrypoint=(*entrypoint[:at], *words, *entrypoint[at + 1 :]))
    command = command_line.command
    rest = command[at - split + 1 :]
    return replace(command_line, command=(*command[: at - split], *words, *rest))


def environment_of(lines: Sequence[str]) -> dict[str, str]:
    """Docker's `Env`, as a shell would know it."""
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


_SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "zsh"})
_PROGRAMS = frozenset({"vllm", "vllm.entrypoints.cli.main"})
_API_SERVER = re.compile(r"vllm[./]entrypoints[./](openai[./])?api_server(\.py)?$")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_ALL_GIVEN = ("$@", "${@}", "$*", "${*}")


def _serving(texts: Sequence[str | None]) -> int | None:
    """Where vLLM's own arguments begin; None if it is not vLLM that they are given to."""
    for at, text in enumerate(texts):
        if text is None:
            continue
        if text.rpartition("/")[2] in _PROGRAMS and "serve" in texts[at + 1 : at + 2]:
            return at + 2
        if _API_SERVER.search(text):
            return at + 1
    return None


def _shell_script(argv: Sequence[str]) -> int | None:
    """Where the line stands that a shell is told to run; None if there is none."""
    for at, word in enumerate(argv):
        if word.rpartition("/")[2] in _SHELLS:
            return _script_after(argv, at + 1)
    return None


def _script_after(argv: Sequence[str], at: int) -> int | None:
    runs_text = False
    while at < len(argv) and argv[at][:1] in ("-", "+") and len(argv[at]) > 1:
        option = argv[at]
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            if option not in ("--login", "--noprofile", "--norc", "--posix"):
                return None
            continue
        runs_text = runs_text or "c" in option[1:]
        at += option[-1] in "oO"  # which takes the next word
    return at if runs_text and at < len(argv) else None


def _given(argv: Sequence[str], position: int) -> Token:
    return Token(text=argv[position], place=Place(position=position))


def _of_line(argv: Sequence[str], position: int, environment: Mapping[str, str]) -> Words:
    line = argv[position]
    given = [_given(argv, at) for at in range(position + 2, len(argv))]
    commands = commands_of(line)
    known = {**environment, **_assigned(commands)}
    lists = [_tokens(command, position, given, known) for command in commands]
    serving = [(at, start) for at, t in enumerate(lists) if (start := _start(t)) is not None]
    if not serving:
        raise UnreadableLineError("what it runs is not plainly vLLM")
    if len(serving) > 1:
        raise UnreadableLineError("it runs vLLM more than once")
    at, start = serving[0]
    if _gives_other_words(commands):
        raise UnreadableLineError("it changes what it was given")
    last = commands[at][-1].end
    return Words(
        arguments=tuple(lists[at][start:]),
        end=Place(position=position, begin=last, end=last),
        is_vllm=True,
        where=Where.SHELL_LINE,
        line=line,
    )


def _start(tokens: Sequence[Token]) -> int | None:
    return _serving([token.text if not token.source else None for token in tokens])


def _assigned(commands: Sequence[Sequence[LineWord]]) -> dict[str, str]:
    """What the line itself sets, as long as it sets it once and in plain."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for word in (word for command in commands for word in command):
        if assignment := _ASSIGNMENT.fullmatch(word.text):
            name = assignment[1]
            twice |= {name} if name in found or not word.is_plain else set()
            found[name] = assignment[2]
    return {name: value for name, value in found.items() if name not in twice}


def _gives_other_words(commands: Sequence[Sequence[LineWord]]) -> bool:
    firsts = [[word.text for word in command] for command in commands]
    return any(words[0] == "shift" or words[:2] == ["set", "--"] for words in firsts)


def _tokens(
    command: Sequence[LineWord], position: int, given: Sequence[Token], known: Mapping[str, str]
) -> list[Token]:
    tokens: list[Token] = []
    for word in command:
        if word.text in _ALL_GIVEN and word.fillings:
            tokens += given
        else:
            tokens.append(_token(word, position, known))
    return tokens


def _token(word: LineWord, position: int, known: Mapping[str, str]) -> Token:
    sources = [f"${filling.name}" if filling.name else filling.raw for filling in word.fillings]
    return Token(
        text=word.filled(known),
        place=Place(position=position, begin=word.begin, end=word.end),
        source=", ".join(sources) or (word.text if word.is_pattern else ""),
        may_be_many=any(not filling.quoted for filling in word.fillings),
    )
