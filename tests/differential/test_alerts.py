"""Random rules over random series: the alerts of Prometheus 2.42, pending and firing, each step.

Its labels, since when they are active, what was recorded, and which rule fails when.
"""

import random
from pathlib import Path

import pytest

from tests.differential.alerts import ASKED, our_story, promtool_story, write_trial
from tests.differential.oracle import agree, needs_promtool

TRIALS = 40


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_alerts_are_in_the_same_state_at_every_step(tmp_path: Path, seed: int) -> None:
    seen = broken = 0
    for number in range(TRIALS):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = write_trial(random.Random(seed * 1000 + number), folder)
        mine, theirs = our_story(file), promtool_story(file)

        assert mine.broken == theirs.broken, file
        broken += bool(theirs.broken)
        for place, (one, other) in enumerate(zip(mine.answers, theirs.answers, strict=True)):
            step, which = divmod(place, len(ASKED))
            assert agree(one, other), f"{file}: {ASKED[which]} at {step}m: {one}, not {other}"
            seen += len(other or ())

    assert seen > 1000
    assert 0 < broken < TRIALS * 0.6, "some rules fail, most do not"
