"""Rule files in Prometheus's format to rule groups, or all that is wrong with them.

As strict as `promtool check rules`, and in one thing stricter: an expression that Sentinel
does not evaluate is refused here, and not when it is needed. Files are loaded all or none.
Every fault is found in one go, each at the place of the value that is wrong.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sentinel.config.document import Entries, Place, Scalar, compose
from sentinel.config.fault import ConfigRefused, Fault
from sentinel.config.fields import Field, Reader
from sentinel.core.alerting.rule import AlertRule, Compat, RecordingRule, Rule, RuleGroup
from sentinel.core.alerting.template import TemplateSyntaxError, compile_template
from sentinel.core.promql import Expression, ExpressionError, compile_expression

_GROUP_KEYS = ("name", "interval", "query_offset", "limit", "labels", "rules")
_GROUP_KEYS_2 = ("name", "interval", "limit", "rules")
_RULE_KEYS = ("record", "alert", "expr", "for", "keep_firing_for", "labels", "annotations")
_ONLY_ALERTS = ("for", "keep_firing_for", "annotations")
_LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_METRIC_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
_EXPRESSION = "a PromQL expression that gives an instant vector or a scalar"
_TEMPLATE = "a Go template with Prometheus's functions"


class RuleFileError(ConfigRefused):
    """Rule files that cannot be used; `faults` says why, all of it."""


def load_rule_files(paths: Sequence[Path], *, compat: Compat = 3) -> list[RuleGroup]:
    """The groups of all files, in order; raises `RuleFileError`.

    `compat`: 2 for the language and the fields of Prometheus 2, 3 for those of Prometheus 3.
    """
    faults: list[Fault] = []
    groups: list[RuleGroup] = []
    for path in paths:
        found, wrong = _load(path, compat)
        groups.extend(found)
        faults.extend(wrong)
    if faults:
        raise RuleFileError(tuple(faults))
    return _numbered(groups)


def _load(path: Path, compat: Compat) -> tuple[list[RuleGroup], list[Fault]]:
    start = Place(path, 1, 1)
    try:
        content = path.read_bytes()
    except OSError as error:
        says = f"cannot be read: {error.strerror or error}"
        return [], [start.fault((), says, "a file that Sentinel may read")]
    root, faults = compose(content, path)
    if not root.keys:
        return [], faults or [start.fault((), "the file is empty", "a mapping with key groups")]
    reader = Reader()
    groups = _Groups(reader, path, compat).read(Field((), root))
    return groups, sorted([*faults, *reader.faults], key=lambda one: (one.line, one.column))


def _numbered(groups: Sequence[RuleGroup]) -> list[RuleGroup]:
    """Tell apart rules of one name in groups of one name."""
    seen: Counter[str] = Counter()
    numbered: list[RuleGroup] = []
    for group in groups:
        rules: list[Rule] = []
        for rule in group.rules:
            seen[rule.id] += 1
            rules.append(replace(rule, ordinal=seen[rule.id]))
        numbered.append(replace(group, rules=tuple(rules)))
    return numbered


class _Groups:
    """Reads one file, as far as it can be read."""

    def __init__(self, reader: Reader, path: Path, compat: Compat) -> None:
        self._reader = reader
        self._path = path
        self._compat = compat

    def read(self, root: Field) -> list[RuleGroup]:
        listed = self._reader.items(self._reader.mapping(root, ("groups",)).get("groups"))
        groups: list[RuleGroup] = []
        seen: set[str] = set()
        for item in listed:
            group = self._group(item)
            groups.append(group)
            if group.name and group.name in seen:
                says = f'groupname: "{group.name}" is repeated in the same file'
                self._reader.fault(item, says, "each group name once in a file")
            seen.add(group.name)
        return groups

    def _group(self, item: Field) -> RuleGroup:
        read = self._reader
        keys = read.mapping(item, _GROUP_KEYS if self._compat >= 3 else _GROUP_KEYS_2)
        name = read.text(keys.get("name"))
        if not name and isinstance(item.node, Entries):
            read.fault(keys.get("name", item), "Groupname must not be empty", "a name")
        common = self._texts(keys.get("labels"), "label", templates=True)
        rules = [
            self._rule(replace(entry, whose=f'group "{name}", rule {number}'), name, common)
            for number, entry in enumerate(read.items(keys.get("rules")), start=1)
        ]
        return RuleGroup(
            name=name,
            file=str(self._path),
            interval=read.duration(keys.get("interval")) or None,
            query_offset=read.duration(keys.get("query_offset")),
            limit=read.integer(keys.get("limit")),
            rules=tuple(rule for rule in rules if rule is not None),
        )

    def _rule(self, entry: Field, group: str, common: Mapping[str, str]) -> Rule | None:
        read = self._reader
        if not isinstance(entry.node, Entries):
            read.fault(entry, "is not a mapping", "a mapping with alert or record, and expr")
            return None
        name = _name_of(entry.node)
        entry = replace(entry, whose=f'{entry.whose}, "{name}"')
        before = len(read.faults)
        keys = read.mapping(entry, _RULE_KEYS)
        is_alert = self._is_alert(keys, entry)
        expr = self._expression(keys.get("expr", entry))
        labels = self._texts(keys.get("labels"), "label", templates=is_alert)
        annotations = self._texts(keys.get("annotations"), "annotation", templates=is_alert)
        for_ = read.duration(keys.get("for"))
        keep_firing_for = read.duration(keys.get("keep_firing_for"))
        if expr is None or len(read.faults) > before:
            return None
        line = entry.place.line
        labels = {**common, **labels}
        if not is_alert:
            return RecordingRule(
                name=name, expr=expr, labels=labels, group=group, file=str(self._path), line=line
            )
        return AlertRule(
            name=name,
            expr=expr,
            for_=for_,
            keep_firing_for=keep_firing_for,
            labels=labels,
            annotations=annotations,
            group=group,
            file=str(self._path),
            line=line,
        )

    def _is_alert(self, keys: Mapping[str, Field], entry: Field) -> bool:
        """Whether it alerts, and not records; it must do one of them and no more."""
        read = self._reader
        record, alert = read.text(keys.get("record")), read.text(keys.get("alert"))
        if record and alert:
            says = "only one of 'record' and 'alert' must be set"
            read.fault(keys["alert"], says, "record or alert")
        elif not record and not alert:
            says = "one of 'record' or 'alert' must be set"
            read.fault(keys.get("alert", keys.get("record", entry)), says, "record or alert")
        if record:
            self._check_recording(record, keys)
        return not record

    def _check_recording(self, name: str, keys: Mapping[str, Field]) -> None:
        for key in _ONLY_ALERTS:
            if key in keys and not keys[key].is_absent:
                says = f"invalid field '{key}' in recording rule"
                self._reader.fault(keys[key], says, "record, expr, labels")
        if not _METRIC_NAME.fullmatch(name):
            says = f"invalid recording rule name: {name}"
            self._reader.fault(keys["record"], says, "a metric name: letters, digits, _ and :")

    def _expression(self, field: Field) -> Expression | None:
        read = self._reader
        text = "" if isinstance(field.node, Entries) else read.text(field)
        if not text.strip():
            read.fault(field, "field 'expr' must be set in rule", _EXPRESSION)
            return None
        try:
            expr = compile_expression(text, compat=self._compat)
        except ExpressionError as error:
            read.fault(field, f"could not parse expression: {error}", _EXPRESSION)
            return None
        if expr.type not in ("vector", "scalar"):
            says = f"expression gives a {expr.type}, which no rule can use"
            read.fault(field, says, _EXPRESSION)
            return None
        return expr

    def _texts(self, field: Field | None, kind: str, *, templates: bool) -> dict[str, str]:
        """Labels or annotations."""
        found = self._reader.texts(field)
        for name, value in found.items():
            if not _LABEL_NAME.fullmatch(name) or (kind == "label" and name == "__name__"):
                says = f"invalid {kind} name: {name}"
                self._reader.fault(value, says, "letters, digits and _, no digit first")
            elif templates:
                self._check_template(f'{kind} "{name}"', value)
        return {name: self._reader.text(value) for name, value in found.items()}

    def _check_template(self, what: str, field: Field) -> None:
        try:
            compile_template(self._reader.text(field))
        except TemplateSyntaxError as error:
            self._reader.fault(field, f"{what}: template: {error}", _TEMPLATE)


def _name_of(rule: Entries) -> str:
    for key in ("alert", "record"):
        node = rule.values.get(key)
        if isinstance(node, Scalar) and node.text:
            return node.text
    return ""
