"""What is read from the columns, against what PromQL says of the same series."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sentinel.core.gpu.samples import POWER
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.target import Answer
from sentinel.core.promql import Sample, compile_expression
from sentinel.runtime.ingest import Exposition
from sentinel.runtime.power import Powers
from sentinel.runtime.target import Target
from sentinel.runtime.vitals import METRICS, Vitals
from tests.fakes import FIXTURES, FakeClock, FakeDocker

CPU = FIXTURES / "vllm-0.32.0-cpu"
SATURATED = [(CPU / f"metrics_0.32_saturated_{t}.txt").read_bytes() for t in ("t0", "t6")]
P99 = (
    "histogram_quantile(0.99, sum by (target, le)"
    " (rate(vllm:time_to_first_token_seconds_bucket[5m])))"
)


class Scraped:
    """One target, and the store that its scrapes went into."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.now = clock.now()
        box = FakeDocker(clock).add("t")
        self.target = Target(name="t", container=box.seen, seen_at=self.now, since=self.now)
        self.store = Store(keep=lambda name: name in {*METRICS, POWER})
        self.text = Exposition(self.store.source("scrape/t", {"target": "t"}))
        self.gpus = ["GPU-1"]
        self.vitals = Vitals(self.store, Powers(self.store, lambda _name: self.gpus))

    def take(self, *bodies: bytes, apart: float = 15) -> Target:
        for body in bodies:
            self.now += timedelta(seconds=apart)
            self.text.take(body, millis(self.now))
            self.target.scrape = Answer(at=self.now, took=0.1, status=200)
            self.read()
        return self.target

    def read(self) -> None:
        self.vitals.read({"t": self.target}, self.now)

    def ask(self, text: str) -> float:
        found = compile_expression(text).at(self.store, millis(self.now))
        assert isinstance(found, list)
        (sample,) = found
        assert isinstance(sample, Sample)
        return sample.value


def test_it_agrees_with_promql() -> None:
    scraped = Scraped()

    target = scraped.take(*SATURATED)

    assert target.load.running == scraped.ask("sum(vllm:num_requests_running)") == 5
    assert target.load.waiting == scraped.ask("sum(vllm:num_requests_waiting)") == 23
    assert target.load.kv_usage == scraped.ask("max(vllm:kv_cache_usage_perc)") == 1
    assert target.ttft_p99 == pytest.approx(scraped.ask(P99))
    assert target.model == "tiny"
    assert target.load.asleep is False
    (pace,) = target.engines.values()
    assert pace.counted.generation == scraped.ask("sum(vllm:generation_tokens_total)")
    assert pace.counted.success == scraped.ask("sum(vllm:request_success_total)")
    assert pace.moved_at == scraped.now


def test_a_p99_over_a_counter_reset_agrees_too() -> None:
    scraped = Scraped()

    target = scraped.take(*SATURATED, *SATURATED)

    assert target.ttft_p99 == pytest.approx(scraped.ask(P99))


def test_engines_are_kept_apart_and_summed_for_show() -> None:
    body = SATURATED[0] + SATURATED[0].replace(b'engine="0"', b'engine="1"')

    target = Scraped().take(body)

    assert list(target.engines) == ["0", "1"]
    assert (target.load.running, target.load.waiting, target.load.kv_usage) == (10, 60, 1)
    assert [pace.demand for pace in target.engines.values()] == [35, 35]


def test_an_older_server_is_read_by_the_names_of_its_time() -> None:
    body = (
        b'vllm:num_requests_running{model_name="m"} 1\nvllm:num_requests_waiting{model_name="m"} 2\n'
        b'vllm:num_requests_swapped{model_name="m"} 3\n'
        b'vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
    )

    target = Scraped().take(body)

    assert (target.load.running, target.load.waiting, target.load.kv_usage) == (1, 5, 0.5)
    assert target.load.asleep is None
    assert list(target.engines) == [""]


def test_series_that_went_away_say_nothing_any_more() -> None:
    target = Scraped().take(SATURATED[0], b"up_to_date 1\n")

    assert not target.load.is_told
    assert target.engines == {}
    assert target.ttft_p99 is None


def test_a_scrape_is_read_once() -> None:
    scraped = Scraped()
    target = scraped.take(SATURATED[0])
    load = target.load

    scraped.read()

    assert target.load is load


def test_a_missed_scrape_leaves_the_last_good_word() -> None:
    scraped = Scraped()
    target = scraped.take(SATURATED[0])
    target.scrape = Answer(at=scraped.now, took=3, failure="timeout")

    scraped.read()

    assert target.load.running == 5


# power


def drawing(scraped: Scraped, watts: Iterable[float], bodies: Iterable[bytes]) -> Target:
    for drawn, body in zip(watts, bodies, strict=True):
        source = scraped.store.source("gpus", {})
        source.put([(POWER, {"uuid": "GPU-1"}, drawn)], millis(scraped.now))
        scraped.take(body)
    return scraped.target


AT_WORK = [SATURATED[step % 2] for step in range(15)]


def test_the_least_at_work_is_learned() -> None:
    target = drawing(Scraped(), [300.0, *[250.0 + step for step in range(14)]], AT_WORK)

    assert target.power is not None
    assert target.power.least_at_work == 250
    assert not target.power.is_idle


def test_and_what_is_drawn_while_nothing_moves_is_told_from_it() -> None:
    scraped = Scraped()
    drawing(scraped, [250.0] * 15, AT_WORK)

    target = drawing(scraped, [90.0] * 3, [AT_WORK[-1]] * 3)

    assert target.power is not None
    assert target.power.is_idle


@pytest.mark.parametrize(
    ("gpus", "looks"),
    [
        pytest.param(["GPU-1"], 5, id="not seen at work for long enough"),
        pytest.param([], 15, id="no GPU is known to be its"),
        pytest.param(["GPU-1", "GPU-2"], 15, id="one of its GPUs does not tell"),
    ],
)
def test_what_is_not_known_is_not_said(gpus: list[str], looks: int) -> None:
    scraped = Scraped()
    scraped.gpus = gpus

    target = drawing(scraped, [250.0] * looks, AT_WORK[:looks])

    assert target.power is None or target.power.least_at_work is None


def test_a_gpu_of_two_targets_says_nothing_of_either() -> None:
    scraped = Scraped()
    scraped.store.source("gpus", {}).put([(POWER, {"uuid": "GPU-1"}, 250.0)], millis(scraped.now))
    other = replace(scraped.target, name="u")

    scraped.vitals.read({"t": scraped.target, "u": other}, scraped.now)

    assert scraped.target.power is other.power is None


def moved(target: Target) -> datetime:
    (pace,) = target.engines.values()
    return pace.moved_at


def test_nothing_moves_between_two_equal_scrapes() -> None:
    scraped = Scraped()
    began = moved(scraped.take(SATURATED[0]))

    assert moved(scraped.take(SATURATED[0], SATURATED[0])) == began
