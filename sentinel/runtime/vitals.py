"""What the series say of each target: the work in hand, and whether anything moves.

Read straight from the columns, and only when a scrape has arrived: this is done for every
target at every slot. Where the series of a target lie is remembered until they change.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sentinel.core.model.labels import NAME
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Series, Source, Store
from sentinel.core.policy.progress import Counted, follow
from sentinel.core.policy.witness import Load
from sentinel.core.promql.histogram import quantile
from sentinel.runtime.power import Powers
from sentinel.runtime.target import Target

_SUMMED = {  # over models, reasons and the like, per engine
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:num_requests_swapped": "waiting",
    "vllm:generation_tokens_total": "generation",
    "vllm:prompt_tokens_total": "prompt",
    "vllm:iteration_tokens_total_count": "iterations",
    "vllm:request_success_total": "success",
    "vllm:num_preemptions_total": "preemptions",
}
_SUCCESS, _COMPLETED = "vllm:request_success_total", ("stop", "length")  # of its reasons
_KV = "vllm:kv_cache_usage_perc"
_SLEEP = "vllm:engine_sleep_state"
_TTFT = "vllm:time_to_first_token_seconds_bucket"
_WINDOW = 300_000  # milliseconds, for the P99
_P99_EVERY = 15_000  # milliseconds: most of the work, and only to be shown

METRICS = frozenset({*_SUMMED, _KV, _SLEEP, _TTFT})
"""The metrics that states are judged by, kept whatever rules read."""


@dataclass(slots=True)
class _Layout:
    """Where the series of one target lie."""

    source: Source
    fits: tuple[int, int]
    summed: list[tuple[str, str, Series]] = field(default_factory=list)  # engine, what
    kv: list[tuple[str, Series]] = field(default_factory=list)
    awake: list[Series] = field(default_factory=list)
    ttft: dict[float, list[Series]] = field(default_factory=dict)  # by upper bound
    model: str | None = None
    p99_at: int = 0


class Vitals:
    def __init__(self, store: Store, powers: Powers | None = None) -> None:
        self._store, self._powers = store, powers
        self._layouts: dict[str, _Layout] = {}

    def read(self, targets: Mapping[str, Target], now: datetime) -> None:
        """Bring what each target's series say up to date, if it has said anything new."""
        for name in self._layouts.keys() - targets.keys():
            del self._layouts[name]
        for target in targets.values():
            seen_at = target.scrape.at if target.scrape is not None and target.scrape.ok else None
            if seen_at is not None and seen_at != target.read_at:
                self._read(target, seen_at)
                target.read_at = seen_at
        if self._powers is not None:
            self._powers.read(targets, now)

    def _read(self, target: Target, at: datetime) -> None:
        layout = self._layout(target.name)
        counted = _counted(layout)
        target.engines = {
            engine: follow(target.engines.get(engine), says, at, own=target.probing)
            for engine, says in counted.items()
        }
        awake = [value for series in layout.awake if (value := series.latest) is not None]
        target.load = Load(
            running=_total(each.running for each in counted.values()),
            waiting=_total(each.waiting for each in counted.values()),
            kv_usage=max(
                (used for each in counted.values() if (used := each.kv_usage) is not None),
                default=None,
            ),
            asleep=not any(awake) if awake else None,
        )
        target.model = layout.model or target.model
        at_ms = millis(at)
        if abs(at_ms - layout.p99_at) >= _P99_EVERY:
            target.ttft_p99 = _p99(layout.ttft, at_ms - _WINDOW)
            layout.p99_at = at_ms

    def _layout(self, name: str) -> _Layout:
        source = self._store.source(f"scrape/{name}", {})
        fits = (source.removals, len(source.series))
        known = self._layouts.get(name)
        if known is None or known.source is not source or known.fits != fits:
            known = self._layouts[name] = _laid_out(source, fits)
        return known


def _laid_out(source: Source, fits: tuple[int, int]) -> _Layout:
    layout = _Layout(source, fits)
    for series in source.series.values():
        labels = dict(series.labels)
        name, engine = labels[NAME], labels.get("engine", "")
        if what := _SUMMED.get(name):
            layout.summed.append((engine, what, series))
            layout.model = labels.get("model_name") or layout.model
            if name == _SUCCESS and labels.get("finished_reason") in _COMPLETED:
                layout.summed.append((engine, "completed", series))
        elif name == _KV:
            layout.kv.append((engine, series))
        elif name == _SLEEP and labels.get("sleep_state") == "awake":
            layout.awake.append(series)
        elif name == _TTFT:
            layout.ttft.setdefault(float(labels.get("le", "nan")), []).append(series)
    return layout


def _counted(layout: _Layout) -> dict[str, Counted]:
    found: dict[str, dict[str, float]] = {}
    for engine, what, series in layout.summed:
        if (value := series.latest) is not None:
            row = found.setdefault(engine, {})
            row[what] = row.get(what, 0.0) + value
    for engine, series in layout.kv:
        if (value := series.latest) is not None:
            row = found.setdefault(engine, {})
            row["kv_usage"] = max(row.get("kv_usage", 0.0), value)
    return {engine: Counted(**row) for engine, row in found.items()}


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _p99(buckets: Mapping[float, Sequence[Series]], since_ms: int) -> float | None:
    """Of the time to the first token, as `histogram_quantile` estimates it."""
    bounds = sorted(buckets)
    if not bounds or not _rise(buckets[bounds[-1]], since_ms):
        return None
    found = quantile(0.99, bounds, [_rise(buckets[bound], since_ms) for bound in bounds])
    return found if found == found else None  # noqa: PLR0124 - not a number


def _rise(several: Sequence[Series], since_ms: int) -> float:
    """How much counters have grown, resets apart."""
    grown = 0.0
    for series in several:
        values = series.values
        begin = max(bisect_left(series.times, since_ms, series.first) - series.first, 0)
        if len(values) - begin < 2 or series.latest is None:
            continue
        grown += values[-1] - values[begin]
        grown += sum(values[drop - 1] for drop in series.drops(begin + 1, len(values)))
    return grown
