"""What a pattern of the log reader is; the shipped ones are in `patterns`, others in a file."""

import re
from dataclasses import dataclass
from enum import IntEnum


class Rank(IntEnum):
    """What outranks what, wherever it stands. Of equal rank the first line is the cause."""

    CONSEQUENCE = 0  # says that the engine is gone
    PART = 1  # says which part went, and may itself follow from something else
    ROOT = 2
    OPERATOR = 3  # who runs the place knows it


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    cause: str
    match: re.Pattern[str]
    sure: float = 0.95
    rank: Rank = Rank.ROOT
    only_starting: bool = False  # says nothing about a server that got to serve
    anywhere: bool = False  # its very shape tells; else only an error or a raised exception does
    more: int = 0  # lines after it that belong to it
    says: str = ""  # in place of the cause's own
    advice: str = ""
