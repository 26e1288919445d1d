"""Which `--max-num-seqs` an engine says it was started with, from its own log."""

import re

_LIMIT = re.compile(r"max_num_seqs['\"]?\s*[:=]\s*(\d+)")
_ARGUMENTS = ("non-default args", "args: Namespace", "Initializing a V", "Initializing an LLM")


def said_limit(log: str) -> int | None:
    """None: it does not say. Lines of users' requests are not read."""
    said: int | None = None
    for line in log.splitlines():
        if any(word in line for word in _ARGUMENTS) and (found := _LIMIT.search(line)):
            said = int(found[1])
    return said
