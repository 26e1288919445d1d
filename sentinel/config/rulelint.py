"""What is allowed in a rule and almost never meant. Told by `rules check`, never refused."""

import re
from collections.abc import Sequence

from sentinel.config.fault import Fault, quoted
from sentinel.core.alerting.rule import AlertRule, Rule, RuleGroup

_VALUE = re.compile(r"\{\{[^}]*(\$value\b|\.Value\b)")


def lint_rules(groups: Sequence[RuleGroup]) -> list[Fault]:
    found: list[Fault] = []
    seen: dict[object, Rule] = {}
    for rule in (rule for group in groups for rule in group.rules):
        if isinstance(rule, AlertRule):
            found.extend(_changing_labels(rule))
        twin = seen.setdefault((type(rule), rule.name, frozenset(rule.labels.items())), rule)
        if twin is not rule:
            where = f"{twin.file}:{twin.line}"
            says = f"{quoted(rule.name)} with the same labels stands in {where} too"
            found.append(_fault(rule, "labels", says, "labels that tell rules of one name apart"))
    return found


def _changing_labels(rule: AlertRule) -> list[Fault]:
    says = "the value in a label makes a new alert, and starts `for` anew, whenever it changes"
    return [
        _fault(rule, f"labels.{name}", says, "the value in an annotation")
        for name, text in rule.labels.items()
        if _VALUE.search(text)
    ]


def _fault(rule: Rule, key: str, says: str, allowed: str) -> Fault:
    return Fault(
        rule.file, rule.line, 1, key, f'group "{rule.group}", "{rule.name}": {says}', allowed
    )
