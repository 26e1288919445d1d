"""Prometheus's own cases, and Debian's promtool as an oracle where it is installed.

More cases in promtool's format can be run by naming a folder in SENTINEL_PROMQL_CASES.
"""

import os
from pathlib import Path

import pytest

from tests.core.promql.promtool import Case, agrees, cases_in

HERE = Path(__file__).parent / "cases"
ELSEWHERE = os.environ.get("SENTINEL_PROMQL_CASES", "")


def cases(folder: Path) -> list[object]:
    return [
        pytest.param(case, id=f"{case.name} {case.expr[:60]}")
        for path in sorted(folder.glob("*.yaml"))
        for case in cases_in(path)
    ]


@pytest.mark.parametrize("case", cases(HERE))
def test_prometheus_gives_the_same_answer(case: Case) -> None:
    answer = case.answer()

    assert agrees(answer, case.expected), f"{answer} is not {case.expected}"


@pytest.mark.skipif(not ELSEWHERE, reason="SENTINEL_PROMQL_CASES names no folder")
@pytest.mark.parametrize("case", cases(Path(ELSEWHERE)) if ELSEWHERE else [])
def test_prometheus_gives_the_same_answer_elsewhere(case: Case) -> None:
    answer = case.answer()

    assert agrees(answer, case.expected), f"{answer} is not {case.expected}"


def test_the_cases_are_not_empty_talk() -> None:
    """Results that are a little off, or short of an element, would not pass."""
    judged = [case for path in HERE.glob("*.yaml") for case in cases_in(path)]
    off = short = 0
    for case in judged:
        answer = case.answer()
        off += agrees({key: value * 1.01 for key, value in answer.items()}, case.expected)
        short += agrees(dict(list(answer.items())[1:]), case.expected)

    assert len(judged) > 40
    assert off < len(judged) / 3
    assert short < len(judged) / 3
