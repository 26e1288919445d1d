"""The series of one GPU. What the driver does not tell has no series: it is not 0."""

from collections.abc import Iterator, Mapping

from sentinel.core.gpu.reading import RECOVERY_ACTIONS, GpuReading
from sentinel.core.gpu.xid import LABELS

GPU_UP = "sentinel_gpu_up"
UTILIZATION = "sentinel_gpu_utilization_ratio"
MEMORY_USED = "sentinel_gpu_memory_used_bytes"
MEMORY_TOTAL = "sentinel_gpu_memory_total_bytes"
MEMORY_ORPHANED = "sentinel_gpu_memory_orphaned_bytes"
TEMPERATURE = "sentinel_gpu_temperature_celsius"
POWER = "sentinel_gpu_power_watts"
POWER_LIMIT = "sentinel_gpu_power_limit_watts"
SM_CLOCK = "sentinel_gpu_sm_clock_hertz"
THROTTLED = "sentinel_gpu_throttle_seconds_total"  # reason
XID_ERRORS = "sentinel_gpu_xid_errors_total"  # xid
ECC_UNCORRECTED = "sentinel_gpu_ecc_uncorrected_errors_total"
REMAPPED_ROWS = "sentinel_gpu_remapped_rows"  # kind = correctable | uncorrectable
REMAP_PENDING = "sentinel_gpu_row_remap_pending"
REMAP_FAILED = "sentinel_gpu_row_remap_failed"
RECOVERY_ACTION = "sentinel_gpu_recovery_action"  # action
TARGET_GPU = "sentinel_target_gpu_info"  # target
DRIVER_UP = "sentinel_gpu_driver_up"
DRIVER_HUNG = "sentinel_gpu_driver_hung"
CONTAINER_GPU_UP = "sentinel_container_gpu_up"  # target

Row = tuple[str, Mapping[str, str], float | None]


def rows_of(
    gpu: GpuReading,
    own: Mapping[str, str],
    throttled: Mapping[str, float],
    xids: Mapping[str, float],
    orphaned: int | None,
) -> Iterator[Row]:
    """`own` names the GPU. A value of None means that there is no such series."""
    yield GPU_UP, own, float(not gpu.trouble)
    for xid in LABELS:
        yield XID_ERRORS, {**own, "xid": xid}, xids.get(xid, 0.0)
    if gpu.trouble:
        return
    yield UTILIZATION, own, gpu.utilization
    yield MEMORY_USED, own, gpu.memory_used
    yield MEMORY_TOTAL, own, gpu.memory_total
    yield MEMORY_ORPHANED, own, orphaned
    yield TEMPERATURE, own, gpu.temperature
    yield POWER, own, gpu.power
    yield POWER_LIMIT, own, gpu.power_limit
    yield SM_CLOCK, own, gpu.sm_clock
    for reason, seconds in throttled.items():
        yield THROTTLED, {**own, "reason": reason}, seconds
    yield from _health(gpu, own)


def _health(gpu: GpuReading, own: Mapping[str, str]) -> Iterator[Row]:
    ecc = gpu.ecc_aggregate if gpu.ecc_volatile is None else gpu.ecc_volatile
    yield ECC_UNCORRECTED, own, ecc
    yield REMAPPED_ROWS, {**own, "kind": "correctable"}, gpu.remapped_correctable
    yield REMAPPED_ROWS, {**own, "kind": "uncorrectable"}, gpu.remapped_uncorrectable
    yield REMAP_PENDING, own, gpu.needs_reset
    yield REMAP_FAILED, own, gpu.remap_failed
    if gpu.recovery_action is not None:
        for action in (*RECOVERY_ACTIONS, "other"):
            yield RECOVERY_ACTION, {**own, "action": action}, float(action == gpu.recovery_action)
