"""Each rule over vLLM's metrics works with every release, whatever it calls them.

A file under `versions/` holds what one scrape adds; two sick servers are played from it.
"""

import re
from pathlib import Path

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.runtime.configure import shipped_presets, shipped_rules
from tests.rules.play import grown, play

VERSIONS = sorted((Path(__file__).parent / "versions").glob("*.txt"))
GROUPS = load_rule_files([*shipped_rules(), *shipped_presets()])
OVERLOADED = {
    "VllmTTFTP99High",
    "VllmTTFTP99Breached",
    "VllmQueueTimeHigh",
    "VllmQueueBacklog",
    "VllmKVCacheUsageHigh",
    "VllmPreemptionStorm",
    "VllmITLHigh",
    "VllmErrorRateHigh",
    "VllmErrorRateAbove1Percent",
    "VllmLatencyP99Above1s",
    "VllmTPOTP99High",
}
ABSENT = {"0.5.5": {"VllmQueueTimeHigh"}}  # it counts no time in the queue


def overloaded(file: Path) -> list[ActiveAlert]:
    body = file.read_text()
    return play(GROUPS, lambda turn: grown("", body, turn + 1))


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_an_overloaded_server_fires_every_rule_about_load_once(file: Path) -> None:
    fired = [alert.alertname for alert in overloaded(file)]

    assert sorted(fired) == sorted(OVERLOADED - ABSENT.get(file.stem, set()))


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_a_scheduler_that_stands_still_is_seen_on_every_version(file: Path) -> None:
    empty = r"^(vllm:(?:num_requests_running|kv_cache_usage_perc|gpu_cache_usage_perc)\{.*) \S+$"
    body = re.sub(empty, r"\1 0.0", file.read_text(), flags=re.MULTILINE)

    fired = {alert.alertname for alert in play(GROUPS, lambda _: body)}

    assert fired == {"VllmAdmissionStalled", "VllmQueueBacklog"}


@pytest.mark.parametrize("file", VERSIONS, ids=lambda file: file.stem)
def test_a_number_has_the_same_value_under_its_old_name(file: Path) -> None:
    values = {alert.alertname: alert.value for alert in overloaded(file)}

    assert values["VllmPreemptionStorm"] == pytest.approx(2)
    assert values["VllmITLHigh"] == pytest.approx(0.395)
    assert values.get("VllmQueueTimeHigh", 37.5) == pytest.approx(37.5)
    assert values["VllmKVCacheUsageHigh"] == pytest.approx(0.99)
