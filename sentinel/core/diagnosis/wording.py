"""How a pattern of the tables is written: a cause, its wordings one a line, and what holds of them.

Named groups in a wording are the numbers that advice speaks of. Of several patterns that fit a
line the first wins; of several wordings in one pattern the one that begins first in the line
does, so a wording with numbers must not share a pattern with one that begins before it.
"""

import re
from typing import Any

from sentinel.core.diagnosis.pattern import Pattern, Rank

START: dict[str, Any] = {"only_starting": True}
SHAPE: dict[str, Any] = {"anywhere": True}
PART: dict[str, Any] = {"rank": Rank.PART}
GONE: dict[str, Any] = {"rank": Rank.CONSEQUENCE, "anywhere": True}


def pattern(cause: str, *wordings: str, sure: float = 0.95, **more: Any) -> Pattern:
    return Pattern(cause=cause, match=re.compile("|".join(wordings)), sure=sure, **more)
