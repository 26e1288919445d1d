"""The options that every command shares, so that they read and behave the same."""

from pathlib import Path
from typing import Annotated

import typer

SocketOption = Annotated[
    Path | None,
    typer.Option(
        "--socket",
        envvar="SENTINEL_SOCKET",
        metavar="PATH",
        help="The daemon's socket; default api.socket, else /run/sentinel/sentinel.sock.",
        show_default=False,
    ),
]
StateOption = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        metavar="DIR",
        help="The daemon's state, read when it does not answer; default STATE_DIRECTORY, "
        "else state_dir, else /var/lib/sentinel.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]


def numbered(letter: str, given: str) -> str:
    """`7`, `i-7` and `i-000007` are the same incident."""
    digits = given.removeprefix(f"{letter}-")
    return f"{letter}-{int(digits):06}" if digits.isascii() and digits.isdigit() else given
