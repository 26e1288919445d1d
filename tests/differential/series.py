"""Series at random, in promtool's notation: what real targets do, and what breaks engines."""

import random

from tests.fuzz.author import Vocabulary

COUNT = 40  # samples of each series
WORDS = Vocabulary(
    metrics=("m", "g", "c", "n", "m", "g", "c", "n", "lat_bucket", "none"),
    labels=("job", "i", "zone", "le"),
    values=("a", "b", "", "0", "1", "0.5", "x y"),
    histograms=("lat_bucket", "wait_bucket"),
)


def random_series(dice: random.Random) -> dict[str, str]:
    found = {}
    for name, notation in (("m", _any), ("g", _gauge), ("c", _counter), ("n", _counter)):
        for job in dice.sample(("a", "b", "x y"), dice.randint(1, 2)):
            for labels in dice.sample(
                (f'job="{job}"', f'job="{job}", i="0"', f'job="{job}", i="1"',
                 f'job="{job}", i="1", zone="a"', f'job="{job}", zone="b"'), dice.randint(1, 3)
            ):  # fmt: skip
                found[f"{name}{{{labels}}}"] = notation(dice)
    for job in ("a", "b"):
        found |= _histogram(dice, "lat", job)
    return found | _histogram(dice, "wait", dice.choice(("a", "c")))


def _histogram(dice: random.Random, name: str, job: str) -> dict[str, str]:
    bounds = dice.sample(("0.1", "0.5", "1", "2.5", "10"), dice.randint(1, 4))
    counts = {le: _counter(dice) for le in bounds}
    if dice.random() < 0.9:
        counts["+Inf"] = _counter(dice)
    if dice.random() < 0.7:  # as it should be: each holds what those below it hold
        step = 0
        for le in sorted(counts, key=float):
            step += dice.randint(0, 3)
            counts[le] = f"{step}+{step}x{COUNT}"
    return {f'{name}_bucket{{job="{job}", le="{le}"}}': values for le, values in counts.items()}


def _any(dice: random.Random) -> str:
    return dice.choice((_gauge, _counter, _sparse))(dice)


def _gauge(dice: random.Random) -> str:
    return " ".join(
        dice.choices(
            [f"{dice.uniform(-20, 20):.3f}", str(dice.randint(-3, 9)), "_", "stale", "NaN", "Inf",
             "-Inf", "0", "1e17"],
            [30, 40, 6, 3, 2, 1, 1, 6, 0.5],
        )[0]
        for _ in range(COUNT)
    )  # fmt: skip


def _counter(dice: random.Random) -> str:
    value, items = float(dice.randint(0, 50)), []
    for _ in range(COUNT):
        value = 0.0 if dice.random() < 0.05 else value + dice.choice((0, 1, 1, 2.5, 7))
        items.append(
            "_" if dice.random() < 0.08 else "stale" if dice.random() < 0.02 else f"{value:g}"
        )
    return " ".join(items)


def _sparse(dice: random.Random) -> str:
    return " ".join(
        [f"_x{dice.randint(1, 20)}", str(dice.randint(0, 9)), f"_x{dice.randint(1, 30)}",
         f"{dice.randint(0, 9)}x{dice.randint(0, 5)}", dice.choice(("stale", "_", "3"))]
    )  # fmt: skip
