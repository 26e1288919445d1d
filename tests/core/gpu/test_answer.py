from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.gpu import answer
from sentinel.core.gpu.reading import GpuProcess
from tests.gpu.driver import counters


@pytest.mark.parametrize(
    ("said", "number"),
    [
        (0, 0.0),
        (42, 42.0),
        (1.5, 1.5),
        (-1, None),
        (0xFFFFFFFF, None),
        (0xFFFFFFFFFFFFFFFF, None),
        (float("nan"), None),
        (float("inf"), None),
        (True, None),
        ("42", None),
        (None, None),
    ],
    ids=repr,
)
def test_what_is_a_number(said: object, number: float | None) -> None:
    assert answer.number(said) == number


def test_a_margin_may_be_below_0() -> None:
    assert answer.signed(-8) == -8.0
    assert answer.signed(-(2**31)) is None
    assert answer.signed(False) is None


@pytest.mark.parametrize(("said", "ratio"), [(0, 0.0), (100, 1.0), (101, None), (None, None)])
def test_a_share_is_between_0_and_1(said: object, ratio: float | None) -> None:
    assert answer.ratio(said) == ratio


def test_only_fields_that_were_answered_count() -> None:
    assert answer.fields(counters(f270=5, f230=0)) == {270: 5, 230: 0}


def test_a_field_that_is_not_available_has_no_value() -> None:
    assert answer.fields(counters(f270=0xFFFFFFFFFFFFFFFF)) == {}


def test_each_kind_of_value_has_its_own_part() -> None:
    parts = SimpleNamespace(dVal=1.9, uiVal=2, ulVal=3, ullVal=4, sllVal=5, siVal=6, usVal=7)
    said = [
        SimpleNamespace(fieldId=kind, nvmlReturn=0, valueType=kind, value=parts)
        for kind in range(9)
    ]

    assert answer.fields(said) == {0: 1, 1: 2, 2: 3, 3: 4, 4: 5, 5: 6, 6: 7}


def test_processes_that_compute_must_be_told_for_any_to_be() -> None:
    drawing = [SimpleNamespace(pid=1, usedGpuMemory=5)]

    assert answer.processes(None, None, drawing) is None
    assert answer.processes([], None, drawing) == (GpuProcess(pid=1, used=5),)
    assert answer.processes([], None, None) == ()


def test_a_process_that_holds_it_is_not_said_how_much() -> None:
    said = [SimpleNamespace(pid=1, usedGpuMemory=0xFFFFFFFFFFFFFFFF)]

    assert answer.processes(said, []) == (GpuProcess(pid=1),)


@pytest.mark.parametrize(("said", "version"), [(13000, "13.0"), (12080, "12.8"), (None, None)])
def test_the_version_of_cuda(said: object, version: str | None) -> None:
    assert answer.cuda_version(said) == version


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner, max_size=4) | st.builds(SimpleNamespace, pid=inner),
        max_leaves=6,
    )
)
def test_no_answer_breaks_anything(said: object) -> None:
    for part in (answer.number, answer.signed, answer.whole, answer.ratio, answer.flag):
        part(said)
    answer.text(said)
    answer.item(said, 1)
    answer.processes(said, said)
    answer.fields(said)
