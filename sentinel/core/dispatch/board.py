"""What stands now, for whoever asks: alerts with who hears of them and what keeps them quiet.

Built whole by the loop and never changed, so that any thread may read it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.silence import Silence


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One alert that has not ended."""

    alert: Alert
    receivers: tuple[str, ...]
    silenced_by: tuple[str, ...] = ()  # ids of silences
    inhibited_by: tuple[str, ...] = ()  # fingerprints of alerts

    @property
    def is_suppressed(self) -> bool:
        return bool(self.silenced_by or self.inhibited_by)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """One group of alerts that are told together."""

    labels: Mapping[str, str]
    receiver: str
    alerts: tuple[Standing, ...]
    muted_by: tuple[str, ...] = ()  # names of time intervals


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    at: datetime
    alerts: tuple[Standing, ...] = ()
    groups: tuple[Gathering, ...] = ()
    silences: tuple[Silence, ...] = ()
    receivers: tuple[str, ...] = ()
    config: str = ""  # an alertmanager.yml without secrets
    started_at: datetime
