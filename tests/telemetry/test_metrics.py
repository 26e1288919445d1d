import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sentinel.core.model import series_names
from sentinel.telemetry.metrics import KNOWN, Metrics, Reading


def exposed(metrics: Metrics, *readings: Reading) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(metrics.exposition(readings).decode())
    return {
        (
            sample.name,
            ",".join(f"{key}={value}" for key, value in sorted(sample.labels.items())),
        ): sample.value
        for family in families
        for sample in family.samples
    }


def test_two_daemons_in_one_process_do_not_share_numbers() -> None:
    one, other = Metrics(), Metrics()
    one.actions.labels("restart", "verified").inc()

    assert exposed(one)["sentinel_actions_total", "action=restart,result=verified"] == 1
    assert ("sentinel_actions_total", "action=restart,result=verified") not in exposed(other)


def test_every_own_metric_of_the_product_is_exposed() -> None:
    metrics = Metrics()
    metrics.notifications.labels("slack").inc()
    metrics.notifications_failed.labels("slack", "timeout").inc()
    metrics.actions.labels("restart", "failed").inc()
    metrics.guard_holds.labels("mode").set(1)
    metrics.tick_duration.observe(0.01)

    names = {name for name, _ in exposed(metrics)}

    assert names >= {
        "sentinel_build_info",
        "sentinel_config_last_reload_successful",
        "sentinel_notifications_total",
        "sentinel_notifications_failed_total",
        "sentinel_actions_total",
        "sentinel_guard_holds",
        "sentinel_tick_duration_seconds_bucket",
        "process_resident_memory_bytes",
    }
    assert not [name for name in names if name.endswith("_created")]


def test_readings_are_exposed_with_type_help_and_every_label() -> None:
    readings = (
        Reading("sentinel_oom_events_total", 0, {"target": 'a"b\\c\nd', "kind": "host"}),
        Reading("sentinel_target_up", 1, {"target": "t1-a", "host": "gpu-1"}),
        Reading("sentinel_oom_events_total", 2, {"target": "t1-a", "kind": "cgroup"}),
        Reading("sentinel_new", math.nan, {}),
    )

    text = Metrics().exposition(readings).decode()

    assert text.count("# TYPE sentinel_oom_events_total counter") == 1
    found = exposed(Metrics(), *readings)
    assert found["sentinel_oom_events_total", "kind=cgroup,target=t1-a"] == 2
    assert found["sentinel_oom_events_total", 'kind=host,target=a"b\\c\nd'] == 0
    assert math.isnan(found["sentinel_new", ""])


@pytest.mark.parametrize(
    "name", [value for value in vars(series_names).values() if str(value).startswith("sentinel_")]
)
def test_every_series_of_ours_has_a_type_and_a_help(name: str) -> None:
    kind, about = KNOWN[name]

    assert (kind == "counter") == name.endswith("_total")
    assert about
