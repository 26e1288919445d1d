"""The comments of an exposition: what it says of the type, the help and the unit of its metrics.

They hardly ever change, so they are read only when the lines beside them have changed; the
words are shared among targets, which mostly say the same.
"""

import re
from sys import intern

from sentinel.api.prometheus.copies import Description

MOST = 2_000  # metrics of one target that are described
LONGEST = 1_000  # characters of one help

_COMMENT = re.compile(
    r'^#[ \t]+(TYPE|HELP|UNIT)[ \t]+("(?:[^"\\\n]|\\.)*"|\S+)[ \t]?([^\n]*)$', re.MULTILINE
)
_ESCAPE = re.compile(r'\\([\\n"])')


def descriptions_in(text: str) -> dict[str, Description]:
    found: dict[str, Description] = {}
    for kind, written, rest in _COMMENT.findall(text):
        name = intern(_plain(written[1:-1]) if written.startswith('"') else written)
        known = found.get(name)
        if known is None:
            if len(found) >= MOST:
                break
            known = Description()
        found[name] = _with(known, kind, rest.strip("\r"))
    return found


def _with(known: Description, kind: str, rest: str) -> Description:
    if kind == "TYPE":
        said = rest.strip().lower()
        return known._replace(type=intern({"untyped": "unknown"}.get(said, said)))
    if kind == "UNIT":
        return known._replace(unit=intern(rest.strip()))
    return known._replace(help=intern(_plain(rest[:LONGEST])))


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda found: "\n" if found[1] == "n" else found[1], text)
