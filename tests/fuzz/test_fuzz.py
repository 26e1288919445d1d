"""The fuzzers find nothing in a few seconds; `make fuzz` gives them a minute and a new seed."""

import sys

import pytest

from tests.fuzz.campaign import FUZZERS, Fuzzer, Plan, dice_of, run

SEED = 20300107


@pytest.mark.slow
@pytest.mark.parametrize("name", FUZZERS)
def test_nothing_is_found(name: str) -> None:
    assert run(Plan(SEED, [name], seconds=6)) == 0


def _never(_: object) -> None:
    raise AssertionError("a fault")


def _dies(_: object) -> None:
    sys.stdout.flush()
    __import__("ctypes").string_at(0)


@pytest.mark.parametrize(
    ("check", "says"),
    [
        pytest.param(_never, "AssertionError: a fault", id="an error"),
        pytest.param(_dies, "the process ended with -11", id="the end of the process"),
    ],
)
def test_a_finding_is_told_with_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    check: object,
    says: str,
) -> None:
    monkeypatch.setitem(FUZZERS, "planted", Fuzzer(lambda dice: dice.random(), check))  # type: ignore[arg-type]

    assert run(Plan(7, ["planted"], seconds=0)) == 1

    told = capfd.readouterr().err
    assert says in told
    assert f"input: {dice_of(7, 'planted', 0).random()}" in told
    assert "python -m tests.fuzz 0 --seed 7 --only planted --case 0" in told
