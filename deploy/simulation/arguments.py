"""vLLM's command line: the same flags, spellings, errors and exit codes as 0.32.

The flags are those of the real parser (`texts/flags.json`). As in vLLM, underscores equal
dashes, unambiguous prefixes are accepted, the last of duplicates wins, and a file given with
--config loses against the command line wherever it stands.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

TEXTS = Path(__file__).with_name("texts")
TOP_USAGE = """usage: vllm [-h] [-v]
            {chat,complete,serve,launch,bench,collect-env,download-kernels,preload,run-batch,snapshot}
            ...
"""
SERVE_USAGE = "vllm serve [model_tag] [options]"
HUMAN = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


class Arguments(argparse.Namespace):
    """The parsed command line. `stated` holds what the log calls non-default args."""

    model: str
    port: int
    host: str | None
    api_key: list[str] | None
    served_model_name: list[str] | None
    max_num_seqs: int | None
    max_model_len: int | None
    max_num_batched_tokens: int | None
    num_gpu_blocks_override: str | None
    block_size: int | None
    shutdown_timeout: int
    disable_log_stats: bool
    disable_uvicorn_access_log: bool
    enable_sleep_mode: bool
    enable_server_load_tracking: bool

    def __init__(self) -> None:
        super().__init__()
        self.stated: dict[str, object] = {}

    @property
    def names(self) -> list[str]:
        return self.served_model_name or [self.model]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"usage: {SERVE_USAGE}\n{self.prog}: error: {message}\n")
        raise SystemExit(2)


def human_readable_int(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgKMG])", text.strip())
    return int(float(match[1]) * HUMAN[match[2]]) if match else int(text)


def parse(argv: list[str]) -> Arguments:
    """Read what follows `vllm`, or `-m vllm.entrypoints.openai.api_server`. Exits as vLLM does."""
    subcommand = argv[:1] == ["serve"]
    words = [_with_dashes(word) for word in (argv[1:] if subcommand else argv)]
    words = _config_first(words)
    found = Arguments()
    parser = _build(subcommand=subcommand)
    _, unknown = parser.parse_known_args(words, found)
    if unknown:
        sys.stderr.write(f"{TOP_USAGE}vllm: error: unrecognized arguments: {' '.join(unknown)}\n")
        raise SystemExit(2)
    tag = getattr(found, "model_tag", None)
    if tag is not None:
        found.model = tag
    _note_stated(parser, found)
    return found


def _with_dashes(word: str) -> str:
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value


def _build(*, subcommand: bool) -> _Parser:
    parser = _Parser(prog="vllm serve" if subcommand else "api_server.py")
    if subcommand:
        parser.add_argument("model_tag", nargs="?")
    types: dict[str, Callable[[str], object]] = {
        "int": int,
        "float": float,
        "human": human_readable_int,
        "str": str,
    }
    for names, kind, nargs, choices, default in json.loads((TEXTS / "flags.json").read_text()):
        if kind == "bool":
            parser.add_argument(*names, action=argparse.BooleanOptionalAction, default=default)
        elif kind == "flag":
            parser.add_argument(*names, action="store_true")
        elif kind == "append":
            parser.add_argument(*names, action="append", default=default)
        else:
            allowed = [types[kind](c) for c in choices] if choices else None
            parser.add_argument(
                *names, type=types[kind], nargs=nargs, choices=allowed, default=default
            )
    return parser


def _config_first(words: list[str]) -> list[str]:
    """Put what the file says before the command line, which therefore wins."""
    for at, word in enumerate(words):
        if word == "--config" and at + 1 < len(words):
            rest, file = words[:at] + words[at + 2 :], words[at + 1]
            break
        if word.startswith("--config="):
            rest, file = words[:at] + words[at + 1 :], word.split("=", 1)[1]
            break
    else:
        return words
    tag = rest[:1] if rest[:1] and not rest[0].startswith("-") else []
    return tag + _config_words(Path(file)) + rest[len(tag) :]


def _config_words(file: Path) -> list[str]:
    """Flat YAML: `key: value`, with lists as indented dashes. Enough for a server's settings."""
    words: list[str] = []
    for raw in file.read_text().splitlines():
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        if not line:
            continue
        if line.lstrip().startswith("- "):
            words.append(_unquoted(line.lstrip()[2:]))
            continue
        key, _, value = line.partition(":")
        flag, value = "--" + key.strip().replace("_", "-"), _unquoted(value)
        if value.lower() == "false":
            continue
        words.append(flag)
        if value and value.lower() != "true":
            words.append(value)
    return words


def _unquoted(text: str) -> str:
    return text.strip().strip("'\"")


def _note_stated(parser: argparse.ArgumentParser, found: Arguments) -> None:
    for action in parser._actions:  # noqa: SLF001 - argparse offers no list of what it knows
        if action.dest not in ("help", "config") and hasattr(found, action.dest):
            value = getattr(found, action.dest)
            if value != action.default or action.dest == "model":
                found.stated[action.dest] = value
