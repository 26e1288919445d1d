"""Rules, where they are evaluated, and what is kept of what was seen."""

from datetime import timedelta
from typing import Any, Literal

from pydantic import Field, model_validator

from sentinel.config.addresses import FilePattern, ServiceUrl
from sentinel.config.durations import Interval
from sentinel.config.fault import quoted
from sentinel.config.http_client import HttpConfig
from sentinel.config.quantities import Flag, LabelName, Name, Size
from sentinel.config.section import Section, wrong

Preset = Literal[
    "VllmErrorRateAbove1Percent",
    "VllmLatencyP99Above1s",
    "VllmTPOTP99High",
    "VllmTrafficSurge",
    "VllmQPSDrop",
    "GPUMemoryAbove90Percent",
]


class Rules(Section):
    shipped: Flag = True
    """Use the rules that come with Sentinel."""

    files: tuple[FilePattern, ...] = ("rules.d/*.yaml",)
    """Rule files of your own, in Prometheus's format; `*` may stand in a name."""

    disable: tuple[Name, ...] = Field(default=(), examples=[["VllmStartSlow"]])
    """Names of alerts that are left out."""

    enable: tuple[Preset, ...] = Field(default=(), examples=[["VllmTrafficSurge"]])
    """Presets to use: alerts that come with Sentinel and are off until named here."""


class PrometheusSource(Section):
    url: ServiceUrl = Field(examples=["http://127.0.0.1:9090"])
    """Address of the Prometheus."""

    target_label: LabelName = "target"
    """Label that names the target there."""

    http_config: HttpConfig | None = None
    """How to speak HTTP to it."""


class MetricsSource(Section):
    """`embedded`, or a Prometheus that evaluates the rules."""

    prometheus: PrometheusSource | None = None
    """Moves rule evaluation only; everything that reads `sentinel_*` stays embedded."""

    @model_validator(mode="before")
    @classmethod
    def _embedded(cls, data: Any) -> Any:
        if isinstance(data, str):
            if data != "embedded":
                raise wrong(f"{quoted(data)} is no source", allowed="embedded or {prometheus: …}")
            return {}
        return data


class Store(Section):
    keep: Literal["rules", "all"] = "rules"
    """Which series are kept in memory: those that rules read, or all."""

    metrics_retention: Interval = timedelta(hours=1)
    """How long series are kept, for queries, charts and advice."""


class Retention(Section):
    history: Interval = timedelta(days=90)
    """How long incidents and what was done are kept."""

    evidence: Interval = timedelta(days=7)
    """How long log tails and other evidence are kept."""

    evidence_size: Size = 1 << 30
    """How much room all evidence may take; the oldest goes first."""
