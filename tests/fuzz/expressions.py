"""Expressions: whatever the text, there is an answer or one of the two errors, and soon.

Also held: an answer has no label set twice, a compiled expression answers as a fresh one does
whatever it was asked before, and a range query says what the instants say.
"""

import random
import time
from dataclasses import dataclass
from functools import lru_cache

from sentinel.core.model.series import Store
from sentinel.core.promql import (
    EvaluationError,
    Expression,
    ExpressionError,
    Sample,
    compile_expression,
    range_query,
)
from sentinel.core.promql.evaluate import Compat
from tests.fuzz.author import Author, Vocabulary
from tests.fuzz.mutation import mutated_text

WORDS = Vocabulary(
    metrics=("m", "g", "c", "lat_bucket", "none"),
    labels=("job", "i", "le", "zone"),
    values=("a", "b", "", "0", "1", "0.5", "+Inf"),
    histograms=("lat_bucket",),
)
SLOW_S = 1.0  # of the thread's own time: another process on the machine is no fault
STEP_MS = 15_000
LAST_MS = 600_000
INSTANTS = (0, 90_000, 300_000, 303_333, LAST_MS, LAST_MS + 200_000, -5, 10**15, -(10**15))


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    compat: Compat
    store: int  # the seed of the series it is asked of
    at: int


def make(dice: random.Random) -> Question:
    kind = dice.randrange(10)
    text = Author(dice, WORDS, wild=kind > 2).write(dice.randrange(5))
    if kind in (5, 6, 7):
        text = mutated_text(text, dice)
    elif kind == 8:
        text = _nested(dice, text)
    elif kind == 9 and dice.random() < 0.1:
        text = _huge(dice, text)
    return Question(text, dice.choice((2, 3)), dice.randrange(6), dice.choice(INSTANTS))


def _nested(dice: random.Random, text: str) -> str:
    before, after = dice.choice(
        (("(", ")"), ("-", ""), ("abs(", ")"), ("sum(", ")"), ("max_over_time(", "[5m:1m])"),
         ("1 + (", ")"), ("m and (", ")"), ("{", "}"), ("[", "]"), ("- (", ")"), ("m + ", ""),
         ("2 ^ ", ""), ("sum_over_time(", "[1h:1s])"), ("vector(scalar(", "))"))
    )  # fmt: skip
    times = dice.choice((2, 3, 10, 50, 150, 199, 201, 900, 1900, 20_000))
    return before * times + text + after * dice.choice((times, times, 0))


def _huge(dice: random.Random, text: str) -> str:
    length = dice.choice((10_000, 10_300, 1_000_000))
    filler = dice.choice((text or "m", " ", "m or ", "#", '"', "(", "a" * 50, "1+", "\n", "\u00e9"))
    return (filler * (length // len(filler) + 1))[:length]


@lru_cache(maxsize=16)
def store_of(seed: int) -> Store:
    """Series with gaps, resets, stale ends, NaN and infinities, from a few sources."""
    dice = random.Random(seed)
    store = Store(retention_ms=1 << 50)
    sources = [store.source(str(n), {"zone": "z"} if n else {}) for n in range(3)]
    series = [
        (name, {"job": job, "i": i}) for name in "mgc" for job in "ab" for i in ("0", "1", "")
    ] + [("lat_bucket", {"job": job, "le": le}) for job in "ab" for le in ("0.5", "1", "+Inf")]
    values = dict.fromkeys(range(len(series)), 0.0)
    for at in range(0, LAST_MS + 1, STEP_MS):
        for source in sources:
            if dice.random() < 0.05:
                source.missed(at)
                continue
            present = [n for n in values if dice.random() < 0.9]
            for n in present:
                values[n] = _moved(values[n], series[n][0], dice)
            source.put([(*series[n], values[n]) for n in present], at)
    return store


def _moved(value: float, name: str, dice: random.Random) -> float:
    if name == "g":
        odd = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e308, 5e-324)
        return dice.choice(odd) if dice.random() < 0.1 else dice.uniform(-10, 10)
    return 0.0 if dice.random() < 0.03 else value + dice.choice((0, 1, 2.5))


def check(question: Question) -> None:
    expression = _compiled(question)
    if expression is None:
        return
    assert expression.reach_ms >= 0
    assert expression.metric_names is not None
    store = store_of(question.store)
    began = time.thread_time()
    answer = _answer(expression, store, question.at)
    took = time.thread_time() - began
    assert took < SLOW_S, f"one evaluation took {took:.2f} s"
    if answer is None:
        return
    _check_sound(answer)
    for other in (0, 2, 5):
        _answer(expression, store_of(other), 300_000)
    again = _answer(expression, store, question.at)
    assert repr(again) == repr(answer), f"asked again: {again}, first {answer}"
    _check_range(question, expression, store)


def _compiled(question: Question) -> Expression | None:
    try:
        return compile_expression(question.text, compat=question.compat)
    except ExpressionError:
        return None


def _answer(expression: Expression, store: Store, at: int) -> object:
    try:
        return expression.at(store, at)
    except EvaluationError:
        return None


def _check_sound(answer: object) -> None:
    if isinstance(answer, str | float):
        return
    assert isinstance(answer, list)
    labels = [one.labels for one in answer]
    assert len(set(labels)) == len(labels), f"a label set twice in {answer}"
    for each in labels:
        assert list(each) == sorted(dict(each).items()), f"no label set: {each}"
        assert all(value for _, value in each), f"an empty label in {each}"


def _check_range(question: Question, expression: Expression, store: Store) -> None:
    if expression.type not in ("vector", "scalar"):
        return
    start, end, step = 200_000, 320_000, 40_000
    try:
        found = range_query(expression, store, start, end, step)
    except EvaluationError:
        return
    fresh = compile_expression(question.text, compat=question.compat)
    instants: dict[object, list[tuple[int, float]]] = {}
    for at in range(start, end + 1, step):
        value = fresh.within(store, at, (start, end, step))
        samples = [Sample((), value)] if isinstance(value, float) else value
        assert isinstance(samples, list)
        for labels, number in samples:
            assert isinstance(number, float)
            instants.setdefault(labels, []).append((at, number))
    assert repr(sorted((r.labels, list(r.points)) for r in found)) == repr(sorted(instants.items()))
