"""Matchers and routing trees: refused with a place, or the same when told and read again."""

import random
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from sentinel.config.export import as_alertmanager, effective
from sentinel.config.fault import ConfigRefused
from sentinel.config.load import load_settings
from sentinel.config.matchers import parse_matcher, parse_matchers, show_matcher
from sentinel.config.routing import Route
from tests.fuzz.mutation import mutated, mutated_text

_MATCHERS = (
    'a="b"', "a=b", 'severity=~"info|warning"', 'x!~"a\\\\.b"', '{a="b",c!="d"}', '"foo bar"="x"',
    'foo.bar="x"', '中="文"', 'a="x,y"', 'a="\\"q\\n"', "a=", 'a=~"(x*)*y"', "a=~x{2}", '"\\\\"=x',
    'a=~"("', "nonsense", "a=b,", ",", "{}", "{", 'a="', "\\", 'a="}"', "a=b=c", "1a=b",
)  # fmt: skip
_ODD: tuple[Any, ...] = (None, [], {}, "", 0, True, [[]], {"a": {}}, "x", "...", ["..."], "5m")
_RECEIVERS = ("one", "two", "log", "three")


@dataclass(frozen=True, slots=True)
class Routing:
    matcher: str
    config: bytes


def make(dice: random.Random) -> Routing:
    text = dice.choice(_MATCHERS)
    if dice.random() < 0.5:
        text = mutated_text(text, dice)
    config = {
        "receivers": [{"name": "one"}, {"name": "two"}],
        "time_intervals": [{"name": "nights", "time_intervals": [{"weekdays": ["sunday"]}]}],
        "route": {**_route(dice, 0), "receiver": "one"},
        "inhibit_rules": [
            {
                "source_matchers": [dice.choice(_MATCHERS)],
                "target_match": {"a": "b"},
                "equal": ["target"],
            }
        ][: dice.randrange(2)],
    }
    raw = yaml.safe_dump(config, allow_unicode=dice.random() < 0.5, sort_keys=False).encode()
    return Routing(text, mutated(raw, dice) if dice.random() < 0.2 else raw)


def _route(dice: random.Random, depth: int) -> Any:
    route: dict[str, Any] = {}
    if depth:
        route["receiver"] = dice.choice(_RECEIVERS[: dice.choice((3, 3, 4))])
        route["matchers"] = [dice.choice(_MATCHERS[: dice.choice((12, 12, 12, 25))])]
        route["continue"] = dice.choice((True, False, "yes"))
        if dice.random() < 0.2:
            route["mute_time_intervals"] = [dice.choice(("nights", "nights", "days"))]
        if dice.random() < 0.2:
            route["match_re"] = {"a": dice.choice(("b|c", "("))}
    for key in ("group_wait", "group_interval", "repeat_interval"):
        if dice.random() < 0.3:
            route[key] = dice.choice(("30s", "5m", "1h", "0s", "x"))
    if dice.random() < 0.3:
        route["group_by"] = dice.choice((["incident"], ["..."], ["a", "b"], ["a", "a"], []))
    if depth < 4 and dice.random() < 0.6:
        route["routes"] = [_route(dice, depth + 1) for _ in range(dice.randrange(3))]
    if dice.random() < 0.05:
        route[dice.choice(("matchers", "routes", "receiver", "x"))] = dice.choice(_ODD)
    return route


def check(routing: Routing) -> None:
    _check_matcher(routing.matcher)
    file = _folder() / "sentinel.yaml"
    file.write_bytes(routing.config)
    try:
        settings = load_settings(file, env={}).settings
    except ConfigRefused as refused:
        _check_faults(refused)
        return
    yaml.safe_load(yaml.safe_dump(effective(settings)))
    told = yaml.safe_load(as_alertmanager(settings))
    file.write_text(yaml.safe_dump(told))
    assert _essence(load_settings(file, env={}).settings.route) == _essence(settings.route)


def _check_faults(refused: ConfigRefused) -> None:
    assert refused.faults
    assert all(fault.line >= 1 and str(fault) for fault in refused.faults)


def _check_matcher(text: str) -> None:
    try:
        found = parse_matchers(text)
    except ValueError:
        return
    for matcher in found:
        shown = show_matcher(matcher)
        assert parse_matcher(shown) == matcher
        assert parse_matchers(f"{{{shown}}}") == (matcher,)
        matcher.matches("t1-a")


def _essence(route: Route) -> Any:
    return (
        route.receiver, route.group_by, route.group_wait, route.group_interval,
        route.repeat_interval, route.all_matchers, route.continue_,
        route.mute_time_intervals, [_essence(child) for child in route.routes],
    )  # fmt: skip


@cache
def _folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="sentinel-fuzz-")
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
