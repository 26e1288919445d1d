"""What real vLLM servers printed: the healthy ones alert nobody, the busy ones say busy."""

from pathlib import Path

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.core.model.target import State
from sentinel.runtime.configure import shipped_rules
from tests.rules.play import grown, play

FIXTURES = Path(__file__).parents[1] / "fixtures"
CPU, GPU = FIXTURES / "vllm-0.32.0-cpu", FIXTURES / "vllm-0.22.1-h200"
GROUPS = load_rule_files(shipped_rules())
LOAD = {
    "VllmTTFTP99High",
    "VllmTTFTP99Breached",
    "VllmQueueTimeHigh",
    "VllmQueueBacklog",
    "VllmKVCacheUsageHigh",
    "VllmPreemptionStorm",
    "VllmITLHigh",
}


@pytest.mark.parametrize(
    ("file", "state"),
    [
        (CPU / "metrics_0.32_idle_fresh.txt", State.IDLE),
        (CPU / "metrics_0.32_after_40_requests.txt", State.IDLE),
        (CPU / "metrics_0.32_busy_healthy.txt", State.SERVING),
        (GPU / "metrics_gpu_idle.txt", State.IDLE),
        (GPU / "metrics_gpu_after_load.txt", State.IDLE),
    ],
    ids=lambda given: given.stem if isinstance(given, Path) else str(given),
)
def test_a_healthy_server_alerts_nobody(file: Path, state: State) -> None:
    body = file.read_text()

    assert not play(GROUPS, lambda _: body, state=state)


def test_a_server_that_goes_on_working_well_alerts_nobody() -> None:
    first = (CPU / "metrics_0.32_idle_fresh.txt").read_text()
    second = (CPU / "metrics_0.32_busy_healthy.txt").read_text()

    assert not play(GROUPS, lambda turn: grown(first, second, turn / 10))


def test_a_saturated_server_is_said_to_be_busy_and_nothing_worse() -> None:
    first = (CPU / "metrics_0.32_saturated_t0.txt").read_text()
    second = (CPU / "metrics_0.32_saturated_t6.txt").read_text()

    fired = play(GROUPS, lambda turn: grown(first, second, turn * 5 / 6), state=State.SATURATED)

    assert {"VllmKVCacheUsageHigh", "VllmQueueBacklog"} <= {a.alertname for a in fired} <= LOAD


def test_a_burst_of_long_prompts_is_load_and_nothing_worse() -> None:
    first = (GPU / "metrics_gpu_idle.txt").read_text()
    second = (GPU / "metrics_gpu_after_load.txt").read_text()

    fired = play(GROUPS, lambda turn: grown(first, second, min(turn / 6, 1)))

    assert {alert.alertname for alert in fired} <= LOAD


def test_a_server_without_statistics_is_blind_and_nothing_worse() -> None:
    body = (CPU / "metrics_0.32_busy_healthy.txt").read_text()
    without = "\n".join(line for line in body.splitlines() if "vllm:" not in line) + "\n"

    fired = play(GROUPS, lambda _: without, state=State.IDLE)

    assert {alert.alertname for alert in fired} == {"VllmMetricMissing"}


def test_an_engine_that_starts_anew_all_the_time_has_no_load_of_its_own_making() -> None:
    first = (CPU / "metrics_0.32_idle_fresh.txt").read_text()
    second = (CPU / "metrics_0.32_busy_healthy.txt").read_text()

    assert not play(GROUPS, lambda turn: grown(first, second, turn % 24 / 10))
