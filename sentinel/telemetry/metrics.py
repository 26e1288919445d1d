"""Sentinel's own numbers, and the exposition of `/metrics`.

One registry of our own, built by whoever runs the daemon: nothing is registered by being
imported. Series of targets are not kept here: their counters live in the database, because
they must not start again at zero with the daemon; they are handed in when asked for.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import Metric

from sentinel import __version__

TICKS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

# Series of targets and GPUs: name → (type, help). Others are exposed without a type.
KNOWN: dict[str, tuple[str, str]] = {
    "sentinel_docker_up": ("gauge", "Whether the container engine answers."),
    "sentinel_target_up": ("gauge", "Whether the last scrape of the target succeeded."),
    "sentinel_target_state": ("gauge", "1 for the state the target is in."),
    "sentinel_target_crashed": ("gauge", "1 from an unexpected exit until it serves again."),
    "sentinel_slots_missed_total": ("counter", "Turns that were due while the last one went on."),
    "sentinel_receiver_up": ("gauge", "Whether messages get through to the channel."),
    "sentinel_target_startup_failed": ("gauge", "1 if its last start failed before it was ready."),
    "sentinel_target_starting_seconds": ("gauge", "How long it has been starting."),
    "sentinel_target_start_expected_seconds": ("gauge", "How long its starts take at most."),
    "sentinel_target_decode_stalled": ("gauge", "1 if prompts move and no token comes out."),
    "sentinel_target_max_num_seqs": ("gauge", "The limit it was started with, where it is known."),
    "sentinel_target_pool_info": ("gauge", "1 for the pool the target is in."),
    "sentinel_target_remedy_ineffective": ("gauge", "1 if remedies fail on it again and again."),
    "sentinel_target_traffic": ("gauge", "1 for what the pool's switch does with the target."),
    "sentinel_target_gpu_info": ("gauge", "1 for each GPU the target uses."),
    "sentinel_probe_success": ("gauge", "Whether the last request for one token was answered."),
    "sentinel_probe_duration_seconds": ("gauge", "How long the last request for one token took."),
    "sentinel_container_restarts_total": ("counter", "Restarts, by who did them."),
    "sentinel_container_exits_total": ("counter", "Exits, by exit code."),
    "sentinel_oom_events_total": ("counter", "Times memory ran out, by whose."),
    "sentinel_log_events_total": ("counter", "Telling lines in the target's log."),
    "sentinel_host_memory_total_bytes": ("gauge", "Memory of the host."),
    "sentinel_host_memory_available_bytes": ("gauge", "Memory that programs may still have."),
    "sentinel_host_memory_pressure_ratio": ("gauge", "Time in which something waited for memory."),
    "sentinel_host_kernel_log_up": ("gauge", "Whether the kernel's log can be read."),
    "sentinel_filesystem_size_bytes": ("gauge", "Size of a filesystem that is written to."),
    "sentinel_filesystem_free_bytes": ("gauge", "What is free of it."),
    "sentinel_filesystem_free_ratio": ("gauge", "The same, of the scarcer of bytes and files."),
    "sentinel_target_metric_missing": ("gauge", "1 for each metric that rules read in vain."),
    "sentinel_target_model_mismatch": ("gauge", "1 if another model answers than was started."),
    "sentinel_target_filesystem_info": ("gauge", "1 for each filesystem the target writes to."),
    "sentinel_target_shared_memory_bytes": ("gauge", "Size of its own /dev/shm."),
    "sentinel_target_tensor_parallel_size": ("gauge", "Processes it spreads each layer over."),
    "sentinel_container_memory_used_bytes": ("gauge", "Memory of the container, with its cache."),
    "sentinel_container_memory_limit_bytes": ("gauge", "Its limit, if it has one."),
    "sentinel_container_memory_pressure_ratio": ("gauge", "Time in which it waited for memory."),
    "sentinel_container_gpu_up": ("gauge", "0 if it lost its GPUs and the host did not."),
    "sentinel_gpu_driver_up": ("gauge", "Whether NVIDIA's driver answers."),
    "sentinel_gpu_driver_hung": ("gauge", "1 while a call to the driver does not return."),
    "sentinel_gpu_up": ("gauge", "Whether the driver answers for the GPU."),
    "sentinel_gpu_utilization_ratio": ("gauge", "Time in which the GPU was busy."),
    "sentinel_gpu_memory_used_bytes": ("gauge", "GPU memory in use."),
    "sentinel_gpu_memory_orphaned_bytes": ("gauge", "GPU memory that nobody is left to free."),
    "sentinel_gpu_memory_total_bytes": ("gauge", "GPU memory there is."),
    "sentinel_gpu_temperature_celsius": ("gauge", "Temperature of the GPU."),
    "sentinel_gpu_power_watts": ("gauge", "Power drawn."),
    "sentinel_gpu_power_limit_watts": ("gauge", "Power allowed."),
    "sentinel_gpu_sm_clock_hertz": ("gauge", "Clock of the multiprocessors."),
    "sentinel_gpu_throttle_seconds_total": ("counter", "Time slowed down, by reason."),
    "sentinel_gpu_xid_errors_total": ("counter", "Xid errors."),
    "sentinel_gpu_ecc_uncorrected_errors_total": ("counter", "ECC errors not corrected."),
    "sentinel_gpu_remapped_rows": ("gauge", "Rows of memory remapped."),
    "sentinel_gpu_row_remap_pending": ("gauge", "Whether a row waits to be remapped."),
    "sentinel_gpu_row_remap_failed": ("gauge", "Whether remapping a row failed."),
    "sentinel_gpu_recovery_action": ("gauge", "1 for what the driver asks for."),
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One series of a target or GPU, as it is now."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


class Metrics:
    """What the daemon counts about itself; each attribute is one metric."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = registry = CollectorRegistry(auto_describe=False)
        ProcessCollector(registry=registry)
        Info("sentinel_build", "The program.", registry=registry).info({"version": __version__})
        self.reload_successful = Gauge(
            "sentinel_config_last_reload_successful",
            "Whether the last attempt to load the configuration was taken.",
            registry=registry,
        )
        self.reloaded_at = Gauge(
            "sentinel_config_last_reload_success_timestamp_seconds",
            "When a configuration was last taken.",
            registry=registry,
        )
        self.notifications = Counter(
            "sentinel_notifications",
            "Messages that a channel has taken.",
            ["integration"],
            registry=registry,
        )
        self.notifications_failed = Counter(
            "sentinel_notifications_failed",
            "Attempts to send that failed.",
            ["integration", "reason"],
            registry=registry,
        )
        self.alert_flaps = Counter(
            "sentinel_alert_flaps",
            "Times an alert fired again so soon and so often that its end is waited for.",
            ["alertname"],
            registry=registry,
        )
        self.actions = Counter(
            "sentinel_actions",
            "Actions that are over, by how they ended.",
            ["action", "result"],
            registry=registry,
        )
        self.guard_holds = Gauge(
            "sentinel_guard_holds",
            "Targets on which the guard holds an action back now.",
            ["guard"],
            registry=registry,
        )
        self.slots_missed = Gauge(
            "sentinel_evaluation_slots_missed",
            "Evaluation slots that came and went since the start while the loop was late.",
            registry=registry,
        )
        self.clock_jumps = Counter(
            "sentinel_clock_jumps",
            "Times the clock was set by more than 5 s, back or forth.",
            registry=registry,
        )
        self.rule_failures = Counter(
            "sentinel_rule_evaluation_failures",
            "Evaluations of a rule that failed.",
            ["rule"],
            registry=registry,
        )
        self.tick_duration = Histogram(
            "sentinel_tick_duration_seconds",
            "Time one turn of the loop took.",
            buckets=TICKS,
            registry=registry,
        )

    def exposition(self, readings: Iterable[Reading] = ()) -> bytes:
        """Prometheus's text format: our own metrics, then `readings`, grouped by name."""
        return generate_latest(self.registry) + generate_latest(_Readings(readings))


class _Readings(CollectorRegistry):
    """Readings as the exposition wants them: each metric once, its samples together."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        super().__init__()
        self._readings = readings

    def collect(self) -> Iterator[Metric]:
        metrics: dict[str, Metric] = {}
        for reading in self._readings:
            kind, about = KNOWN.get(reading.name, ("unknown", reading.name))
            if reading.name not in metrics:
                family = reading.name.removesuffix("_total") if kind == "counter" else reading.name
                metrics[reading.name] = Metric(family, about, kind)
            metrics[reading.name].add_sample(reading.name, dict(reading.labels), reading.value)
        yield from metrics.values()
