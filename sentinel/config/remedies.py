"""What is done about an alert: a ladder of steps, from mild to strong."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from sentinel.config.durations import Duration, Interval
from sentinel.config.fault import quoted
from sentinel.config.matchers import Matchers
from sentinel.config.quantities import Flag, Name, Percent, Positive
from sentinel.config.section import Section, wrong
from sentinel.core.model.intent import Mode
from sentinel.core.model.labels import Matcher


class StepOptions(Section):
    wait: Duration | None = Field(default=None, examples=["0s"])
    """How long the alert must go on after the step before. Default: until that is judged."""

    deadline: Interval | None = Field(default=None, examples=["15m"])
    """How soon its effect must be seen. Default: `guards.verify_within`."""

    mode: Mode | None = Field(default=None, examples=["approve"])
    """How far Sentinel may go with this step. Default: the remedy's."""


class RestartStep(StepOptions):
    drain: Flag = False
    """Move traffic away first, where the pool's switch can."""


class PageStep(StepOptions):
    """Call a person."""


def _read_limit(value: object) -> object:
    if value == "fit" or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    text = str(value)
    if not text.isdecimal() or not 0 < int(text) < 1_000_000:
        raise wrong(f"{quoted(value)} is no limit", allowed="fit, or a whole number from 1")
    return int(text)


class LowerMaxNumSeqsStep(StepOptions):
    to: Annotated[int | str, BeforeValidator(_read_limit)] = "fit"
    """`fit`: what memory held when it really ran; or a number."""

    floor: Positive = 8
    """Never lower than this."""

    @model_validator(mode="after")
    def _above_the_floor(self) -> Self:
        if isinstance(self.to, int) and self.to < self.floor:
            raise wrong(
                f"{self.to} is below the floor of {self.floor}",
                allowed=f"fit, or a whole number from {self.floor}",
                at=("to",),
            )
        return self


class ShiftTrafficStep(StepOptions):
    weight: Percent = 50
    """Share of its usual traffic that the target keeps; `0%` drains it."""


class Step(Section):
    """One of these."""

    restart: RestartStep | None = None
    """Restart the container."""

    lower_max_num_seqs: LowerMaxNumSeqsStep | None = None
    """Recreate the container with a lower `--max-num-seqs`."""

    shift_traffic: ShiftTrafficStep | None = None
    """Move traffic to the other targets of the pool."""

    page: PageStep | None = None
    """Call a person."""

    @model_validator(mode="before")
    @classmethod
    def _options_may_be_left_out(cls, data: Any) -> Any:
        if isinstance(data, str):
            data = {data: None}
        if isinstance(data, dict):
            return {key: {} if value is None else value for key, value in data.items()}
        return data

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise wrong(
                "is not exactly one step", allowed=f"one of {', '.join(type(self).model_fields)}"
            )
        return self

    @property
    def kind(self) -> str:
        """`restart`, `lower_max_num_seqs`, `shift_traffic` or `page`."""
        return next(iter(self.model_fields_set))

    @property
    def options(self) -> StepOptions:
        options: StepOptions = getattr(self, self.kind)
        return options


def _not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise wrong("is empty", allowed="a list with one entry or more")
    return values


class Remedy(Section):
    name: Name | None = Field(default=None, examples=["hang"])
    """What it is called in scorecards. Default: its matchers."""

    match: Annotated[Matchers, AfterValidator(_not_empty)] = Field(
        examples=[['alertname="VllmEngineHung"']]
    )
    """The alerts it is for; all must match."""

    ladder: Annotated[tuple[Step, ...], AfterValidator(_not_empty)] = Field(
        examples=[[{"restart": {"drain": True}}, {"page": {}}]]
    )
    """Steps, tried in this order until the alert is gone."""

    mode: Mode | None = Field(default=None, examples=["approve"])
    """How far Sentinel may go with this remedy. Default: the top-level `mode`."""

    @property
    def matchers(self) -> tuple[Matcher, ...]:
        return self.match
