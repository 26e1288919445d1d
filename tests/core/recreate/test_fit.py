"""How low the limit goes: from what really ran, and never for nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.recreate.defaults import Hardware, default_max_num_seqs
from sentinel.core.recreate.fit import CURED, Fit, Load, Look, NoFit, changes_nothing, fit

GIB = 1 << 30


def looks(
    *running: int,
    preempted_at: tuple[int, ...] = (),
    usage: float = 0.99,
    finishing: float = 20,
) -> list[Look]:
    """One look after the other, `finishing` requests apart; 5 are preempted before each of
    `preempted_at`."""
    total, found = 0, []
    for at, number in enumerate(running):
        total += 5 * (at in preempted_at)
        look = Look(running=number, waiting=9, preemptions=total, kv_cache_usage=usage)
        found.append(replace(look, finished=finishing * at))
    return found


CALM_THEN_STORM = looks(30, 31, 30, 32, 31, 45, 38, 44, 39, preempted_at=(6, 7, 8))
STORM = looks(45, 38, 44, 39, 43, preempted_at=(1, 2, 3, 4))


@pytest.mark.parametrize(
    ("cause", "load", "floor", "value"),
    [
        pytest.param(
            "preemption_storm", Load(limit=256, looks=CALM_THEN_STORM), 8, 38,
            id="a storm: what still ran at its worst",
        ),
        pytest.param(
            "preemption_storm",
            Load(limit=256, looks=looks(*[40] * 5, 60, 20, 55, 18, preempted_at=(6, 7, 8))),
            8, 40,
            id="a storm: not below what ran in peace",
        ),
        pytest.param(
            "preemption_storm",
            Load(
                limit=256,
                looks=looks(*[47] * 20, *[23] * 20, *[15] * 20, preempted_at=(20, 40), finishing=0),
            ),
            8, 15,
            id="a storm: a peace in which nobody came to his end is none",
        ),
        pytest.param(
            "preemption_storm",
            Load(limit=256, looks=looks(*[40] * 9, 60, 20, preempted_at=(9, 10), finishing=5)),
            8, 40,
            id="a storm: a peace in which all that ran came to their end",
        ),
        pytest.param(
            "preemption_storm", Load(limit=None, looks=STORM), 8, 38, id="the limit is not known"
        ),
        pytest.param(
            "preemption_storm", Load(limit=256, looks=STORM), 40, 40, id="never below the floor"
        ),
        pytest.param(
            "preemption_storm", Load(limit=45, looks=STORM), 8, 38, id="the limit was reached"
        ),
        pytest.param(
            "cuda_oom_runtime", Load(limit=256, looks=looks(10, 40)), 8, 30, id="oom: 3/4 of most"
        ),
        pytest.param(
            "cuda_oom_runtime", Load(limit=256, looks=looks(*[35] * 5, 40)), 8, 35,
            id="oom: what was sustained",
        ),
        pytest.param("cuda_oom_sampler_warmup", Load(limit=256), 8, 128, id="warm-up: half"),
        pytest.param(
            "mamba_cache_too_small", Load(limit=256, mamba_blocks=100), 8, 100, id="mamba: blocks"
        ),
    ],
)  # fmt: skip
def test_fit(cause: str, load: Load, floor: int, value: int) -> None:
    found = fit(cause, load, floor=floor)

    assert isinstance(found, Fit), found
    assert found.value == value
    assert found.because


@pytest.mark.parametrize(
    ("cause", "load", "floor", "says"),
    [
        pytest.param("engine_hung", Load(limit=256, looks=STORM), 8, "engine_hung", id="no cure"),
        pytest.param("preemption_storm", Load(limit=256), 8, "no preemption", id="nothing seen"),
        pytest.param(
            "preemption_storm", Load(limit=256, looks=looks(*[9] * 9)), 8, "no preemption",
            id="full, but in peace",
        ),
        pytest.param(
            "preemption_storm",
            Load(limit=256, looks=looks(*[40] * 6, 40, 39, preempted_at=(6, 7))),
            8, "not their number",
            id="as many ran in peace",
        ),
        pytest.param(
            "preemption_storm", Load(limit=256, looks=STORM), 45, "never held more than 45",
            id="the floor is as high as what ran",
        ),
        pytest.param("cuda_oom_runtime", Load(limit=9, looks=looks(1)), 8, "with 1", id="one ran"),
        pytest.param("cuda_oom_sampler_warmup", Load(limit=None), 8, "not known", id="no limit"),
        pytest.param("cuda_oom_sampler_warmup", Load(limit=8), 8, "not below the 8", id="floor"),
        pytest.param("mamba_cache_too_small", Load(limit=9), 8, "not known", id="no blocks"),
    ],
)  # fmt: skip
def test_what_would_change_nothing_is_refused(
    cause: str, load: Load, floor: int, says: str
) -> None:
    refused = fit(cause, load, floor=floor)

    assert isinstance(refused, NoFit), refused
    assert refused.guard == "changes_nothing"
    assert says in refused.because


@pytest.mark.parametrize(
    ("value", "load", "nothing"),
    [
        pytest.param(256, Load(limit=256), True, id="the limit itself"),
        pytest.param(300, Load(limit=256), True, id="above it"),
        pytest.param(64, Load(limit=256), False, id="below it, idle"),
        pytest.param(64, Load(limit=None), False, id="nothing known"),
        pytest.param(64, Load(limit=256, looks=looks(40, 41)), True, id="memory holds 41"),
        pytest.param(40, Load(limit=256, looks=looks(40, 41)), False, id="below what memory holds"),
        pytest.param(
            64, Load(limit=256, looks=looks(40, 41, usage=0.2)), False, id="few came: not memory"
        ),
        pytest.param(64, Load(limit=256, looks=looks(200, 256)), False, id="at the limit"),
    ],
)
def test_a_number_by_hand(value: int, load: Load, nothing: bool) -> None:
    assert (changes_nothing(value, load) is not None) is nothing


LOADS = st.builds(
    Load,
    limit=st.none() | st.integers(1, 1024),
    looks=st.lists(
        st.builds(
            Look,
            running=st.integers(0, 300),
            waiting=st.integers(0, 9),
            preemptions=st.integers(0, 9).map(float),
            finished=st.integers(0, 99).map(float),
            kv_cache_usage=st.floats(0, 1),
        ),
        max_size=12,
    ),
    mamba_blocks=st.none() | st.integers(0, 300),
)


@given(cause=st.sampled_from(sorted(CURED)), load=LOADS, floor=st.integers(1, 64))
def test_whatever_was_seen_a_fit_lowers_something(cause: str, load: Load, floor: int) -> None:
    found = fit(cause, load, floor=floor)

    if isinstance(found, Fit):
        assert found.value >= floor
        assert load.limit is None or found.value < load.limit
        if cause == "preemption_storm":
            assert found.value < load.most_running


@pytest.mark.parametrize(
    ("version", "hardware", "options", "limit"),
    [
        ("0.6.6.post1", None, {}, 256),
        ("v0.7.3", Hardware(gpu_memory=80 * GIB, gpu_name="NVIDIA H100"), {}, 256),
        ("0.8.5", Hardware(gpu_memory=80 * GIB, gpu_name="NVIDIA H100"), {}, None),
        ("0.10.2", Hardware(gpu_memory=79 * GIB, gpu_name="NVIDIA H100 80GB HBM3"), {}, 1024),
        ("0.32.0", Hardware(gpu_memory=79 * GIB, gpu_name="NVIDIA A100-SXM4-80GB"), {}, 256),
        ("0.32.0", Hardware(gpu_memory=24 * GIB, gpu_name="NVIDIA L4"), {}, 256),
        ("0.32.0", Hardware(gpu_memory=190 * GIB, gpu_name="NVIDIA B200"), {}, 1024),
        ("0.32.0+cpu", Hardware(gpu_memory=None, world_size=2), {}, 256),
        ("0.32.0", Hardware(gpu_memory=24 * GIB), {"doubled": True}, 512),
        ("0.32.0", Hardware(gpu_memory=24 * GIB), {"batched_tokens": 100}, 100),
        ("0.32.0", None, {}, None),
        ("dev", Hardware(gpu_memory=24 * GIB), {}, None),
    ],
)
def test_what_vllm_takes_by_itself(
    version: str, hardware: Hardware | None, options: dict[str, int], limit: int | None
) -> None:
    assert default_max_num_seqs(version, hardware, **options) == limit  # type: ignore[arg-type]
