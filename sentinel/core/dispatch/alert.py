"""An alert as the lifecycle knows it: our rules' and those that others post, alike.

Labels are its identity, as in Alertmanager: the fingerprint is computed over exactly what
is told. `incident` is no part of them; it is shown where a route groups by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

INCIDENT = "incident"
"""The label that every alert of an incident answers to in routes, silences and filters."""

_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3

Origin = Literal["rule", "posted"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: datetime
    ends_at: datetime | None = None  # None: it fires until told otherwise
    updated_at: datetime
    is_timeout: bool = False  # `ends_at` is only when we give up on hearing of it again
    generator_url: str = ""
    origin: Origin = "rule"
    incident: str | None = None  # i-000007
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", fingerprint(self.labels))

    def is_resolved(self, at: datetime) -> bool:
        return self.ends_at is not None and self.ends_at <= at

    @property
    def matched(self) -> Mapping[str, str]:
        """The labels that routes, silences, inhibitions and filters look at."""
        return {**self.labels, INCIDENT: self.incident} if self.incident else self.labels


def fingerprint(labels: Mapping[str, str]) -> str:
    """Sixteen hex digits: FNV-1a over names and values, as Prometheus's."""
    value = _FNV_OFFSET
    for name in sorted(labels):
        for byte in b"%b\xff%b\xff" % (name.encode(), labels[name].encode()):
            value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"
