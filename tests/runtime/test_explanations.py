"""Explanations are made when somebody asks, on the thread that may read what they need."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from sentinel.runtime.explanations import Explanations, Json
from tests.runtime.house import Daemon

Calls = SimpleQueue[Callable[[], None]]


def ask_from_afar(explanations: Explanations, name: str, calls: Calls) -> Json | BaseException:
    """As a thread of the API does, while this thread is the loop."""
    box: list[Json | BaseException] = []

    def ask() -> None:
        try:
            box.append(explanations[name])
        except RuntimeError as error:
            box.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    calls.get(timeout=5)()
    thread.join(5)
    return box[0]


def test_nothing_is_made_before_it_is_asked_for() -> None:
    asked: list[str] = []

    def build(name: str) -> Json:
        asked.append(name)
        return {"name": name}

    explanations = Explanations(["a", "b"], build, lambda _call: None)
    assert (list(explanations), len(explanations), "a" in explanations) == (["a", "b"], 2, True)
    assert asked == []
    assert explanations["a"] == {"name": "a"}
    assert asked == ["a"]


def test_another_thread_gets_what_this_one_makes() -> None:
    calls: Calls = SimpleQueue()
    made_on: list[int] = []

    def build(name: str) -> Json:
        made_on.append(threading.get_ident())
        return {"name": name}

    explanations = Explanations(["a"], build, calls.put)

    assert ask_from_afar(explanations, "a", calls) == {"name": "a"}
    assert made_on == [threading.get_ident()]


def test_what_goes_wrong_reaches_who_asked() -> None:
    calls: Calls = SimpleQueue()

    def build(_name: str) -> Json:
        raise RuntimeError("no")

    found = ask_from_afar(Explanations(["a"], build, calls.put), "a", calls)

    assert isinstance(found, RuntimeError)


def test_an_unknown_name_bothers_nobody() -> None:
    def never(_: object) -> Any:
        raise AssertionError

    with pytest.raises(KeyError):
        Explanations(["a"], never, never)["b"]


def test_each_witness_says_what_and_when(house: Daemon) -> None:
    assert house.shown is not None
    found = house.shown.as_explanation("t1-a", house.clock.now())

    assert found is not None
    told = {one["name"]: one for one in found["witnesses"]}
    assert {"container", "scrape", "health", "progress"} <= told.keys()
    for one in told.values():
        assert one["says"]
        assert one["at"]
        assert one["age_seconds"] >= 0
