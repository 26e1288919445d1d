"""What is wrong with a configuration, where, and what would be right.

One fault is one line: `FILE:LINE:COL: KEY: what is wrong; allowed: …`. The line is a fixed
format that editors and tests read, so nothing an operator wrote may break it in two.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong at one place. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    key: str
    message: str
    allowed: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}"
        key, message, allowed = _plain(self.key), _plain(self.message), _plain(self.allowed)
        return f"{where}: {key}: {message}; allowed: {allowed}"


class ConfigRefused(Exception):  # noqa: N818 - it is what happened, not an error of ours
    """The configuration cannot be used; `faults` says all that is wrong with it."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults


def quoted(value: object) -> str:
    """What an operator wrote, as it is shown back: short, on one line, in quotes."""
    text = str(value)
    return f"'{text[:60]}…'" if len(text) > 60 else f"'{text}'"


def _plain(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.split())[:1000]
