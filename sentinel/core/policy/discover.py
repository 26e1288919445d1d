"""Which containers are targets.

The default looks for what vLLM looks like from outside: its image, its command. A label
decides over everything else, both ways. What is on its way in or out while a container is made
anew is never one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from sentinel.core.model.container import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Sieve:
    """One entry of `discover` or `exclude`: all keys that are set must match. Globs."""

    label: str | None = None  # key=value or key
    image: str | None = None
    command: str | None = None
    name: str | None = None

    def takes(self, seen: Summary) -> bool:
        checks = (
            self.label is None or _has_label(seen.labels, self.label),
            self.image is None or fnmatchcase(seen.image, self.image),
            self.command is None or fnmatchcase(seen.command, self.command),
            self.name is None or fnmatchcase(seen.name, self.name),
        )
        return any((self.label, self.image, self.command, self.name)) and all(checks)


DEFAULT: tuple[Sieve, ...] = (
    Sieve(label="sentinel.supervise=true"),
    Sieve(image="*vllm*"),
    Sieve(command="*vllm*serve*"),
    Sieve(command="*vllm.entrypoints.openai.api_server*"),
)
_SWAPPED = re.compile(r"(?P<own>.+)\.s[no]-\d+-[0-9a-f]{8}")

EXCLUDED: tuple[Sieve, ...] = (Sieve(label="sentinel.supervise=false"),)


def is_target(seen: Summary, discover: Sequence[Sieve], exclude: Sequence[Sieve]) -> bool:
    return not is_excluded(seen, exclude) and any(sieve.takes(seen) for sieve in discover)


def is_excluded(seen: Summary, exclude: Sequence[Sieve]) -> bool:
    return is_swapped(seen.name) or any(sieve.takes(seen) for sieve in exclude)


def is_swapped(name: str) -> bool:
    """Set aside, or made beside, while a container is made anew."""
    return _SWAPPED.fullmatch(name) is not None


def is_set_aside(seen: Summary, discover: Sequence[Sieve], exclude: Sequence[Sieve]) -> bool:
    """Swapped, and under its own name it would be a target."""
    found = _SWAPPED.fullmatch(seen.name)
    return found is not None and is_target(replace(seen, name=found["own"]), discover, exclude)


def _has_label(labels: Mapping[str, str], wanted: str) -> bool:
    key, equals, pattern = wanted.partition("=")
    if key not in labels:
        return False
    return not equals or fnmatchcase(labels[key], pattern)
