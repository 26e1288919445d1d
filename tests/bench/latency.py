"""From a fault to the message about it, for everyone who watches the same targets at once.

A metric fault begins when the target's own /metrics shows it; a death when Docker says that
the container finished. Faults are spread evenly over the interval, in random order: whoever
polls once in an interval is met at every phase of it, and ten tries are enough for a mean.
"""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from deploy.testbed import Box, wait_until
from tests.bench.setup import METRIC
from tests.blackbox import Hook

_DICE = random.Random(7)
_LONGEST = 120.0  # seconds that a message may take
Answer = TypeVar("Answer")

Hooks = Mapping[str, Hook]
Heard = Callable[[Hook, str, datetime], datetime | None]


@dataclass(frozen=True, slots=True)
class Spread:
    """In seconds. With ten tries p99 is the slowest of them."""

    mean: float
    p99: float
    tries: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        ordered = sorted(values)
        last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        return cls(statistics.mean(ordered), last, len(ordered))

    def as_json(self) -> dict[str, float]:
        return {"mean": round(self.mean, 3), "p99": round(self.p99, 3), "tries": self.tries}


def of_metrics(
    boxes: Sequence[Box], hooks: Hooks, tries: int, interval: float
) -> dict[str, Spread]:
    def fault(box: Box) -> datetime:
        box.fault("kv_full=0.99")
        wait_until(lambda: _kv_cache_usage(box) > 0.95, 10, "the fault to show")
        return datetime.now(UTC)

    return _measure(boxes, hooks, tries, interval, (fault, _mend, heard_of_metric))


def of_deaths(boxes: Sequence[Box], hooks: Hooks, tries: int, interval: float) -> dict[str, Spread]:
    def fault(box: Box) -> datetime:
        box.kill_engine()
        box.wait_exit()
        return datetime.fromisoformat(f"{box.state['FinishedAt'][:26]}+00:00")

    return _measure(boxes, hooks, tries, interval, (fault, _start_again, heard_of_target))


def _measure(
    boxes: Sequence[Box],
    hooks: Hooks,
    tries: int,
    interval: float,
    how: tuple[Callable[[Box], datetime], Callable[[Box], None], Heard],
) -> dict[str, Spread]:
    fault, mend, heard = how
    took: dict[str, list[float]] = {name: [] for name in hooks}
    phases = _DICE.sample([(turn + 0.5) / tries * interval for turn in range(tries)], tries)
    for number, phase in enumerate(phases):
        box = boxes[number % len(boxes)]
        time.sleep((phase - time.time()) % interval)
        began = datetime.now(UTC)
        at = fault(box)
        for name, hook in hooks.items():
            told = _wait(partial(heard, hook, box.name, began), f"{name} to tell of {box.name}")
            took[name].append((told - at).total_seconds())
        mend(box)
        for name, hook in hooks.items():
            _wait(partial(_all_clear, hook, box.name), f"{name} to tell its end of {box.name}")
    return {name: Spread.of(values) for name, values in took.items()}


def _wait(condition: Callable[[], Answer | None], what: str) -> Answer:
    found = wait_until(condition, _LONGEST, what)
    assert found is not None
    return found


def _mend(box: Box) -> None:
    box.fault("ok")


def _start_again(box: Box) -> None:
    box.container.start()
    box.wait_ready()


def _kv_cache_usage(box: Box) -> float:
    for line in box.get("/metrics")[1].splitlines():
        if line.startswith("vllm:kv_cache_usage_perc"):
            with suppress(ValueError):
                return float(line.rpartition(" ")[2])
    return 0.0


def heard_of_metric(hook: Hook, target: str, since: datetime) -> datetime | None:
    return _heard(hook, target, since, METRIC)


def heard_of_target(hook: Hook, target: str, since: datetime) -> datetime | None:
    return _heard(hook, target, since, "")


def _heard(hook: Hook, target: str, since: datetime, alert: str) -> datetime | None:
    """When the first message came that says this of this target, under any name if none is given."""
    for at, message in zip(list(hook.times), list(hook.messages), strict=False):
        if at >= since and any(
            found["labels"].get("target") == target
            and found["status"] == "firing"
            and found["labels"]["alertname"].startswith(alert)
            for found in message["alerts"]
        ):
            return at
    return None


def _all_clear(hook: Hook, target: str) -> bool:
    about = [
        message
        for message in list(hook.messages)
        if any(alert["labels"].get("target") == target for alert in message["alerts"])
    ]
    return bool(about) and about[-1]["status"] == "resolved"
