"""A YAML file as a tree that remembers where each value stood.

Every scalar stays the text it was: whether `01:00`, `yes` or `0755` is a number, a flag or a
word is decided by the key that holds it, not by YAML 1.1. Aliases are counted as if they
were written out, so that a small file cannot become a large one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from sentinel.config.fault import Fault, quoted
from sentinel.config.section import Loc

LIMIT_BYTES = 1 << 20
LIMIT_DEPTH = 50
LIMIT_NODES = 50_000

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = {"", "~", "null", "Null", "NULL"}
_NULL_TAG = "tag:yaml.org,2002:null"
_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null")}
_COLLECTION_TAGS = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_YAML = "a YAML mapping, indented with spaces"


@dataclass(frozen=True, slots=True)
class Place:
    file: Path
    line: int
    column: int

    def fault(self, at: Loc, message: str, allowed: str) -> Fault:
        return Fault(str(self.file), self.line, self.column, dotted(at), message, allowed)


@dataclass(frozen=True, slots=True)
class Scalar:
    place: Place
    text: str
    is_null: bool = False
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class Items:
    place: Place
    items: list["Node"] = field(default_factory=list)
    size: int = 1
    height: int = 0


@dataclass(slots=True)
class Entries:
    place: Place
    keys: dict[str, Place] = field(default_factory=dict)
    values: dict[str, "Node"] = field(default_factory=dict)
    size: int = 1
    height: int = 0

    def put(self, key: str, at: Place, value: "Node") -> None:
        self.keys[key] = at
        self.values[key] = value


Node = Scalar | Items | Entries


class Located(str):
    """A text that knows the folder of the file it was written in."""

    __slots__ = ("folder",)
    folder: Path

    def __new__(cls, text: str, folder: Path) -> Self:
        made = super().__new__(cls, text)
        made.folder = folder
        return made


def dotted(at: Loc) -> str:
    """`("receivers", 0, "name")` as `receivers[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in at)
    return text.removeprefix(".") or "(file)"


def plain(node: Node) -> Any:
    """The tree as dicts, lists and texts, for validation."""
    if isinstance(node, Scalar):
        return None if node.is_null else Located(node.text, node.place.file.parent)
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, value in node.values.items()}


def compose(content: bytes, file: Path) -> tuple[Entries, list[Fault]]:
    """Read one file. What cannot be read at all yields no entries and one fault."""
    nothing = Entries(Place(file, 1, 1))
    try:
        text = _decode(content, file)
    except _Unreadable as stopped:
        return nothing, [stopped.fault]
    try:
        composer = _Composer(file, yaml.parse(text, Loader=_LOADER))
        root = composer.document()
    except _Unreadable as stopped:
        return nothing, [stopped.fault]
    except yaml.YAMLError as error:
        return nothing, [_syntax(error, text, file)]
    if root is None or (isinstance(root, Scalar) and root.is_null):
        return nothing, composer.faults
    if not isinstance(root, Entries):
        kind = "a list" if isinstance(root, Items) else "a single value"
        return nothing, [root.place.fault((), f"the file holds {kind}", "a mapping of keys")]
    return root, composer.faults


class _Unreadable(Exception):  # noqa: N818
    def __init__(self, fault: Fault) -> None:
        self.fault = fault


def _decode(content: bytes, file: Path) -> str:
    if len(content) > LIMIT_BYTES:
        place = Place(file, 1, 1)
        raise _Unreadable(place.fault((), "the file is too large", f"up to {LIMIT_BYTES} bytes"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        place = _place_after(before, file)
        raise _Unreadable(place.fault((), "not UTF-8", "text in UTF-8")) from None
    if found := _NOT_TEXT.search(text):
        place = _place_after(text[: found.start()], file)
        says = f"control character U+{ord(found[0]):04X}"
        raise _Unreadable(place.fault((), says, "printable text in UTF-8"))
    return text


def _place_after(before: str, file: Path) -> Place:
    return Place(file, before.count("\n") + 1, len(before) - before.rfind("\n"))


def _syntax(error: yaml.YAMLError, text: str, file: Path) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
    lines = text.splitlines()
    line = lines[place.line - 1] if place.line <= len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return place.fault((), "not YAML: a tab where YAML wants spaces", _YAML)
    context = getattr(error, "context", None)
    problem = getattr(error, "problem", None) or "cannot be read"
    says = f"not YAML: {f'{context}, ' if context else ''}{problem}"
    return place.fault((), says, _YAML)


class _Composer:
    """Turns the parser's events into nodes, keeping to the limits."""

    def __init__(self, file: Path, events: Iterator[yaml.Event]) -> None:
        self.faults: list[Fault] = []
        self._file = file
        self._events = events
        self._anchors: dict[str, Node | None] = {}

    def document(self) -> Node | None:
        root: Node | None = None
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refuse(event, (), "a second document", "one document in a file")
                root = self._node(next(self._events), ())
        return root

    def _node(self, event: yaml.Event, at: Loc) -> Node:
        if len(at) > LIMIT_DEPTH:
            raise self._refuse(event, at[:3], "nested too deeply", f"up to {LIMIT_DEPTH} levels")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, at)
        anchor = getattr(event, "anchor", None)
        if anchor:
            self._anchors[anchor] = None
        node = self._fresh(event, at)
        if anchor:
            self._anchors[anchor] = node
        return node

    def _fresh(self, event: yaml.Event, at: Loc) -> Node:
        tag = getattr(event, "tag", None)
        if isinstance(event, yaml.ScalarEvent):
            if tag not in (None, "!") and tag not in _TAGS:
                raise self._refuse(event, at, f"tag {quoted(tag)}", "values without tags")
            is_null = event.implicit[0] and event.value in _NULLS
            return Scalar(self._place(event), event.value, is_null or tag == _NULL_TAG)
        if tag not in (None, "!") and tag not in _COLLECTION_TAGS:
            raise self._refuse(event, at, f"tag {quoted(tag)}", "values without tags")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._items(event, at)
        return self._entries(event, at)

    def _items(self, start: yaml.Event, at: Loc) -> Items:
        made = Items(self._place(start))
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            item = self._node(event, (*at, len(made.items)))
            made.items.append(item)
            self._grow(made, item, event, at)
        return made

    def _entries(self, start: yaml.Event, at: Loc) -> Entries:
        made = Entries(self._place(start))
        merged: list[tuple[yaml.Event, Node]] = []
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self._key(event, at)
            following = next(self._events)
            value = self._node(following, (*at, key))
            self._grow(made, value, event, at)
            if key == "<<" and self._is_bare(event):
                merged.append((event, value))
            elif key in made.keys:
                first = made.keys[key].line
                says = f"is given twice, first in line {first}"
                place = self._place(event)
                self.faults.append(place.fault((*at, key), says, "each key once"))
            else:
                made.put(key, self._place(event), value)
        for event, value in merged:
            self._merge(made, value, event, at)
        return made

    def _key(self, event: yaml.Event, at: Loc) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            raise self._refuse(event, at, "a key that is not a word", "keys that are plain texts")
        if event.anchor:
            self._anchors[event.anchor] = Scalar(self._place(event), event.value)
        return str(event.value)

    def _merge(self, into: Entries, value: Node, event: yaml.Event, at: Loc) -> None:
        for source in value.items if isinstance(value, Items) else [value]:
            if not isinstance(source, Entries):
                raise self._refuse(event, (*at, "<<"), "merges no mapping", "an alias of a mapping")
            for key, found in source.values.items():
                if key not in into.keys:
                    into.put(key, source.keys[key], found)

    def _alias(self, event: yaml.AliasEvent, at: Loc) -> Node:
        if event.anchor not in self._anchors:
            raise self._refuse(event, at, f"no anchor &{event.anchor} before", "a known anchor")
        node = self._anchors[event.anchor]
        if node is None:
            raise self._refuse(event, at, f"*{event.anchor} holds itself", "an anchor that ended")
        return node

    def _grow(self, parent: Items | Entries, child: Node, event: yaml.Event, at: Loc) -> None:
        parent.size += child.size
        parent.height = max(parent.height, child.height + 1)
        if parent.size > LIMIT_NODES:
            raise self._refuse(event, at, "too many values", f"up to {LIMIT_NODES} in all")
        if len(at) + parent.height > LIMIT_DEPTH:
            raise self._refuse(event, at[:3], "nested too deeply", f"up to {LIMIT_DEPTH} levels")

    def _is_bare(self, event: yaml.Event) -> bool:
        return isinstance(event, yaml.ScalarEvent) and bool(event.implicit[0])

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        assert mark is not None  # the parser gives every event one
        return Place(self._file, mark.line + 1, mark.column + 1)

    def _refuse(self, event: yaml.Event, at: Loc, message: str, allowed: str) -> _Unreadable:
        return _Unreadable(self._place(event).fault(at, message, allowed))
