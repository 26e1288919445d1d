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
LOG_EVENTS = "sentinel_log_events_total"  # event
DOCKER_UP = "sentinel_docker_up"
SLOTS_MISSED = "sentinel_slots_missed_total"
RECEIVER_UP = "sentinel_receiver_up"  # 0: its oldest message failed and waits, or it is refused
STARTUP_FAILED = "sentinel_target_startup_failed"  # 1: its last start ended before it was ready
STARTING_SECONDS = "sentinel_target_starting_seconds"  # only while it starts
START_EXPECTED = "sentinel_target_start_expected_seconds"  # what its starts take at most
POOL_INFO = "sentinel_target_pool_info"  # pool
DECODE_STALLED = "sentinel_target_decode_stalled"  # 1: takes prompts in, and writes no tokens
MAX_NUM_SEQS = "sentinel_target_max_num_seqs"  # as its command line says
METRIC_MISSING = "sentinel_target_metric_missing"  # metric, and the rules that read it
MODEL_MISMATCH = "sentinel_target_model_mismatch"  # 1: another model answers than was started
REMEDY_INEFFECTIVE = "sentinel_target_remedy_ineffective"

EXIT_CODES = ("0", "1", "2", "125", "126", "127", "130", "134", "135", "137", "139", "143", "255")
OOM_KINDS = ("host", "cgroup", "cuda_startup", "cuda_runtime")
TOLD_BY_LOGS = (
    *("launch", "loading", "loaded", "kv_blocks", "ready", "preempted", "slow", "error"),
    *("oom", "worker_died", "engine_died", "start_failed", "dead_error", "stop_told", "stopping"),
)
RESTARTED_BY = ("docker", "sentinel", "other")
