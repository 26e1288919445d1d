"""The manual, rendered from the settings themselves.

`docs/configure.md` is what `manual()` returns; run as a program, this module writes it and
the sample. Nothing about a key is written anywhere else, so the manual cannot say what the
code does not.
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

from sentinel.config import addresses, cron, durations, intervals, matchers, quantities
from sentinel.config.section import Section
from sentinel.config.settings import Settings

_KINDS: tuple[tuple[object, str], ...] = (
    (durations.Duration, "duration"),
    (durations.Interval, "duration"),
    (quantities.Size, "size"),
    (quantities.Percent, "percentage"),
    (quantities.Flag, "true or false"),
    (quantities.Count, "whole number"),
    (quantities.Positive, "whole number from 1"),
    (quantities.Name, "text"),
    (quantities.LabelName, "label name"),
    (str, "text"),
    (addresses.ServiceUrl, "address"),
    (addresses.ReceiverUrl, "address"),
    (addresses.Secret, "secret"),
    (addresses.SecretReceiverUrl, "secret address"),
    (addresses.SecretServiceUrl, "secret address"),
    (addresses.FilePath, "path"),
    (addresses.FilePattern, "path, may hold `*`"),
    (addresses.HostPort, "host:port"),
    (addresses.EngineAddress, "address"),
    (cron.Cron, "cron expression"),
    (cron.TimeZone, "time zone"),
    (cron.Location, "time zone"),
    (matchers.Matchers, "list of matchers"),
    (matchers.EqualityMap, "mapping label → text"),
    (matchers.PatternMap, "mapping label → pattern"),
    (intervals.MinuteOfDay, "HH:MM"),
    (intervals.Weekdays, "day or range of days"),
    (intervals.DaysOfMonth, "day or range of days"),
    (intervals.Months, "month or range of months"),
    (intervals.Years, "year or range of years"),
)

_INTRODUCTION = Path(__file__).with_name("introduction.md")


@dataclass(frozen=True)
class Key:
    """One key of one section, as a reader sees it."""

    name: str
    field: FieldInfo
    hint: Any

    @property
    def section(self) -> type[Section] | None:
        """The section it holds, holds a list of, or holds by name."""
        return next(
            (t for t in _inner(self.hint) if isinstance(t, type) and issubclass(t, Section)), None
        )

    @property
    def description(self) -> str:
        return " ".join((self.field.description or "").split())

    @property
    def kind(self) -> str:
        return _kind(self.hint)

    @property
    def default(self) -> str:
        if self.field.is_required():
            return "must be given"
        value = self.default_value
        return "" if value in (None, [], {}, "") or self.is_section else f"`{written(value)}`"

    @property
    def default_value(self) -> Any:
        """The default as YAML holds it; None if there is none, or if it depends on others."""
        if self.field.is_required() or self.field.default_factory is not None:
            return None
        adapter: TypeAdapter[Any] = TypeAdapter(self.hint)
        return adapter.dump_python(
            self.field.default, mode="json", by_alias=True, exclude_unset=True
        )

    @property
    def is_section(self) -> bool:
        return self.section is not None and outer(self.hint) is None


@cache
def keys(section: type[Section]) -> tuple[Key, ...]:
    """The keys of a section, those that must be given first."""
    hints = get_type_hints(section, include_extras=True)
    found = (Key(f.alias or name, f, hints[name]) for name, f in section.model_fields.items())
    return tuple(sorted(found, key=lambda key: not key.field.is_required()))


def manual() -> str:
    """The whole manual, in Markdown."""
    parts = [_INTRODUCTION.read_text(encoding="utf-8").rstrip(), ""]
    sections = list(every_section())
    paths = {section: path for path, section in sections}
    for path, section in sections:
        parts += [f"### `{path}`" if path else "### At the top", ""]
        if section.__doc__ and section.__doc__ != Section.__doc__:
            parts += [" ".join(section.__doc__.split()), ""]
        parts += ["| key | is | default | what |", "|---|---|---|---|"]
        parts += [_row(key, path, paths) for key in keys(section)]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


def _row(key: Key, path: str, paths: dict[type[Section], str]) -> str:
    kind = key.kind
    if key.section is not None and paths[key.section] != _step(path, key):
        kind += f", as `{paths[key.section]}`"
    cells = (f"`{key.name}`", kind, key.default, key.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def every_section() -> Iterator[tuple[str, type[Section]]]:
    """Every section once, at the first place where it may stand."""
    seen: set[type[Section]] = {Settings}
    waiting: list[tuple[str, type[Section]]] = [("", Settings)]
    while waiting:
        path, section = waiting.pop(0)
        yield path, section
        inner = []
        for key in keys(section):
            if key.section is not None and key.section not in seen:
                seen.add(key.section)
                inner.append((_step(path, key), key.section))
        waiting = inner + waiting


def _step(path: str, key: Key) -> str:
    """The way from a section at `path` to the section in `key`."""
    step = key.name + {tuple: "[]", dict: ".NAME"}.get(outer(key.hint), "")
    return f"{path}.{step}".removeprefix(".")


def outer(hint: Any) -> Any:
    """`tuple` or `dict` if the key holds several things, else None."""
    for part in _branches(hint):
        if get_origin(part) in (tuple, dict):
            return get_origin(part)
    return None


def _branches(hint: Any) -> list[Any]:
    """What `X | None` may be besides None; `Annotated` is looked through."""
    if get_origin(hint) in (Union, types.UnionType):
        return [b for a in get_args(hint) if a is not types.NoneType for b in _branches(a)]
    if hasattr(hint, "__metadata__"):
        return _branches(get_args(hint)[0])
    return [hint]


def _inner(hint: Any) -> Iterator[Any]:
    for part in _branches(hint):
        yield part
        if get_origin(part) in (tuple, dict):
            for arg in get_args(part):
                yield from _inner(arg)


def _kind(hint: Any) -> str:
    for alias, word in _KINDS:
        if hint == alias or _refines(hint, alias):
            return word
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(arg) for arg in args if arg is not types.NoneType)
    if origin is Literal:
        return ", ".join(f"`{arg}`" for arg in args)
    if origin is tuple:
        return "list" if _is_section(args[0]) else f"list: {_kind(args[0])}"
    if origin is dict:
        return f"mapping text → {'section' if _is_section(args[1]) else _kind(args[1])}"
    if hasattr(hint, "__metadata__"):
        return _kind(args[0])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return ", ".join(f"`{member}`" for member in hint)
    return {int: "whole number", Any: "anything"}.get(hint, "section")


def _refines(hint: Any, alias: Any) -> bool:
    """Whether it is the alias with one more check at its end."""
    checks = getattr(hint, "__metadata__", ())
    fewer = getattr(alias, "__metadata__", None)
    same_type = fewer is not None and get_args(hint)[:1] == get_args(alias)[:1]
    return bool(same_type and fewer and checks[: len(fewer)] == fewer)


def _is_section(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Section)


def written(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump([value], default_flow_style=True, width=10_000, allow_unicode=True)
    return text.strip()[1:-1]


if __name__ == "__main__":
    from sentinel.config.sample import sample

    Path("docs/configure.md").write_text(manual(), encoding="utf-8")
    Path("deploy/sentinel.example.yaml").write_text(sample(), encoding="utf-8")
