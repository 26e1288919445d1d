"""Which containers are supervised, and what is particular to some of them."""

from datetime import timedelta
from fnmatch import fnmatchcase
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sentinel.config.addresses import FilePath, ServiceUrl
from sentinel.config.durations import Interval
from sentinel.config.quantities import Name, Positive
from sentinel.config.section import Section, wrong
from sentinel.core.model.intent import Mode


class Selector(Section):
    """A container is meant if every key given fits it; values are globs."""

    label: Name | None = Field(default=None, examples=["sentinel.supervise=true"])
    """`KEY=GLOB`, or `KEY` for any value."""

    image: Name | None = Field(default=None, examples=["*vllm*"])
    """The image's name."""

    command: Name | None = Field(default=None, examples=["*vllm*serve*"])
    """Entrypoint and command, joined by spaces."""

    name: Name | None = Field(default=None, examples=["t1-*"])
    """The container's name."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise wrong("is empty", allowed="one or more of label, image, command, name")
        if self.label is not None and not self.label.partition("=")[0].strip():
            raise wrong("is no label", allowed="KEY or KEY=GLOB", at=("label",))
        return self


class HungAfterStart(Section):
    minutes: Positive = 10
    """How many minutes after a start `hung_after` here holds."""

    hung_after: Interval = timedelta(minutes=5)
    """Silence that counts as a hang in that time: first shapes are compiled then."""


class Probe(Section):
    when: Literal["suspicion", "always", "never"] = "suspicion"
    """`suspicion`: no progress, open connections without work, or after an action."""

    interval: Interval = timedelta(minutes=1)
    """Least time between two probes of one target."""

    deadline: Interval = timedelta(seconds=20)
    """Longest time one token may take."""


class TargetOverride(Section):
    """What holds for one target: the first override that fits, key by key, else the default."""

    SECRET_FILES: ClassVar = ("api_key_file",)

    endpoint: ServiceUrl | None = None
    """Where it answers HTTP. Default: found."""

    api_key_file: FilePath | None = None
    """File with the API key it wants."""

    mode: Mode | None = None
    """How far Sentinel may go with it. Default: the top-level `mode`."""

    startup_deadline: Interval = timedelta(minutes=15)
    """How long it may take to become ready."""

    hung_after: Interval = timedelta(seconds=120)
    """How long work may make no progress before it counts as hung."""

    hung_after_in_first_minutes: HungAfterStart = HungAfterStart()
    """The same, just after a start."""

    probe: Probe = Probe()
    """Asking it for one token."""


class Override(TargetOverride):
    name: Name = Field(examples=["t1-*"])
    """Glob on the container's name."""

    endpoint: ServiceUrl | None = Field(default=None, examples=["http://127.0.0.1:8000"])
    """Where it answers HTTP. Default: found."""

    api_key_file: FilePath | None = Field(default=None, examples=["/run/secrets/k"])
    """File with the API key it wants."""

    mode: Mode | None = Field(default=None, examples=["watch"])
    """How far Sentinel may go with it. Default: the top-level `mode`."""


DISCOVER = (
    Selector(label="sentinel.supervise=true"),
    Selector(image="*vllm*"),
    Selector(command="*vllm*serve*"),
    Selector(command="*vllm.entrypoints.openai.api_server*"),
)


class Targets(Section):
    discover: tuple[Selector, ...] = DISCOVER
    """Containers to supervise: those that one entry fits. Default: by image, command, and a
    `vllm:` series on their port."""

    exclude: tuple[Selector, ...] = (Selector(label="sentinel.supervise=false"),)
    """Containers to leave alone, whatever `discover` says."""

    overrides: tuple[Override, ...] = ()
    """What is particular to some targets. The first that fits by name holds, key by key."""

    @property
    def by_default(self) -> bool:
        """Whether nobody said what to supervise, so that series on a port count too."""
        return "discover" not in self.model_fields_set

    def override_for(self, name: str) -> TargetOverride:
        chosen: dict[str, object] = {}
        for override in self.overrides:
            if fnmatchcase(name, override.name):
                for key in override.model_fields_set - {"name"}:
                    chosen.setdefault(key, getattr(override, key))
        return TargetOverride().model_copy(update=chosen)
