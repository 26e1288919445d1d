"""What templates work with besides numbers, texts and maps; and what a function promises."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel.core.alerting.go_format import show


class TemplateError(Exception):
    """A template could not be expanded. The alert stands all the same."""


@dataclass(frozen=True, slots=True)
class Row:
    """One sample of a query: `.Labels` and `.Value`."""

    labels: Mapping[str, str]
    value: float

    def __str__(self) -> str:
        return f"{{{show(self.labels)} {show(self.value)}}}"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a template can ask for besides its own data."""

    at: datetime
    query: Callable[[str], Sequence[Row]]  # raises TemplateError
    external_url: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    takes: tuple[str, ...]  # any text number int rows row; a star before the last repeats it
    does: Callable[..., Any]
    asks_scene: bool = False
