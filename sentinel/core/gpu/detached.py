"""Whether a container has lost its GPUs while the host still has them.

Seen after `systemctl daemon-reload` or `docker update`: the control group forgets the devices
it allowed, programs that run go on, and the next one that opens a GPU is refused. Starting the
container again gives them back; the GPU itself is well.
"""

import re

_REFUSED = re.compile(  # at the start of a line, or after what vLLM puts before an error
    r"^(?:\([^)\n]*\) )?(?:ERROR [^\]\n]*\] )?"
    r"(?:Failed to initialize NVML: Unknown Error|(?:\w+\.)*NVMLError_Unknown\b)",
    re.MULTILINE,
)
_MAJOR = "195"  # of every /dev/nvidiaN


def is_refused(log: str) -> bool:
    """Whether its own words say that the GPUs are gone."""
    return _REFUSED.search(log) is not None


def is_forbidden(devices: str) -> bool:
    """Whether `devices.list` of its control group (version 1 only) allows no GPU any more."""
    rules = [line.split() for line in devices.splitlines()]
    return bool(rules) and not any(_allows(rule) for rule in rules)


def _allows(rule: list[str]) -> bool:
    if len(rule) != 3 or rule[0] not in ("a", "c"):
        return False
    return rule[1].partition(":")[0] in ("*", _MAJOR) and "r" in rule[2]
