"""What every section of the configuration has in common.

Frozen, nothing extra, and each attribute's docstring is the manual. A key with nothing
after it is a key left out. `SECRETS` names the keys that may be given as `<key>` or as
`<key>_file`; everything that checks, reads or hides secrets goes by it, so a secret that is
not named there is a leak.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, SecretStr, model_validator
from pydantic_core import PydanticCustomError

Loc = tuple[str | int, ...]


def wrong(message: str, *, allowed: str, at: Loc = ()) -> PydanticCustomError:
    """A fault found by a validator; `at` leads from what is validated to the value at fault."""
    return PydanticCustomError(
        "wrong", "{message}", {"message": message, "allowed": allowed, "at": at}
    )


class Section(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
    )

    SECRETS: ClassVar[Mapping[str, bool]] = {}
    """Secret key → whether it must be given, one way or the other."""

    SECRET_FILES: ClassVar[tuple[str, ...]] = ()
    """Keys of files that hold a secret which cannot be written inline."""

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_absent(cls, data: Any) -> Any:
        if data is None:
            return {}
        if not isinstance(data, dict):
            return data
        known = keys_of(cls)
        return {key: value for key, value in data.items() if value is not None or key not in known}

    @model_validator(mode="after")
    def _each_secret_has_one_source(self) -> Self:
        for key, needed in self.SECRETS.items():
            inline, file = is_given(getattr(self, key)), is_given(getattr(self, f"{key}_file"))
            if inline and file:
                raise wrong(
                    f"is given twice, as {key} and as {key}_file",
                    allowed=f"{key} or {key}_file",
                    at=(f"{key}_file",),
                )
            if needed and not inline and not file:
                raise wrong(
                    f"neither {key} nor {key}_file is given", allowed=f"{key} or {key}_file"
                )
        return self


def is_given(value: object) -> bool:
    """Whether a key holds something; an empty secret is none, as in Alertmanager."""
    return bool(value.get_secret_value()) if isinstance(value, SecretStr) else value is not None


def keys_of(section: type[BaseModel]) -> dict[str, str]:
    """The section's keys as they are written, and the attribute each one fills."""
    return {field.alias or name: name for name, field in section.model_fields.items()}


def sections(value: object, at: Loc = ()) -> Iterator[tuple[Loc, Section]]:
    """Every section inside `value`, with the way to it."""
    if isinstance(value, Section):
        yield at, value
        for key, name in keys_of(type(value)).items():
            yield from sections(getattr(value, name), (*at, key))
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from sections(item, (*at, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from sections(item, (*at, key))
