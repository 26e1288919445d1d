import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.gpu.throttle import REASONS, Throttled, advance, is_throttled, reasons_of
from tests.core.gpu.gpus import gpu

S = 1_000_000_000


@pytest.mark.parametrize(
    ("bits", "reasons", "throttled"),
    [
        (0x0, set(), False),
        (0x1, {"idle"}, False),
        (0x2, {"app_clocks"}, False),
        (0x4, {"sw_power_cap"}, False),
        (0x8, {"hw_slowdown"}, True),
        (0x10, {"sync_boost"}, False),
        (0x20, {"sw_thermal"}, True),
        (0x48, {"hw_slowdown", "hw_thermal"}, True),
        (0x88, {"hw_slowdown", "hw_power_brake"}, True),
        (0x100, {"display"}, False),
        (0x200, {"other"}, False),
        (0x80000404, {"sw_power_cap", "other"}, False),
    ],
    ids=lambda value: hex(value) if isinstance(value, int) else None,
)
def test_what_the_bits_mean(bits: int, reasons: set[str], throttled: bool) -> None:
    assert reasons_of(bits) == reasons
    assert is_throttled(gpu(reasons=bits)) is throttled


def test_nothing_told_is_not_throttled() -> None:
    assert not is_throttled(gpu())
    assert advance(Throttled(), gpu(), 5.0).seconds == {}


def test_the_drivers_counters_count_and_not_the_samples() -> None:
    reading = gpu(reasons=0x40, throttle_ns={"hw_thermal": 3 * S, "sw_thermal": 0})

    seconds = advance(Throttled(), reading, 5.0).seconds

    assert (seconds["hw_thermal"], seconds["sw_thermal"]) == (3.0, 0.0)


def test_without_a_counter_a_sample_stands_for_the_time_since_the_last() -> None:
    first = advance(Throttled(), gpu(reasons=0x8), 5.0)
    second = advance(first, gpu(reasons=0x0), 5.0)
    third = advance(second, gpu(reasons=0x9), 5.0)

    assert third.seconds["hw_slowdown"] == 10.0
    assert third.seconds["idle"] == 5.0


def test_one_sample_does_not_stand_for_a_driver_that_was_silent_for_long() -> None:
    assert advance(Throttled(), gpu(reasons=0x8), 3600.0).seconds["hw_slowdown"] == 30.0


@pytest.mark.parametrize(
    ("bits", "heat"), [(0x40, "hw_thermal"), (0x20, "sw_thermal"), (0, "sw_thermal")]
)
def test_an_older_drivers_one_counter_of_heat_is_told_apart_by_the_sample(
    bits: int, heat: str
) -> None:
    first = advance(Throttled(), gpu(reasons=bits, throttle_ns={"thermal": 7 * S}), 5.0)
    second = advance(first, gpu(reasons=bits, throttle_ns={"thermal": 9 * S}), 5.0)

    assert first.seconds[heat] == 0.0  # from before anybody looked
    assert second.seconds[heat] == 2.0
    assert sum(second.seconds[name] for name in ("hw_thermal", "sw_thermal")) == 2.0


def test_an_older_counter_that_starts_anew_takes_nothing_away() -> None:
    first = advance(Throttled(), gpu(reasons=0, throttle_ns={"thermal": 9 * S}), 5.0)
    second = advance(first, gpu(reasons=0, throttle_ns={"thermal": 1 * S}), 5.0)

    assert second.seconds["sw_thermal"] == 0.0


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(0, 2**40),
            st.dictionaries(st.sampled_from([*REASONS, "thermal"]), st.integers(0, 2**60)),
            st.floats(-10, 1e6),
        )
    )
)
def test_seconds_are_told_for_all_reasons_or_none_and_are_never_negative(
    looks: list[tuple[int | None, dict[str, int], float]],
) -> None:
    throttled = Throttled()
    for bits, counters, elapsed in looks:
        throttled = advance(throttled, gpu(reasons=bits, throttle_ns=counters), elapsed)

        assert tuple(throttled.seconds) in ((), REASONS)
        assert all(seconds >= 0 for seconds in throttled.seconds.values())
