"""Copies for the API, made by a real loop between its turns."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sentinel.core.model.errors import Permanent, Transient
from sentinel.core.model.intent import Mode
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.promql import compile_expression
from sentinel.runtime import queries
from sentinel.runtime.queries import Queries
from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan

RUNNING = "vllm:num_requests_running"
ENDLESS = 10.0


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    clock = FakeClock()
    docker = FakeDocker(clock)
    docker.add("t1-a")
    docker.add("t1-b")
    made = Daemon(tmp_path, docker, clock, plan=plan(Mode.WATCH))
    made.run(5)
    return made


@pytest.fixture
def asking(daemon: Daemon) -> Iterator[Queries]:
    with asked(daemon) as made:
        yield made


@contextmanager
def asked(daemon: Daemon) -> Iterator[Queries]:
    """Questions are answered by a thread that only takes what has arrived."""
    stop = threading.Event()

    def take() -> None:
        while not stop.is_set():
            for call, _ in daemon.loop.parts.inbox.wait(0.02):
                call()

    def shown() -> object:
        assert daemon.shown is not None
        return daemon.shown

    loop = threading.Thread(target=take)
    loop.start()
    yield Queries(daemon.loop, shown)  # type: ignore[arg-type]
    stop.set()
    loop.join(5)


def test_a_cut_is_a_copy_of_what_was_asked_for(daemon: Daemon, asking: Queries) -> None:
    store, now = daemon.loop.parts.store, millis(daemon.clock.now())

    cut = asking.cut([RUNNING, "nothing"], now - 2_000, ENDLESS)

    assert list(cut.names()) == [RUNNING]
    assert {s.labels for s in cut.named(RUNNING)} == {s.labels for s in store.named(RUNNING)}
    assert all(s.times[s.first] >= now - 2_000 for s in cut.named(RUNNING))
    expression = compile_expression(f"count({RUNNING})")
    assert expression.at(cut, now) == expression.at(store, now)
    store.drop("scrape/t1-a")
    assert expression.at(cut, now + 500) != expression.at(store, now + 500)


def test_everything_can_be_cut(daemon: Daemon, asking: Queries) -> None:
    assert set(asking.cut(None, 0, ENDLESS).names()) == set(daemon.loop.parts.store.names())


def test_a_source_is_copied_within_one_moment(
    daemon: Daemon, asking: Queries, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However short a moment is, the columns of a source belong together."""
    monkeypatch.setattr(queries, "MOMENT", -1.0)
    store = daemon.loop.parts.store

    cut = asking.cut(None, 0, ENDLESS)

    def points(of: Store) -> dict[object, list[str]]:
        return {
            (s.source.name, s.labels): [*map(repr, zip(s.times[s.first :], s.values, strict=False))]
            for s in of.every()
        }

    assert points(cut) == points(store)
    assert len(asking.known(None, ENDLESS)) == sum(1 for _ in store.every())


def test_too_much_is_refused(asking: Queries, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "MOST_SAMPLES", 10)

    with pytest.raises(Permanent, match="too many samples"):
        asking.cut(None, 0, ENDLESS)


def test_what_is_known_spans_its_samples(daemon: Daemon, asking: Queries) -> None:
    now = millis(daemon.clock.now())

    found = asking.known([RUNNING], ENDLESS)

    assert len(found) == 2
    assert {dict(each.labels)["target"] for each in found} == {"t1-a", "t1-b"}
    assert all(now - 5_000 <= each.first_ms < each.last_ms <= now for each in found)


def test_a_loop_that_does_not_answer_is_not_waited_for(daemon: Daemon) -> None:
    with pytest.raises(Transient):
        Queries(daemon.loop, lambda: daemon.shown).known(None, 0.01)  # type: ignore[arg-type, return-value]


def test_a_question_that_was_given_up_is_not_answered_later(daemon: Daemon) -> None:
    asking = Queries(daemon.loop, lambda: daemon.shown)  # type: ignore[arg-type, return-value]
    with pytest.raises(Transient):
        asking.scraped(0.01)
    daemon.docker.boxes.clear()
    daemon.loop.parts.watch.targets.clear()

    daemon.loop.step(0.0)  # it is taken, and nothing comes of it


def test_no_turn_follows_a_question(daemon: Daemon) -> None:
    daemon.run(1)
    before = daemon.shown

    daemon.loop.parts.inbox.put_question(lambda: None)
    daemon.loop.step(0.0)

    assert daemon.shown is before
    daemon.loop.parts.inbox.put(lambda: None)
    daemon.loop.step(0.0)
    assert daemon.shown is not before


def test_rules_are_those_in_force(daemon: Daemon, asking: Queries) -> None:
    judged = asking.judged(ENDLESS)

    assert judged.groups == daemon.loop.parts.evaluator.groups
    assert judged.evaluated_at == daemon.clock.now()
    assert judged.interval == daemon.plan.evaluation_interval
    assert judged.failing == {}


def test_targets_are_told_as_they_were_scraped(daemon: Daemon) -> None:
    daemon.docker.die("t1-b")
    daemon.run(2)

    with asked(daemon) as asking:
        a, b = asking.scraped(ENDLESS)

    assert (a.health, a.last_error) == ("up", "")
    assert (b.health, b.last_error) == ("down", "the container is exited")
    assert a.url == "http://127.0.0.1:8000/metrics"
    assert a.labels == {
        "target": "t1-a",
        "host": "gpu1",
        "instance": "127.0.0.1:8000",
        "job": "vllm",
    }
    assert a.descriptions[RUNNING].type == "gauge"
    assert a.descriptions["vllm:e2e_request_latency_seconds"].type == "histogram"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("up", True),
        ("sentinel_target_state", True),
        (RUNNING, True),
        ("ALERTS", True),
        ("python_info", False),
    ],
)
def test_what_is_kept_is_known(asking: Queries, name: str, *, kept: bool) -> None:
    assert asking.about().keeps(name) is kept
