"""Progress per engine, from what real servers showed and from what they would."""

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.model.target import State
from sentinel.core.policy.progress import Counted, Pace, demand_of, follow
from sentinel.core.policy.state import judge
from sentinel.core.policy.witness import Load
from tests.core.policy.witnesses import NO_TOKEN, NOW, TOKEN, ago, seen
from tests.fakes import FIXTURES

CPU, H200 = FIXTURES / "vllm-0.32.0-cpu", FIXTURES / "vllm-0.22.1-h200"
_SUMMED = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_usage",
    "vllm:generation_tokens_total": "generation",
    "vllm:prompt_tokens_total": "prompt",
    "vllm:iteration_tokens_total_count": "iterations",
    "vllm:request_success_total": "success",
    "vllm:num_preemptions_total": "preemptions",
}


def recorded(file: Path) -> Counted:
    """Read on its own, so that what the daemon reads has something to agree with."""
    found: dict[str, float] = {}
    for line in file.read_text().splitlines():
        name, _, rest = line.partition("{")
        if what := _SUMMED.get(name):
            found[what] = found.get(what, 0.0) + float(rest.rpartition(" ")[2])
    return Counted(**found)


def after(*looks: tuple[float, Counted], own: int = 0) -> Pace:
    """`looks`: how many seconds ago, and what was said."""
    pace = None
    for seconds, counted in looks:
        pace = follow(pace, counted, ago(seconds), own=own)
    assert pace is not None
    return pace


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        pytest.param(
            CPU / "metrics_0.32_hung_inflight_t0.txt",
            CPU / "metrics_0.32_hung_inflight_t15.txt",
            State.HUNG,
            id="hung with eight in flight, on a processor",
        ),
        pytest.param(
            H200 / "metrics_gpu_hung_t0.txt",
            H200 / "metrics_gpu_hung_t12.txt",
            State.HUNG,
            id="hung with eight in flight, on a GPU",
        ),
        pytest.param(
            CPU / "metrics_0.32_saturated_t0.txt",
            CPU / "metrics_0.32_saturated_t6.txt",
            State.SATURATED,
            id="saturated",
        ),
        pytest.param(
            CPU / "metrics_0.32_busy_healthy.txt",
            CPU / "metrics_0.32_hung_inflight_t0.txt",
            State.SERVING,
            id="busy, a moment before it hangs",
        ),
        pytest.param(
            H200 / "metrics_gpu_idle.txt",
            H200 / "metrics_gpu_after_load.txt",
            State.IDLE,
            id="after load",
        ),
        pytest.param(
            CPU / "metrics_0.32_after_40_requests.txt",
            CPU / "metrics_0.32_after_40_requests.txt",
            State.IDLE,
            id="idle since",
        ),
    ],
)
def test_recorded_pairs(first: Path, second: Path, state: State) -> None:
    """Each pair 130 s apart, and a request that got no answer: whatever moves wins."""
    counted = recorded(second)
    pace = after((131, recorded(first)), (1, counted))
    load = Load(running=counted.running, waiting=counted.waiting, kv_usage=counted.kv_usage)
    witnesses = seen(load=load, engines={"0": pace}, probe=NO_TOKEN)

    assert judge(witnesses, NOW).state is state


WORK = Counted(
    running=1,
    waiting=2,
    kv_usage=0.1,
    generation=5,
    prompt=5,
    iterations=5,
    success=5,
    preemptions=0,
)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"generation": 6}, id="a token"),
        pytest.param({"prompt": 9}, id="a prompt"),
        pytest.param({"iterations": 6}, id="a step"),
        pytest.param({"success": 6}, id="a request done: pooling and prefill-only engines too"),
        pytest.param({"preemptions": 1}, id="a preemption"),
        pytest.param({"kv_usage": 0.1001}, id="a lone long prefill moves nothing but memory"),
        pytest.param({"generation": 0.0}, id="counters began anew"),
    ],
)
def test_any_sign_of_work_is_progress(change: dict[str, float]) -> None:
    pace = after((130, WORK), (0, changed(WORK, **change)))

    assert pace.moved_at == pace.still_since == NOW


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"waiting": 30.0}, id="a queue that grows"),
        pytest.param({"running": 2.0}, id="more that are admitted"),
    ],
)
def test_and_nothing_else_is(change: dict[str, float]) -> None:
    assert after((130, WORK), (0, changed(WORK, **change))).still_since == ago(130)


def changed(counted: Counted, **values: float) -> Counted:
    known = {name: getattr(counted, name) for name in Counted.__dataclass_fields__}
    return Counted(**{**known, **values})


def test_silence_begins_with_the_work_and_not_before() -> None:
    idle = changed(WORK, running=0, waiting=0)

    pace = after((900, idle), (60, idle), (30, WORK), (0, WORK))

    assert pace.moved_at == ago(900)
    assert pace.still_since == ago(60)  # the last look that found nothing to do


def test_the_sum_over_engines_hides_what_each_of_them_shows() -> None:
    moving = [changed(WORK, generation=5.0 + step) for step in range(14)]
    looks = range(130, -10, -10)
    engines = {
        "0": after(*zip(looks, moving, strict=True)),
        "1": after(*((look, WORK) for look in looks)),
    }
    witnesses = seen(load=Load(running=2, waiting=4), engines=engines, probe=NO_TOKEN)

    standing = judge(witnesses, NOW)

    assert standing.state is State.HUNG
    assert "in engine 1" in standing.because
    assert "engine 0" not in standing.because
    assert demand_of(engines.values()) == 6


# our own requests

IDLE = changed(WORK, running=0, waiting=0)
OURS = changed(WORK, running=1, waiting=0)


def test_our_own_request_is_no_demand() -> None:
    begun = follow(None, IDLE, ago(60))

    assert follow(begun, OURS, ago(50), own=1).demand == 0


def test_what_we_gave_up_is_no_demand_either_while_the_gauge_is_frozen() -> None:
    frozen = follow(follow(None, IDLE, ago(60)), OURS, ago(50), own=1)

    assert follow(frozen, OURS, ago(10)).demand == 0


def test_a_request_that_waited_before_ours_is_demand() -> None:
    waits = follow(follow(None, OURS, ago(160)), OURS, ago(60))

    probed = follow(waits, OURS, ago(50), own=1)

    assert (probed.demand, probed.still_since) == (1, ago(160))


def test_once_it_moves_ours_are_subtracted_and_then_forgotten() -> None:
    frozen = follow(follow(None, OURS, ago(60)), changed(OURS, running=2), ago(50), own=1)

    moved = follow(frozen, changed(OURS, generation=6), ago(40))

    assert (moved.demand, moved.own) == (1, 0)


# decoding

PROMPTS = [changed(WORK, prompt=5.0 + step) for step in range(13)]


@pytest.mark.parametrize(
    ("looks", "stalled"),
    [
        pytest.param([*PROMPTS], True, id="prompts go in, nothing comes out"),
        pytest.param(PROMPTS[:6], False, id="not for long enough"),
        pytest.param(
            [changed(one, generation=5.0 + step) for step, one in enumerate(PROMPTS)],
            False,
            id="tokens come out",
        ),
        pytest.param(
            [changed(one, success=5.0 + step) for step, one in enumerate(PROMPTS)],
            False,
            id="requests end: it pools, or only prefills",
        ),
        pytest.param([WORK] * 13, False, id="nothing moves: that is a hang"),
        pytest.param(
            [changed(one, running=0.0) for one in PROMPTS], False, id="nothing runs any more"
        ),
        pytest.param([PROMPTS[0], *[PROMPTS[1]] * 12], False, id="one prompt went in, a while ago"),
        pytest.param(
            [changed(one, generation=None) for one in PROMPTS],  # type: ignore[arg-type]
            True,
            id="it has never written a token",
        ),
    ],
)
def test_decoding_stands_still(looks: list[Counted], stalled: bool) -> None:
    """One look each 10 s."""
    pace = after(*((10.0 * (len(looks) - place), one) for place, one in enumerate(looks)))

    assert pace.is_decode_stalled is stalled


NUMBERS = st.integers(0, 3).map(float)
COUNTED = st.builds(
    Counted,
    running=NUMBERS,
    waiting=NUMBERS,
    generation=NUMBERS,
    success=NUMBERS,
    kv_usage=st.sampled_from([0.0, 0.5]),
)


@given(st.lists(st.tuples(COUNTED, st.integers(0, 2)), min_size=1, max_size=20))
def test_no_history_makes_a_claim_out_of_thin_air(looks: list[tuple[Counted, int]]) -> None:
    pace, at = None, ago(1000)
    for counted, own in looks:
        at += timedelta(seconds=10)
        pace = follow(pace, counted, at, own=own)
        assert 0 <= pace.demand <= counted.demand
        assert pace.still_since <= pace.seen_at == at
        assert pace.moved_at <= at
        assert pace.demand or pace.still_since == at
    assert pace is not None
    witnesses = seen(engines={"0": pace}, probe=TOKEN)
    assert judge(witnesses, NOW).state is not State.HUNG
