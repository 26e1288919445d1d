"""Plays scrapes of a vLLM through ingest, store and shipped rules, faster than time.

A body may be made to go on as it began: what only grows goes on growing, and a gauge stands.
"""

import re
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta

from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.alerting.needs import needs_of
from sentinel.core.alerting.rule import RuleGroup
from sentinel.core.model import series_names as series
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.target import State
from sentinel.runtime.ingest import Exposition

INTERVAL = timedelta(seconds=5)
_SAMPLE = re.compile(r"^([\w:]+)(\{.*\})? (\S+)$")
_PART = re.compile(r"_(bucket|sum|count|total)$")


def grown(first: str, second: str, turns: float) -> str:
    """`first`, to which what `second` has more in counters and histograms is added `turns` times."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", second, re.MULTILINE))
    began = dict(_samples(first))
    lines = []
    for key, value in _samples(second):
        name = key.partition("{")[0]
        kind = kinds.get(name) or kinds.get(_PART.sub("", name))
        grows = kind in ("counter", "histogram")
        start = began.get(key, 0.0)
        lines.append(f"{key} {start + (value - start) * turns if grows else value}")
    return "\n".join(lines) + "\n"


def _samples(body: str) -> list[tuple[str, float]]:
    found = (_SAMPLE.match(line) for line in body.splitlines() if not line.startswith("#"))
    return [(f"{match[1]}{match[2] or ''}", float(match[3])) for match in found if match]


def play(
    groups: Collection[RuleGroup],
    body_at: Callable[[int], str],
    *,
    state: State = State.SERVING,
    minutes: int = 15,
) -> list[ActiveAlert]:
    """Every alert that fires at any time, as it fired last; `body_at` gives the scrape of a turn."""
    needs = needs_of(groups)
    store = Store(keep=needs.keeps, retention_ms=needs.reach_ms)
    own = {"target": "llm-a", "host": "gpu1"}
    scraped = Exposition(
        store.source("llm-a", {**own, "instance": "127.0.0.1:8000", "job": "vllm"})
    )
    said = store.source("target/llm-a", own)
    evaluator = Evaluator(tuple(groups), store)
    now, fired = datetime(2030, 1, 1, tzinfo=UTC), dict[str, ActiveAlert]()
    for turn in range(minutes * 60 // 5):
        now += INTERVAL
        scraped.take(body_at(turn).encode(), millis(now))
        states = [(series.TARGET_STATE, {"state": s}, float(s is state)) for s in State]
        said.put([*states, (series.TARGET_UP, {}, 1.0)], millis(now))
        assert not evaluator.evaluate(now).failures
        for alert in evaluator.active:
            if alert.state == "firing":
                fired[f"{alert.rule} {alert.key}"] = alert
        store.trim(millis(now))
    return list(fired.values())
