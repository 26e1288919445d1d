"""Killed at any instant: the snapshot on disk is always whole, and windows never run backwards.

A life appends looks, evaluates rules over them and saves; it ends by SIGKILL. The next one
must find at least what the last one had said it had saved, and go on right after it.
"""

import os
import random
import select
import signal
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from sentinel.adapters.clock import MachineClock
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.alerting.rule import AlertRule, RecordingRule, RuleGroup
from sentinel.core.model.packed import pack, unpack
from sentinel.core.model.series import Store
from sentinel.core.promql import compile_expression
from sentinel.runtime.remember import SeriesFile

EVERY_MS = 5_000
RETENTION_MS = 600_000
LABELS = {"target": "t"}
SOURCE = "target t"
LIVES = 20


@dataclass(frozen=True, slots=True)
class Lives:
    """How long each life lasts after its first word, in seconds."""

    lasting: tuple[float, ...]


def make(dice: random.Random) -> Lives:
    return Lives(tuple(dice.uniform(0, 0.04) for _ in range(LIVES)))


def check(lives: Lives) -> None:
    with TemporaryDirectory(prefix="sentinel-kills-") as folder:
        path = Path(folder) / "series.snapshot"
        saved = found = 0
        for lasts in lives.lasting:
            said = _live(path, lasts)
            assert said, "a life said nothing"
            assert said[0] >= saved, f"it began at {said[0]}, though {saved} was saved"
            saved = max(saved, *said)
            newest = _newest(path)
            assert newest >= max(saved, found), f"{newest} on disk, {saved} said, {found} before"
            found = newest
        assert found > LIVES, "no life got anywhere"


def _newest(path: Path) -> int:
    """The last look of the snapshot, in which there is no gap and nothing is out of order."""
    if not path.exists():
        return 0
    store = Store(retention_ms=RETENTION_MS)
    unpack(path.read_bytes(), store)
    (series,) = store.named("looks")
    times = series.times[series.first : series.first + len(series.values)]
    assert all(after - before == EVERY_MS for before, after in pairwise(times))
    assert all(after - before == 1 for before, after in pairwise(series.values))
    assert series.values[-1] * EVERY_MS == times[-1]
    (recorded,) = store.named("recorded")
    assert recorded.values[-1] == series.values[-1]
    return int(series.values[-1])


def _live(path: Path, lasts: float) -> list[int]:
    """What a life says until it is killed: where it began, then what it has saved."""
    heard, says = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(heard)
        _life(path, says)
    os.close(says)
    try:
        select.select([heard], [], [], 10)
        time.sleep(lasts)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    with os.fdopen(heard) as words:
        return [int(word) for word in words.read().split("\n")[:-1]]


def _life(path: Path, says: int) -> NoReturn:
    try:
        file = SeriesFile(path, MachineClock())
        store = Store(retention_ms=RETENTION_MS)
        file.load(store)
        begun = [int(series.values[-1]) for series in store.named("looks")]
        look = max(begun, default=0)
        os.write(says, b"%d\n" % look)
        evaluator = Evaluator([_group()], store)
        while True:
            look += 1
            _tick(store, evaluator, look)
            file.write(pack(store))
            os.write(says, b"%d\n" % look)
    except BaseException as error:  # it must not return into what it was forked from
        print(f"a life ended by itself: {error!r}", file=sys.stderr, flush=True)
        os._exit(1)


def _tick(store: Store, evaluator: Evaluator, look: int) -> None:
    at_ms = look * EVERY_MS
    source = store.source(SOURCE, LABELS)
    source.put([("looks", {}, look), *(("x", {"n": str(n)}, look) for n in range(50))], at_ms)
    failures = evaluator.evaluate(
        datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms)
    ).failures
    assert not failures, failures
    store.trim(at_ms)


def _group() -> RuleGroup:
    return RuleGroup(
        name="g",
        rules=(
            RecordingRule(name="recorded", expr=compile_expression("max(looks)"), group="g"),
            AlertRule(name="A", expr=compile_expression("sum(rate(x[1m])) > 0"), group="g"),
        ),
    )
