"""Random expressions over random series: the answers of Prometheus 2.42, to nine digits."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.differential.oracle import (
    Question,
    Trial,
    agree,
    is_changed,
    needs_promtool,
    our_answer,
    promtool_answers,
    vector_in,
)
from tests.differential.series import WORDS, random_series
from tests.fuzz.author import Author

INSTANTS_MS = (60_000, 120_000, 300_000, 303_333, 487_000, 600_000, 900_000)


def trials(seed: int, count: int, questions: int) -> Iterator[Trial]:
    dice = random.Random(seed)
    for _ in range(count):
        author = Author(dice, WORDS)
        yield Trial(
            random_series(dice),
            [
                Question(author.write(dice.randint(1, 5)), dice.choice(INSTANTS_MS))
                for _ in range(questions)
            ],
        )


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("seed", [20300111, 20300112, 20300113])
def test_prometheus_2_gives_the_same_answers(tmp_path: Path, seed: int) -> None:
    asked = list(trials(seed, count=100, questions=12))
    different, changed, answered = [], 0, 0
    for trial, answers in zip(asked, promtool_answers(asked, tmp_path), strict=True):
        store = trial.store()
        for question, got in zip(trial.questions, answers, strict=True):
            mine, theirs = our_answer(store, question), vector_in(got)
            answered += bool(theirs)
            if agree(mine, theirs):
                continue
            if is_changed(question.expr):
                changed += 1
            else:
                different.append(f"{question}\n   mine {mine}\n   promtool {got}")

    assert not different, "\n".join([f"{len(different)} differ, seed {seed}", *different[:20]])
    assert answered > 500, "most expressions have an answer"
    assert changed < 30, "the changes of Prometheus 3 are rare"
