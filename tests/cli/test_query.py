"""`sentinel query`: what promtool would print, and the exit status as the answer."""

import json
from pathlib import Path

import pytest

from sentinel.core.model.errors import Permanent, Transient
from tests.api.fake_house import FakeHouse
from tests.api.library import T0, Library
from tests.cli.conftest import Sentinel

AT = str(T0 + 10.5)


@pytest.fixture
def library(house: FakeHouse) -> Library:
    library = house.library = Library()
    rows = [("up", {"target": "b", "job": "v"}, 1.0), ("up", {"target": 'a"\x1b'}, 0.5)]
    library.fill({T0: rows, T0 + 10: [*rows, ("big", {}, 1e21)]})
    return library


@pytest.mark.parametrize(
    ("args", "printed"),
    [
        (["1 + 1", "--time", AT], f"scalar: 2 @[{AT}]\n"),
        (['"text"'], "text\n"),
        (
            ["up", "--time", AT],
            f'up{{job="v", target="b"}} => 1 @[{AT}]\nup{{target="a\\" "}} => 0.5 @[{AT}]\n',
        ),
        (["sum(up)", "--time", str(T0)], f"{{}} => 1.5 @[{T0}]\n"),
        (["big", "--time", AT], f"big => 1e+21 @[{AT}]\n"),
        (["big[1m]", "--time", AT], f"big =>\n1e+21 @[{T0 + 10}]\n"),
        (
            ["sum(up)", "--start", str(T0), "--end", AT, "--step", "5s"],
            f"{{}} =>\n1.5 @[{T0}]\n1.5 @[{T0 + 5}]\n1.5 @[{T0 + 10}]\n",
        ),
        (
            ["time() - time()", "--start", "2023-11-14T22:13:20Z", "--end", "2023-11-14T22:21:41Z"],
            "{} =>\n" + "".join(f"0 @[{T0 + 2 * k}]\n" for k in range(251)),
        ),
    ],
)
def test_the_result_is_printed_as_promtool_prints_it(
    sentinel: Sentinel, library: Library, args: list[str], printed: str
) -> None:
    result = sentinel("query", *args)

    assert (result.exit_code, result.stdout) == (0, printed)


def test_without_an_end_it_is_until_now(sentinel: Sentinel, library: Library) -> None:
    """The daemon of the tests lives at noon of the first day of 2030."""
    result = sentinel("query", "1", "--start", "2030-01-01T11:59:58Z", "--step", "1", "--json")

    [line] = json.loads(result.stdout)["result"]
    assert [at for at, _ in line["values"]] == [1893499198, 1893499199, 1893499200]


def test_for_a_program_it_is_what_the_api_answers(sentinel: Sentinel, library: Library) -> None:
    result = sentinel("query", "up > 0.7", "--time", AT, "--json")

    assert result.exit_code == 0
    row = {"metric": {"__name__": "up", "job": "v", "target": "b"}, "value": [T0 + 10.5, "1"]}
    assert json.loads(result.stdout) == {"resultType": "vector", "result": [row]}


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["for people", "for programs"])
def test_no_result_is_no_and_says_why(
    sentinel: Sentinel, library: Library, flags: list[str]
) -> None:
    result = sentinel("query", "unkept_total", "--time", AT, *flags)

    assert result.exit_code == 1
    assert "unkept_total is not kept" in result.output


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        (["sum("], 2, "parse error: unclosed left parenthesis"),
        (["up", "--time", "noon"], 2, "cannot parse"),
        (["up", "--start", "noon"], 2, "cannot parse"),
        (["up", "--start", "5", "--end", "4"], 2, "end timestamp must not be before start"),
        (["up", "--start", "5", "--end", "6", "--step", "x"], 2, "valid duration"),
        (["up", "--end", "6"], 2, "--start"),
        (["up", "--start", "5", "--time", "6"], 2, "--start"),
        (["up + on() up", "--time", AT], 1, "many-to-many"),
    ],
)
def test_what_cannot_be_answered_says_why(
    sentinel: Sentinel, library: Library, args: list[str], status: int, says: str
) -> None:
    result = sentinel("query", *args)

    assert (result.exit_code, result.stdout) == (status, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("error", "status"),
    [(Transient("the loop is busy"), 3), (Permanent("too many samples"), 1)],
    ids=["busy", "too much"],
)
def test_a_daemon_that_cannot_answer_now(
    sentinel: Sentinel, library: Library, error: Permanent | Transient, status: int
) -> None:
    library.refuses = error

    result = sentinel("query", "up")

    assert result.exit_code == status
    assert error.message in result.stderr


def test_a_long_line_is_not_broken(sentinel: Sentinel, library: Library, path: Path) -> None:
    library.fill({T0 + 20: [("long", {"x": "y" * 500}, 1.0)]})

    assert len(sentinel("query", "long", "--time", str(T0 + 20)).stdout.splitlines()) == 1
