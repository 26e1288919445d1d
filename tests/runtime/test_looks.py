"""What ran in one launch of one target, and which limit is in force if nothing says one."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sentinel.core.gpu.reading import GpuReading
from sentinel.core.model.container import Container
from sentinel.core.model.launch import By, Launch
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.runtime.looks import load_of
from sentinel.runtime.target import Target
from tests.fakes import FakeClock, FakeDocker

CLOCK = FakeClock()
NOW = CLOCK.now()
GIB = 1 << 30


def gpu(gib: int | None, name: str = "NVIDIA H100", **facts: Any) -> GpuReading:
    total = None if gib is None else gib * GIB
    return GpuReading(index=0, uuid="GPU-1", name=name, memory_total=total, **facts)


def launch(container: Container, **facts: float | str) -> Launch:
    return Launch(
        target="t1-a",
        container_id=container.id,
        started_at=container.started_at or NOW,
        by=By.OTHER,
        facts=facts,
    )


def target(container: dict[str, Any], said: dict[str, float | str]) -> Target:
    seen = replace(FakeDocker(CLOCK).add("t1-a").seen, **container)
    found = Target(name="t1-a", container=seen, seen_at=NOW, since=NOW)
    found.launch = launch(seen, **said)
    return found


ON_GPU: dict[str, Any] = {"devices": ("gpu:all",)}
FAST = ("vllm", "serve", "m", "--performance-mode=throughput")


@pytest.mark.parametrize(
    ("container", "said", "gpus", "limit"),
    [
        pytest.param({}, {"max_num_seqs": 64}, [], 64, id="its log says what a file gave it"),
        pytest.param(ON_GPU, {"max_num_seqs": 64}, [gpu(80)], 64, id="whatever the GPU"),
        pytest.param({}, {}, [], 128, id="on the CPU"),
        pytest.param(ON_GPU, {}, [gpu(80)], 1024, id="on a large GPU"),
        pytest.param(ON_GPU, {}, [gpu(80, "NVIDIA A100")], 256, id="on an A100"),
        pytest.param(ON_GPU, {}, [gpu(24)], 256, id="on a small GPU"),
        pytest.param({**ON_GPU, "argv": FAST}, {}, [gpu(24)], 512, id="for throughput"),
        pytest.param(ON_GPU, {"max_num_batched_tokens": 200}, [gpu(24)], 200, id="few tokens"),
        pytest.param(ON_GPU, {}, [], None, id="on a GPU that nobody sees"),
        pytest.param(ON_GPU, {}, [gpu(80, mig=True)], None, id="on a part of a GPU"),
        pytest.param(ON_GPU, {}, [gpu(None)], None, id="on a GPU of unknown memory"),
        pytest.param({**ON_GPU, "image": "vllm:nightly"}, {}, [gpu(24)], None, id="no version"),
        pytest.param(
            {**ON_GPU, "image": "vllm:nightly"}, {"version": "0.11.0"}, [gpu(24)], 256, id="logged"
        ),
    ],
)
def test_the_limit_in_force(
    container: dict[str, Any],
    said: dict[str, float | str],
    gpus: list[GpuReading],
    limit: int | None,
) -> None:
    load = load_of(Store(), target(container, said), timedelta(seconds=5), NOW, gpus)

    assert load.limit == limit


def test_what_an_earlier_run_of_the_same_container_said_holds_until_it_says_anew() -> None:
    found = target({}, {})
    found.previous = launch(found.container, max_num_seqs=64)
    assert load_of(Store(), found, timedelta(seconds=5), NOW).limit == 64

    found.previous = replace(found.previous, container_id="b" * 64)
    assert load_of(Store(), found, timedelta(seconds=5), NOW).limit == 128


def test_only_what_ran_in_the_target_itself_counts() -> None:
    clock, store, found = FakeClock(), Store(), target({}, {})
    for _ in range(4):
        clock.advance(seconds=5)
        for name, running in {"t1-a": 3.0, "t1-b": 40.0, "t1-ab": 50.0}.items():
            store.source(f"scrape/{name}", {"target": name}).put(
                [
                    ("vllm:num_requests_running", {"engine": "0"}, running),
                    ("vllm:num_requests_running", {"engine": "1"}, running - 1),
                    ("vllm:num_requests_waiting", {"engine": "0"}, running + 1),
                ],
                millis(clock.now()),
            )

    load = load_of(store, found, timedelta(seconds=5), clock.now())
    of_another = load_of(store, replace(found, name="gone"), timedelta(seconds=5), clock.now())

    assert [(look.running, look.waiting) for look in load.looks] == [(3, 4)] * 4
    assert of_another.looks == []
