"""The annotated sample, rendered from the settings: `deploy/sentinel.example.yaml`.

Prose stands after `# `, settings after `#` alone: with that one sign taken away everywhere,
the sample is a valid configuration that uses most keys. A key without a default or an
example is left to the manual, and so is one whose list of examples is empty.
"""

import textwrap
from collections.abc import Iterator

import yaml

from sentinel.config.reference import Key, keys, outer, written
from sentinel.config.section import Section
from sentinel.config.settings import Settings

_WIDTH = 100
_HEADING = """\
# Sentinel's configuration: /etc/sentinel/sentinel.yaml
#
# Every key may be left out; the values below are defaults, or examples where there is none.
# To use a key, take away the # before it and before the keys around it.
# `sentinel config reference` says more.
"""


def sample() -> str:
    lines = [_HEADING, *_section(Settings, 0, {Settings})]
    return "\n".join(lines).rstrip() + "\n"


def _section(section: type[Section], depth: int, seen: set[type[Section]]) -> Iterator[str]:
    for key in keys(section):
        lines = list(_key(key, depth, seen))
        yield from lines
        if lines and depth == 0:
            yield ""


def _key(key: Key, depth: int, seen: set[type[Section]]) -> Iterator[str]:
    indent = "  " * depth
    lines = list(_value(key, depth, seen))
    if lines:
        width = _WIDTH - len(indent) - 2
        yield from (f"{indent}# {line}" for line in textwrap.wrap(key.description, width))
        yield f"{indent}#{key.name}:{lines[0]}"
        yield from lines[1:]


def _value(key: Key, depth: int, seen: set[type[Section]]) -> Iterator[str]:
    """What follows the colon, and further lines; nothing if the key is not shown."""
    examples = key.field.examples
    if examples is not None:
        if examples:
            yield from _example(examples[0], depth)
    elif key.section is not None and key.section not in seen:
        seen.add(key.section)
        yield from _nested(key, key.section, depth, seen)
    elif key.section is None and key.default_value not in (None, [], {}, ""):
        yield f" {written(key.default_value)}"


def _example(value: object, depth: int) -> Iterator[str]:
    line = f" {written(value)}"
    if len(line) < _WIDTH // 2 or not isinstance(value, dict):
        yield line
        return
    yield ""
    indent = "  " * (depth + 1)
    for block_line in yaml.safe_dump(value, sort_keys=False).splitlines():
        inner = len(block_line) - len(block_line.lstrip())
        yield f"{indent}{block_line[:inner]}#{block_line[inner:]}"


def _nested(
    key: Key, section: type[Section], depth: int, seen: set[type[Section]]
) -> Iterator[str]:
    yield ""
    indent = "  " * (depth + 1)
    kind = outer(key.hint)
    if kind is tuple:
        yield f"{indent}#-"
    elif kind is dict:
        yield f"{indent}#main:"
    yield from _section(section, depth + (1 if kind is None else 2), seen)
