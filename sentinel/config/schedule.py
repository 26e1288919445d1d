"""Points in time: planned restarts, the digest, the heartbeat; and spans of maintenance."""

from datetime import timedelta
from typing import ClassVar

from pydantic import Field

from sentinel.config.addresses import FilePath, SecretServiceUrl
from sentinel.config.cron import Cron, TimeZone
from sentinel.config.durations import Interval
from sentinel.config.quantities import Name
from sentinel.config.section import Section


class PlannedRestart(Section):
    targets: tuple[Name, ...] = Field(examples=[["t1-*"]])
    """Globs on container names; they are restarted one after the other."""

    cron: Cron = Field(examples=["0 4 * * sun"])
    """When: minute, hour, day, month, weekday by name."""

    timezone: TimeZone | None = Field(default=None, examples=["Asia/Shanghai"])
    """Time zone of `cron`. Default: the host's."""


class Digest(Section):
    cron: Cron = Field(examples=["0 9 * * *"])
    """When: minute, hour, day, month, weekday by name."""

    receiver: Name | None = Field(default=None, examples=["oncall"])
    """Who gets it. Default: the receiver of the root route."""

    timezone: TimeZone | None = Field(default=None, examples=["Asia/Shanghai"])
    """Time zone of `cron`. Default: the host's."""


class Heartbeat(Section):
    SECRETS: ClassVar = {"url": True}

    url: SecretServiceUrl | None = None
    """Address that is called, for example at healthchecks.io."""

    url_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/heartbeat"])
    """File with the address that is called."""

    every: Interval = timedelta(minutes=1)
    """How often; let the other side alarm after a few times that."""


class Schedule(Section):
    restarts: tuple[PlannedRestart, ...] = ()
    """Planned restarts; every guard holds for them."""

    digest: Digest | None = None
    """A summary of the day. Default: none."""

    heartbeat: Heartbeat | None = None
    """A sign of life that leaves the host. Default: none."""


class Maintenance(Section):
    time_interval: Name = Field(examples=["nights"])
    """Name of a time interval; judged at each tick."""

    targets: tuple[Name, ...] = Field(default=("*",), examples=[["t1-*"]])
    """Globs on container names."""
