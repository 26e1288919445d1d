"""The two hot paths by themselves: a scrape to series, and one evaluation of the shipped rules.

Processor time of one process, the middle of many rounds, after the windows of the rules are
full: five minutes of scrapes of a saturated vLLM 0.32, whose values change each time.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.alerting.needs import needs_of
from sentinel.core.model import series_names as series
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.target import State
from sentinel.runtime.ingest import Exposition
from sentinel.runtime.vitals import METRICS
from tests.bench.setup import HOST, REPOSITORY, RULES

_INTERVAL = timedelta(seconds=5)
_WARM_UP, _ROUNDS = 60, 30
_FIXTURES = REPOSITORY / "tests/fixtures/vllm-0.32.0-cpu"
BODIES = [(_FIXTURES / f"metrics_0.32_saturated_{t}.txt").read_bytes() for t in ("t0", "t6")]


@dataclass(frozen=True, slots=True)
class Inside:
    body_kb: float
    parse_ms: float
    evaluate_ms: dict[int, float]  # by number of targets

    def as_json(self) -> dict[str, object]:
        return {
            "body_kb": round(self.body_kb, 1),
            "parse_ms": round(self.parse_ms, 3),
            "evaluate_ms": {str(n): round(ms, 2) for n, ms in self.evaluate_ms.items()},
        }


def measure(sizes: tuple[int, ...] = (8, 64)) -> Inside:
    parsed, evaluated = 0.0, {}
    for size in sizes:
        parsed, evaluated[size] = _with(size)
    return Inside(len(BODIES[0]) / 1024, parsed, evaluated)


def _with(size: int) -> tuple[float, float]:
    groups = load_rule_files(RULES)
    needs = needs_of(groups)
    store = Store(
        keep=lambda name: name in METRICS or needs.keeps(name), retention_ms=needs.reach_ms
    )
    names = [f"t{number}" for number in range(size)]
    targets = [_target(store, name) for name in names]
    evaluator = Evaluator(groups, store)
    now, parses, evaluations = datetime(2030, 1, 1, tzinfo=UTC), [], []
    for turn in range(_WARM_UP + _ROUNDS):
        now += _INTERVAL
        at, body = millis(now), BODIES[turn % 2]
        for name, target in zip(names, targets, strict=True):
            parses.append(_milliseconds(target.take, body, at))
            _say(store, name, at)
        evaluations.append(_milliseconds(evaluator.evaluate, now))
        store.trim(at)
    return (
        statistics.median(parses[_WARM_UP * size :]),
        statistics.median(evaluations[_WARM_UP:]),
    )


def _target(store: Store, name: str) -> Exposition:
    labels = {"target": name, "host": HOST, "job": "vllm", "instance": f"{name}:8000"}
    return Exposition(store.source(name, labels))


def _say(store: Store, name: str, at: int) -> None:
    """What Sentinel itself writes of each target in each turn."""
    states = [(series.TARGET_STATE, {"state": s}, float(s is State.SATURATED)) for s in State]
    ooms = [(series.OOM_EVENTS, {"kind": kind}, 0.0) for kind in series.OOM_KINDS]
    own = {"target": name, "host": HOST}
    up = (series.TARGET_UP, dict[str, str](), 1.0)
    crashed = (series.TARGET_CRASHED, dict[str, str](), 0.0)
    store.source(f"target/{name}", own).put([*states, *ooms, up, crashed], at)


def _milliseconds(call: Callable[..., object], *words: object) -> float:
    began = time.process_time_ns()
    call(*words)
    return (time.process_time_ns() - began) / 1e6
