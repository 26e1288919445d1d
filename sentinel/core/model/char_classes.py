"""The named sets of characters of RE2, as members of a bracket in the syntax of Python's `re`.

Unicode's general categories are computed when first asked for; scripts, which the standard
library does not know, are refused.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
PERL = {
    "d": "0-9",
    "s": r"\t\n\f\r ",
    "w": "0-9A-Za-z_",
    "D": r"\x00-/:-\U0010ffff",
    "S": r"\x00-\x08\x0b\x0e-\x1f!-\U0010ffff",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
}
_CATEGORY = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?|C[cfso]?")


def posix_members(name: str) -> str | None:
    """`alpha` or `^alpha`; None if there is no such class."""
    members = _POSIX.get(name.removeprefix("^"))
    if members is None or not name.startswith("^"):
        return members
    inside = re.compile(f"[{members}]")
    return _ranges(code for code in range(128) if not inside.match(chr(code))) + r"\x80-\U0010ffff"


@lru_cache(maxsize=64)
def category_members(name: str, *, negated: bool) -> str | None:
    """The characters of a general category, as in `L` or `Lu`; None if there is none such."""
    if not _CATEGORY.fullmatch(name):
        return None
    category = unicodedata.category
    return _ranges(
        code
        for code in range(sys.maxunicode + 1)
        if category(chr(code)).startswith(name) is not negated
    )


def _ranges(codes: Iterable[int]) -> str:
    """Rising numbers of characters, as members of a bracket."""
    found: list[tuple[int, int]] = []
    first = last = -2
    for code in codes:
        if code != last + 1:
            found.append((first, last))
            first = code
        last = code
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in [*found, (first, last)][1:])
