"""The names of Sentinel's own series; tools outside rely on them."""

TARGET_UP = "sentinel_target_up"
TARGET_STATE = "sentinel_target_state"
TARGET_CRASHED = "sentinel_target_crashed"  # 1 from an unexpected exit until it serves again
TARGET_TRAFFIC = "sentinel_target_traffic"
PROBE_SUCCESS = "sentinel_probe_success"
PROBE_DURATION = "sentinel_probe_duration_seconds"
CONTAINER_RESTARTS = "sentinel_container_restarts_total"  # by = docker | sentinel | other
CONTAINER_EXITS = "sentinel_container_exits_total"  # code
OOM_EVENTS = "sentinel_oom_events_total"  # kind = host | cgroup | cuda_startup | cuda_runtime
DOCKER_UP = "sentinel_docker_up"

EXIT_CODES = ("0", "1", "2", "125", "126", "127", "130", "134", "135", "137", "139", "143", "255")
OOM_KINDS = ("host", "cgroup", "cuda_startup", "cuda_runtime")
RESTARTED_BY = ("docker", "sentinel", "other")
