"""One case after the other: recorded logs, logs of other versions, exit codes, inspects, metrics."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.diagnosis.advice import _ADVICE
from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.diagnose import Diagnosis, diagnose

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOGS = Path(__file__).parent / "logs"

CPU, CONTAINER, GPU = "vllm-0.32.0-cpu", "vllm-0.32.0-cpu-container", "vllm-0.22.1-h200"
EXPECTED = {
    f"{GPU}/log_gpu_engine_sigkill.txt": ("engine_died", None),
    f"{GPU}/log_gpu_healthy.txt": ("healthy", None),
    f"{GPU}/log_gpu_runtime_oom.txt": ("cuda_oom_runtime", "1.96 GiB were asked for and 1.68 GiB of 139.80 GiB were free"),
    f"{GPU}/log_gpu_start_kv_too_small.txt": ("kv_cache_too_small", "--max-model-len ≤ 8656: one request at 131072 needs 16 GiB of KV cache and 1.06 are there"),
    f"{CPU}/log_0.32_enginecore_sigkill_rc0.txt": ("engine_died", None),
    f"{CPU}/log_0.32_sigterm_drain30_rc0.txt": ("clean_stop", None),
    f"{CPU}/log_0.32_start_badarg.txt": ("bad_arguments", "unrecognized arguments: --max-num-sequences"),
    f"{CPU}/log_0.32_start_kvsmall.txt": ("unknown", "get the whole log"),
    f"{CPU}/log_0.32_start_mns0.txt": ("bad_arguments", "SchedulerConfig"),
    f"{CPU}/log_0.32_start_portconflict.txt": ("port_in_use", "ss -ltnp"),
    f"{CPU}/log_0.32_start_toolong.txt": ("bad_arguments", "User-specified max_model_len (999999)"),
    f"{CPU}/log_0.32_worker_hang_rpc_timeout_rc0.txt": ("worker_hung", "sample_tokens"),
    f"{CPU}/log_0.32_worker_sigkill_rc0.txt": ("worker_died", None),
    f"{CONTAINER}/log_engine_sigkill_in_flight_rc0.txt": ("engine_died", None),
    f"{CONTAINER}/log_keep_alive_after_engine_sigkill.txt": ("engine_died", None),
    f"{CONTAINER}/log_sigterm_idle_rc0.txt": ("clean_stop", None),
    f"{CONTAINER}/log_sigterm_in_flight_waits_for_clients_rc0.txt": ("clean_stop", None),
    f"{CONTAINER}/log_start_ambiguous_option_rc2.txt": ("bad_arguments", "ambiguous option: --max-num-s"),
    f"{CONTAINER}/log_start_hub_offline_rc1.txt": ("hub_unreachable", "HF_HUB_OFFLINE"),
    f"{CONTAINER}/log_start_invalid_value_rc2.txt": ("bad_arguments", "invalid int value: '1k'"),
    f"{CONTAINER}/log_start_kv_too_small_rc1.txt": ("kv_cache_too_small", None),
    f"{CONTAINER}/log_start_model_not_found_rc1.txt": ("model_not_found", "mounted"),
    f"{CONTAINER}/log_start_no_sequences_rc1.txt": ("bad_arguments", "max_num_batched_tokens"),
    f"{CONTAINER}/log_start_too_few_batched_tokens_rc1.txt": ("bad_arguments", "max_num_batched_tokens (16) must be greater"),
    f"{CONTAINER}/log_start_unknown_option_rc2.txt": ("bad_arguments", "--max-num-sequences 4"),
    "0.5.0_iteration_timeout.txt": ("worker_hung", None),
    "0.5.0_kv_small_v0.txt": ("kv_cache_too_small", "--max-model-len ≤ 22032"),
    "0.5.0_oom_runtime_v0.txt": ("cuda_oom_runtime", "1.50 GiB were asked for and 1.02 GiB of 79.15 GiB were free. Beside it process 31337 holds 78.10 GiB."),
    "0.5.5_nccl_watchdog_multiproc.txt": ("nccl_timeout", "ALLREDUCE did not end within 600 s"),
    "0.6.3_mq_engine_died.txt": ("engine_died", None),
    "0.6.6_shm_nccl.txt": ("shm_too_small", "A segment of 9 MiB did not fit"),
    "0.6.6_sigterm_v0.txt": ("clean_stop", None),
    "0.7.3_v1_fatal_signal_sampler_oom.txt": ("cuda_oom_sampler_warmup", "a lower --max-num-seqs to 512"),
    "0.8.5_gated_model.txt": ("model_not_found", "HF_TOKEN"),
    "0.8.5_quantization_capability.txt": ("bad_arguments", "Minimum capability: 80"),
    "0.9.1_free_memory.txt": ("gpu_memory_taken", "13.57 GiB are held by others"),
    "0.9.2_worker_killed.txt": ("worker_died", None),
    "0.10.2_ecc.txt": ("gpu_ecc", "ROW_REMAPPER"),
    "0.10.2_illegal_access.txt": ("cuda_illegal_access", None),
    "0.11.0_sigterm.txt": ("clean_stop", None),
    "0.12.0_kv_none.txt": ("no_kv_cache_memory", "3.31 GiB are missing before the first block. The weights take 51.9 GiB"),
    "0.14.0_hub_unreachable_proxy.txt": ("hub_unreachable", None),
    "0.16.0_startup_timeout.txt": ("startup_timeout", "given up after 600 s"),
    "0.17.1_hip_oom_startup.txt": ("cuda_oom_startup", "192.00 GiB were asked for and 59.93 GiB"),
    "0.19.0_dp_engine_core_killed.txt": ("engine_died", None),
    "0.25.0_external_sigterm_to_the_group.txt": ("external_stop", None),
    "0.27.1_gpu_detached.txt": ("gpu_detached", "had its GPU and lost it"),
    "0.28.0_gpu_lost.txt": ("gpu_lost", "rebooted"),
    "0.28.0_mamba.txt": ("mamba_cache_too_small", "--max-num-seqs ≤ 674 (now 1024)"),
    "0.28.0_worker_sigbus.txt": ("shm_too_small", "--ipc=host"),
    "0.33.0_disk_full.txt": ("disk_full", "df -h"),
    "0.33.0_hung_by_its_own_lines.txt": ("engine_hung", None),
    "0.33.0_port_uvicorn.txt": ("port_in_use", "Port 8080"),
    "0.33.0_saturated_by_its_own_lines.txt": ("saturated", None),
    "0.33.0_unknown_architecture.txt": ("bad_arguments", "['FooForCausalLM'] are not supported"),
    "two_launches_the_last_serves.txt": ("healthy", None),
    "multi_line_prompt.txt": ("healthy", None),
}  # fmt: skip


def log(name: str) -> bytes:
    return ((FIXTURES if "/" in name else LOGS) / name).read_bytes()


def metrics(*names: str) -> list[str]:
    return [next(FIXTURES.glob(f"*/metrics_{name}.txt")).read_text() for name in names]


def test_every_log_there_is_has_an_expectation() -> None:
    recorded = {f"{file.parent.name}/{file.name}" for file in FIXTURES.glob("*/log_*.txt")}

    assert set(EXPECTED) == recorded | {file.name for file in LOGS.glob("*.txt")}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_log_has_its_cause_and_its_own_advice(name: str) -> None:
    cause, advice = EXPECTED[name]

    found = diagnose(log(name))

    assert found.cause == cause
    assert (advice or "") in found.advice
    assert found.evidence
    assert 0 <= found.confidence <= 1


@pytest.mark.parametrize(
    "name", [name for name, (cause, _) in EXPECTED.items() if cause not in ("healthy", "unknown")]
)
def test_evidence_points_at_a_line_of_the_log(name: str) -> None:
    lines = log(name).decode().split("\n")

    for one in diagnose(log(name)).evidence:
        assert one.line is not None
        assert 1 <= one.line <= len(lines)


# what others put before a line

DRESSES = {
    "docker logs -t": lambda line: f"2026-01-02T03:04:05.123456789Z {line}",
    "Compose": lambda line: f"vllm-1  | {line}",
    "Compose with times": lambda line: f"vllm-1  | 2026-01-02T03:04:05.123456789Z {line}",
    "Kubernetes": lambda line: f"2026-01-02T03:04:05.123456789+00:00 stderr F {line}",
    "journald": lambda line: f"Jan 02 03:04:05 gpu-7 vllm-a[4242]: {line}",
    "a terminal": lambda line: f"\x1b[0;36m{line}\x1b[0m\r",
    "json-file": lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "…"}),
}


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("name", EXPECTED)
def test_what_stands_before_a_line_changes_nothing(name: str, dress: str) -> None:
    bare = diagnose(log(name))
    dressed = "\n".join(DRESSES[dress](line) for line in log(name).decode().split("\n"))

    found = diagnose(dressed)

    assert (found.cause, found.confidence) == (bare.cause, bare.confidence)
    assert [one.line for one in found.evidence] == [one.line for one in bare.evidence]


# what users send

CAUSED = [name for name, (cause, _) in EXPECTED.items() if cause not in ("healthy", "unknown")]
CALM = log(f"{GPU}/log_gpu_healthy.txt").decode()
REQUESTS = [
    "INFO 01-02 03:04:05 logger.py:37] Received request cmpl-1: prompt: {}, params: SamplingParams(n=1), lora_request: None.",
    "(APIServer pid=1) INFO 01-02 03:04:05 [logger.py:40] Received request cmpl-1: prompt: {}, params: SamplingParams(n=1), prompt_token_ids: [1], prompt_embeds shape: None, lora_request: None.",
    "(APIServer pid=1) DEBUG 01-02 03:04:05 [x.py:40] Request cmpl-1 details: prompt: {}, prompt_token_ids: [1], prompt_embeds shape: None.",
    "(APIServer pid=1) INFO 01-02 03:04:05 [logger.py:61] Generated response cmpl-1: output: {}, output_token_ids: [1], finish_reason: stop",
]  # fmt: skip


@pytest.mark.parametrize("request_line", REQUESTS, ids=["V0", "V1", "details", "output"])
@pytest.mark.parametrize("name", CAUSED)
def test_no_log_in_a_prompt_is_believed(name: str, request_line: str) -> None:
    text = log(name).decode()
    raw = "\n".join(text.replace("params", "").replace("prompt_token_ids", "").splitlines()[-150:])
    for quoted in (repr(text), f"'{raw}'"):
        found = diagnose(f"{CALM}\n{request_line.format(quoted)}\n{CALM.splitlines()[-1]}\n")

        assert found.cause == "healthy"
        assert "asked for" not in str(found)


FAULT = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
QUOTED = f"what is this:\n{FAULT}\nRuntimeError: CUDA error: an illegal memory access was encountered\nNVRM: Xid (PCI:0000:c6:00): 79, pid=1\nKilled"
FRONT = {
    "a body": "(APIServer pid=1) DEBUG 01-02 03:04:05 [request_logger.py:74] Request cmpl-1 JSON body: {}",
    "a front's error": "(APIServer pid=1) ERROR 01-02 03:04:05 [serving_chat.py:230] jinja2.exceptions.TemplateError: {}",
    "a handler's error": "(APIServer pid=1) ERROR 01-02 03:04:05 [exception.py:18] ValueError: {}",
}  # fmt: skip


@pytest.mark.parametrize("form", FRONT)
def test_what_the_server_says_of_a_request_is_not_believed(form: str) -> None:
    head = FRONT[form].partition("]")[0]
    lines = FRONT[form].format(QUOTED).replace("\n", f"\r\n{head}] ")

    assert diagnose(f"{CALM}\n{lines}\n").cause == "healthy"


def test_nor_is_what_an_unhandled_request_ran_into() -> None:
    text = f"ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File x\nValueError: {QUOTED}\n"
    oom = f"ERROR 01-02 03:04:05 [core.py:1] {FAULT}\n"
    dead = (
        "vllm.engine.async_llm_engine.AsyncEngineDeadError: Background loop has errored already.\n"
    )

    assert diagnose(f"{CALM}\n{text}").cause == "healthy"
    assert diagnose(f"{CALM}\n{text}{oom}").cause == "cuda_oom_runtime"
    assert diagnose(f"{CALM}\n{text}(EngineCore pid=9) {FAULT}\n").cause == "cuda_oom_runtime"
    assert diagnose(f"{CALM}\n{text}{dead}").cause == "engine_died"


JSON = [
    {"levelname": "INFO", "name": "vllm.entrypoints.logger", "message": f"Received request cmpl-1: prompt: '{QUOTED}', params: SamplingParams(n=1)"},
    {"levelname": "DEBUG", "name": "vllm.entrypoints.serve.utils.request_logger", "message": f"Request cmpl-1 JSON body: {QUOTED!r}"},
    {"levelname": "ERROR", "name": "vllm.entrypoints.serve.exception_handling.handlers.exception", "message": "Exception caught. Request id: x", "exc_info": f"ValueError: {QUOTED}"},
    {"levelname": "ERROR", "name": "uvicorn.error", "message": "Exception in ASGI application", "exc_info": f"ValueError: {QUOTED}"},
    {"levelname": "INFO", "name": "uvicorn.access", "message": f'10.0.0.1:5 - "GET /{FAULT} HTTP/1.1" 500'},
]  # fmt: skip


@pytest.mark.parametrize("record", JSON, ids=["prompt", "body", "handler", "unhandled", "access"])
def test_nor_is_any_of_that_written_as_json(record: dict[str, str]) -> None:
    died = {"levelname": "ERROR", "name": "vllm.v1.engine.core", "message": "x", "exc_info": FAULT}

    assert diagnose(f"{CALM}\n{json.dumps(record)}\n").cause == "healthy"
    assert (
        diagnose(f"{CALM}\n{json.dumps(record)}\n{json.dumps(died)}\n").cause == "cuda_oom_runtime"
    )


def test_the_access_log_is_never_believed() -> None:
    line = 'INFO:     10.0.0.1:5 - "POST /v1/x?torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB HTTP/1.1" 500 Internal Server Error'

    assert diagnose(f"{CALM}\n{line}\n").cause == "healthy"


@pytest.mark.parametrize("level", ["INFO", "WARNING", "DEBUG"])
@pytest.mark.parametrize(
    "text",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "[Errno 98] address already in use",
        "engine: Timed out waiting for engine core processes",
    ],
)
def test_a_quiet_line_accuses_nobody(level: str, text: str) -> None:
    assert diagnose(f"{CALM}\n{level} 01-02 03:04:05 [x.py:1] {text}\n").cause == "healthy"


def test_neither_prompts_nor_secrets_come_out() -> None:
    text = (
        "usage: vllm serve\nvllm: error: unrecognized arguments: --api-key s3cr3t --hf-token=s3cr3t"
    )
    found = diagnose(text)

    assert found.cause == "bad_arguments"
    assert "s3cr3t" not in json.dumps(found.as_json())


# several launches


def test_only_the_last_launch_counts() -> None:
    dead, alive = log("0.9.1_free_memory.txt").decode(), log("0.11.0_sigterm.txt").decode()

    assert diagnose(dead + alive).cause == "clean_stop"
    assert diagnose(alive + dead).cause == "gpu_memory_taken"


def test_engines_that_start_side_by_side_are_one_launch() -> None:
    init = "(EngineCore_DP{n} pid={n}) INFO 01-02 03:04:05 [core.py:1] Initializing a V1 LLM engine (v0.19.0) with config: x"
    bad = "(EngineCore_DP0 pid=0) ERROR 01-02 03:04:05 [core.py:2] ValueError: No available memory for the cache blocks."

    assert (
        diagnose("\n".join([init.format(n=0), bad, init.format(n=1)])).cause == "no_kv_cache_memory"
    )


def test_a_death_after_the_order_to_stop_is_its_consequence() -> None:
    text = log("0.11.0_sigterm.txt").decode() + "terminate called after throwing an instance of 'x'"

    assert diagnose(text).cause == "clean_stop"


TAIL = """\
INFO:     10.0.0.1:51016 - "POST /v1/completions HTTP/1.1" 200 OK
(EngineCore_DP0 pid=9) ERROR 01-02 03:04:05 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
"""


def test_of_a_log_that_begins_late_an_answer_shows_that_it_served() -> None:
    assert diagnose(TAIL).cause == "cuda_oom_runtime"
    assert diagnose(TAIL.splitlines()[1]).cause == "cuda_oom_startup"


# exit codes and inspects


def inspect(**state: Any) -> dict[str, Any]:
    host = state.pop("host", {})
    return {"Id": "c", "Name": "/a", "State": {"Status": "exited", **state}, "HostConfig": host}


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        pytest.param({"exit_code": 137, "inspect": inspect(ExitCode=137)}, "sigkill_unknown", id="137 alone is no OOM"),
        pytest.param({"inspect": inspect(ExitCode=137, OOMKilled=True, host={"Memory": 1 << 34})}, "cgroup_oom", id="the limit was hit"),
        pytest.param({"inspect": inspect(ExitCode=137, OOMKilled=True)}, "cgroup_oom", id="OOM, and no word of a limit"),
        pytest.param({"inspect": inspect(ExitCode=0, OOMKilled=True, host={"Memory": 0})}, "host_oom", id="OOM without a limit, a child killed"),
        pytest.param({"inspect": [inspect(ExitCode=137, OOMKilled=True)]}, "cgroup_oom", id="the list docker prints"),
        pytest.param({"inspect": inspect(ExitCode=143)}, "external_stop", id="SIGTERM before its handler"),
        pytest.param({"inspect": inspect(ExitCode=130)}, "external_stop", id="SIGINT"),
        pytest.param({"inspect": inspect(ExitCode=135)}, "shm_too_small", id="SIGBUS"),
        pytest.param({"inspect": inspect(ExitCode=139)}, "engine_died", id="SIGSEGV"),
        pytest.param({"inspect": inspect(ExitCode=127)}, "container_runtime_error", id="no such command"),
        pytest.param({"inspect": inspect(ExitCode=128, Error="failed to create task: nvidia-container-cli: initialization error: nvml error: driver/library version mismatch")}, "container_runtime_error", id="the toolkit refuses"),
        pytest.param({"inspect": inspect(Status="created", ExitCode=128, Error="driver failed programming external connectivity on endpoint a: Bind for 0.0.0.0:8000 failed: port is already allocated")}, "port_in_use", id="Docker's own port"),
        pytest.param({"inspect": inspect(Status="created", ExitCode=128, Error="write /var/lib/docker/x: no space left on device")}, "disk_full", id="Docker's own disk"),
        pytest.param({"inspect": inspect(ExitCode=0)}, "unknown", id="0 proves nothing"),
        pytest.param({"inspect": inspect(ExitCode=1)}, "unknown", id="1 says nothing"),
        pytest.param({"inspect": inspect(ExitCode=2)}, "bad_arguments", id="2 is a usage"),
    ],
)  # fmt: skip
def test_what_ended_without_a_log(given: dict[str, Any], cause: str) -> None:
    found = diagnose(**given)

    assert found.cause == cause
    assert {one.source for one in found.evidence} <= {"exit_code", "inspect"}
    assert found.evidence


@pytest.mark.parametrize(
    ("name", "given", "cause"),
    [
        pytest.param("0.9.2_worker_killed.txt", {"inspect": inspect(ExitCode=0, OOMKilled=True, host={"Memory": 1 << 34})}, "cgroup_oom", id="who killed the worker"),
        pytest.param("0.9.1_free_memory.txt", {"inspect": inspect(ExitCode=1, OOMKilled=True)}, "gpu_memory_taken", id="the log names a root of its own"),
        pytest.param(f"{CONTAINER}/log_sigterm_idle_rc0.txt", {"exit_code": 137}, "external_stop", id="a stop that timed out"),
        pytest.param(f"{CONTAINER}/log_sigterm_idle_rc0.txt", {"exit_code": 0}, "clean_stop", id="a stop"),
        pytest.param("0.11.0_sigterm.txt", {"exit_code": 143}, "external_stop", id="an old one, killed"),
        pytest.param(f"{GPU}/log_gpu_healthy.txt", {"inspect": inspect(Status="running", Running=True)}, "healthy", id="it runs"),
        pytest.param(f"{GPU}/log_gpu_healthy.txt", {"exit_code": 137}, "sigkill_unknown", id="killed from outside"),
        pytest.param(f"{GPU}/log_gpu_healthy.txt", {"exit_code": 0}, "unknown", id="too old to say that it was stopped"),
        pytest.param("0.28.0_worker_sigbus.txt", {"inspect": inspect(ExitCode=1, host={"ShmSize": 1 << 26})}, "shm_too_small", id="shared memory"),
    ],
)  # fmt: skip
def test_a_log_and_how_it_ended(name: str, given: dict[str, Any], cause: str) -> None:
    assert diagnose(log(name), **given).cause == cause


def test_the_size_of_shared_memory_is_said() -> None:
    found = diagnose(
        log("0.28.0_worker_sigbus.txt"), inspect=inspect(ExitCode=1, host={"ShmSize": 1 << 26})
    )

    assert "It has 64 MiB now" in found.advice


# metrics


def test_two_looks_at_a_hang() -> None:
    found = diagnose(metrics=metrics("0.32_hung_inflight_t0", "0.32_hung_inflight_t15"), apart=15)

    assert found.cause == "engine_hung"
    assert found.confidence == 0.8
    assert found.evidence[0].text == (
        "engine 0: 8 running, 0 waiting, KV cache 0.3% full, and nothing moved in 15 s"
    )


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        ("gpu_hung_t0", "gpu_hung_t12", "engine_hung"),
        ("0.32_saturated_t0", "0.32_saturated_t6", "saturated"),
        ("0.32_idle_fresh", "0.32_after_40_requests", "healthy"),
        ("0.32_idle_fresh", "0.32_busy_healthy", "healthy"),
        ("0.32_idle_fresh", "0.32_idle_fresh", "healthy"),
        ("0.32_after_40_requests", "0.32_idle_fresh", "unknown"),
    ],
)
def test_two_looks(before: str, after: str, cause: str) -> None:
    assert diagnose(metrics=metrics(before, after)).cause == cause


def look(
    values: dict[str, float], usage: str = "vllm:kv_cache_usage_perc", engine: str = "0"
) -> str:
    labels = f'{{engine="{engine}",model_name="m"}}' if engine else '{model_name="m"}'
    return "".join(
        f"{usage if name == 'kv' else f'vllm:{name}'}{labels} {value}\n"
        for name, value in values.items()
    )


BUSY = {"num_requests_running": 8.0, "num_requests_waiting": 20.0, "kv": 0.99, "generation_tokens_total": 100.0, "num_preemptions_total": 0.0, "request_success_total": 0.0}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param({}, "engine_hung", id="nothing moves"),
        pytest.param({"kv": 0.991}, "saturated", id="only the KV cache creeps: a long prefill"),
        pytest.param({"generation_tokens_total": 900.0}, "saturated", id="tokens flow"),
        pytest.param({"generation_tokens_total": 110.0, "num_preemptions_total": 500.0, "request_success_total": 1.0}, "preemption_storm", id="far more thrown out than finished"),
        pytest.param({"generation_tokens_total": 900.0, "num_preemptions_total": 30.0, "request_success_total": 9.0, "num_requests_waiting": 12.0}, "saturated", id="some thrown out, and the queue falls"),
        pytest.param({"generation_tokens_total": 900.0, "num_requests_waiting": 0.0, "kv": 0.5}, "healthy", id="the queue is gone"),
        pytest.param({"generation_tokens_total": 1.0}, "unknown", id="it was started again"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("kv", "engine"),
    [("vllm:kv_cache_usage_perc", "0"), ("vllm:gpu_cache_usage_perc", "")],
    ids=["0.9 and later", "V0"],
)
def test_two_looks_at_any_version(
    changes: dict[str, float], cause: str, kv: str, engine: str
) -> None:
    before, after = look(BUSY, kv, engine), look({**BUSY, **changes}, kv, engine)

    assert diagnose(metrics=[before, after], apart=30).cause == cause


def test_one_engine_of_several_may_hang_alone() -> None:
    moving = {**BUSY, "generation_tokens_total": 900.0}
    before = look(BUSY, engine="0") + look(BUSY, engine="1")
    after = look(moving, engine="0") + look(BUSY, engine="1")

    found = diagnose(metrics=[before, after])

    assert found.cause == "engine_hung"
    assert "engine 1" in found.evidence[0].text


def test_requests_that_end_and_that_no_engine_saw_are_a_hang() -> None:
    still = look(
        {"num_requests_running": 0, "num_requests_waiting": 0, "generation_tokens_total": 9}
    )
    served = 'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} '

    assert diagnose(metrics=[f"{still}{served}1", f"{still}{served}6"]).cause == "engine_hung"
    assert diagnose(metrics=[f"{still}{served}1", f"{still}{served}1"]).cause == "healthy"


def test_a_sleeping_engine_is_not_hung() -> None:
    asleep = look(BUSY) + 'vllm:engine_sleep_state{engine="0",sleep_state="awake"} 0.0\n'

    assert diagnose(metrics=[asleep, asleep]).cause == "healthy"


@pytest.mark.parametrize("text", ["", "up 1\n", "vllm:num_requests_running{broken 1\n"])
def test_metrics_without_vllm_are_no_data(text: str) -> None:
    assert diagnose(metrics=[text, text]).cause == "unknown"


# the whole


@pytest.mark.parametrize("name", CAUSES)
def test_every_cause_has_advice_also_where_nothing_is_known(name: str) -> None:
    assert name in _ADVICE
    assert CAUSES[name].says


def test_the_json_is_what_the_contract_says() -> None:
    found = diagnose(log("0.9.1_free_memory.txt"), exit_code=1).as_json()

    assert found["kind"] == "startup"
    assert found["act"] == "page"
    assert (found["restart_helps"], found["lower_max_num_seqs_helps"]) == (False, False)
    assert found["evidence"][0]["line"] == 7
    assert found["evidence"][-1] == {"source": "exit_code", "line": None, "text": "exit code 1"}


@given(st.binary(max_size=2000), st.integers(0, 255))
def test_nothing_that_is_fed_is_too_much(data: bytes, code: int) -> None:
    found = diagnose(data, exit_code=code)

    assert isinstance(found, Diagnosis)
    assert found.cause in CAUSES
