"""How a refused file is shown: one line a fault on standard output, then exit status 2."""

import dataclasses
from typing import NoReturn

import typer

from sentinel.cli.text import complain, say, say_json
from sentinel.config.fault import ConfigRefused


def refuse(refusal: ConfigRefused, message: str, hint: str, *, as_json: bool = False) -> NoReturn:
    if as_json:
        faults = [dataclasses.asdict(fault) for fault in refusal.faults]
        say_json({"ok": False, "faults": faults, "warnings": []})
    else:
        for fault in refusal.faults:
            say(str(fault))
        complain(message, hint)
    raise typer.Exit(2) from None
