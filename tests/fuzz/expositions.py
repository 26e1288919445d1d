"""Exposition text: a whole look is recorded as it was meant, or `Permanent` and nothing is.

Bodies come one after the other from one target, since what is remembered of the lines of
the last body decides how the next one is read. What is remembered must stay in proportion.
"""

import math
import random
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import NAME, Labels, labels_of
from sentinel.core.model.series import Source, Store
from sentinel.runtime.ingest import SPARE_KEYS, Exposition
from tests.fuzz.mutation import mutated

RETENTION_MS = 60_000
EVERY_MS = 5_000
MAX_SAMPLES = 200
LOOKS = 80  # of which some are trimmed

_NAMES = ("a", "b_total", "vllm:num_requests_running", "vllm:gpu_cache_usage_perc",
          "vllm:kv_cache_usage_perc", "lat_bucket", "_x", ":y")  # fmt: skip
_LABELS = ("job", "le", "model_name", "target", "exported_target", "_", "quantile")
_VALUES = ("", "a", "0.5", "+Inf", 'say "hi"', "back\\slash", "new\nline", "a b", "é中", "}", "{",
           "x,y=z", "#", "# {", "\t", "a\\n", " 1 ")  # fmt: skip
_NUMBERS = ("0", "1", "-1.5", "1e3", "NaN", "+Inf", "-Inf", "0.0", "1e-320", "123456789012", "nan",
            "1E5", ".5", "5.", "inf", "-0")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Body:
    raw: bytes
    meant: dict[Labels, float] | None = field(default=None, compare=False)  # None: damaged


@dataclass(frozen=True, slots=True)
class Scrapes:
    """What one target says over time; None is a scrape that failed."""

    bodies: list[Body | None]
    keep: frozenset[str] | None
    labels: dict[str, str]


def make(dice: random.Random) -> Scrapes:
    lines = [_sample(dice) for _ in range(dice.randrange(1, 12))]
    bodies: list[Body | None] = []
    for _ in range(dice.randrange(1, 12)):
        if dice.random() < 0.05:
            bodies.append(None)
            continue
        if dice.random() < 0.4:
            lines[dice.randrange(len(lines))] = _sample(dice)
        text, meant = _body([(*one[:2], dice.choice(_NUMBERS)) for one in lines], dice)
        raw = text.encode()
        if dice.random() < 0.02:
            raw *= dice.choice((10, 1000))
        is_damaged = dice.random() < 0.4 or len(raw) > len(text.encode())
        bodies.append(Body(mutated(raw, dice)) if is_damaged else Body(raw, meant))
    keep = frozenset(dice.sample(_NAMES, 5)) if dice.random() < 0.3 else None
    return Scrapes(bodies, keep, {"target": "t"} if dice.random() < 0.5 else {})


Written = tuple[str, dict[str, str], str]


def _sample(dice: random.Random) -> Written:
    labels = {name: dice.choice(_VALUES) for name in dice.sample(_LABELS, dice.randrange(4))}
    return dice.choice(_NAMES), labels, "0"


def _body(samples: list[Written], dice: random.Random) -> tuple[str, dict[Labels, float]]:
    text, meant = "", dict[Labels, float]()
    for name, labels, number in samples:
        if dice.random() < 0.2:
            text += dice.choice(
                ("# TYPE a gauge\n", "# HELP a b\n", "#\n", "\n", "  \n", "# EOF\n")
            )
        text += _line(name, labels, number, dice) + "\n"
        meant.setdefault(labels_of({**labels, NAME: name}), float(number))
    return text, meant


def _line(name: str, labels: dict[str, str], number: str, dice: random.Random) -> str:
    space = dice.choice(("", "", "", " "))
    listed = f",{space}".join(
        f'{label}{space}={space}"{_escaped(value)}"' for label, value in labels.items()
    )
    if listed and dice.random() < 0.2:
        listed += ","
    braces = f"{space}{{{space}{listed}{space}}}" if listed or dice.random() < 0.1 else ""
    return f"{name}{braces}{dice.choice((' ', ' ', '  ', chr(9)))}{number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def check(scrapes: Scrapes) -> None:
    keep = scrapes.keep
    store = Store(retention_ms=RETENTION_MS, keep=None if keep is None else keep.__contains__)
    source = store.source("t", scrapes.labels)
    exposition = Exposition(source, max_samples=MAX_SAMPLES)
    for at_ms in range(0, EVERY_MS * LOOKS, EVERY_MS):
        body = scrapes.bodies[at_ms // EVERY_MS % len(scrapes.bodies)]
        before = _recorded(source)
        if body is None:
            exposition.missed(at_ms)
            continue
        try:
            taken = exposition.take(body.raw, at_ms)
        except Permanent:
            assert body.meant is None, f"refused {body.raw!r}"
            assert _recorded(source) == before, "refused, and recorded all the same"
            exposition.missed(at_ms)
            taken = 0
        if body.meant is not None:
            _check_body(body, body.meant, scrapes, source, at_ms)
        store.trim(at_ms)
        _check_bounds(source, exposition, store, at_ms, taken)


def _recorded(source: Source) -> dict[Labels, int]:
    """Series that hold samples: an emptied one may be let go of at any time."""
    return {labels: len(s.values) for labels, s in source.series.items() if s.values}


def _check_body(
    body: Body, meant: dict[Labels, float], scrapes: Scrapes, source: Source, at_ms: int
) -> None:
    found = {
        labels: series.values[-1]
        for labels, series in source.series.items()
        if series.values and _ends_at(source, labels, at_ms)
    }
    keep = scrapes.keep
    kept = {
        labels: value
        for labels, value in meant.items()
        if keep is None or dict(labels)[NAME] in keep
    }
    if not scrapes.labels:
        for labels, value in kept.items():
            if _is_ahead(source, labels, at_ms):
                continue
            assert labels in found, f"{labels} is missing"
            assert _same(found[labels], value), f"{labels}: {found[labels]} is not {value}"
        extra = {labels for labels in found if labels not in kept}
        assert all("cache_usage_perc" in dict(labels)[NAME] for labels in extra), extra  # renamed
    _check_oracle(body, meant)


def _check_oracle(body: Body, meant: dict[Labels, float]) -> None:
    """prometheus_client reads the same; where it cannot, the grammar above is too free."""
    try:
        theirs: dict[Labels, float] = {}
        for family in text_string_to_metric_families(body.raw.decode()):
            for sample in family.samples:
                theirs.setdefault(labels_of({**sample.labels, NAME: sample.name}), sample.value)
    except ValueError:
        return
    assert all(_same(theirs[labels], value) for labels, value in meant.items() if labels in theirs)


def _ends_at(source: Source, labels: Labels, at_ms: int) -> bool:
    series = source.series[labels]
    if series.own is not None:
        return bool(series.own) and series.own[-1] == at_ms
    return source.times[-1] == at_ms and series.first + len(series.values) == len(source.times)


def _is_ahead(source: Source, labels: Labels, at_ms: int) -> bool:
    """A damaged line gave it a time that is still to come; until then it stands."""
    own = source.series[labels].own
    return own is not None and len(own) > 0 and own[-1] > at_ms


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _check_bounds(
    source: Source, exposition: Exposition, store: Store, at_ms: int, taken: int
) -> None:
    assert list(source.times) == sorted(set(source.times))
    looks = RETENTION_MS // EVERY_MS + 64
    assert len(source.times) <= looks, f"{len(source.times)} looks are kept"
    assert len(exposition._slots) <= 2 * MAX_SAMPLES + SPARE_KEYS + taken
    for series in source.series.values():
        assert series.first >= 0
        assert series.own is not None or series.first + len(series.values) <= len(source.times)
        assert series.own is None or len(series.own) == len(series.values)
    assert sum(len(store.named(name)) for name in store.names()) == len(source.series)
    assert len(source.series) <= 2 * MAX_SAMPLES * looks, at_ms
