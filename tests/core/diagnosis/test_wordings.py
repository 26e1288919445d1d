"""The wording of each failure, a line each, as different versions and libraries have it."""

import pytest

from sentinel.core.diagnosis.diagnose import diagnose

LAUNCH = "INFO 01-02 03:04:05 [api_server.py:1839] vLLM API server version 0.11.0\n"
READY = f"{LAUNCH}INFO:     Application startup complete.\n"

STARTING = {
    "api_server.py: error: unrecognized arguments: --max-num-sequences 4": "bad_arguments",
    "vllm serve: error: argument --dtype: invalid choice: 'fp4' (choose from 'auto')": "bad_arguments",
    "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (3).": "bad_arguments",
    "ValueError: Unknown quantization method: awqq. Must be one of ['awq'].": "bad_arguments",
    "ValueError: Quantization method specified in the model config (gptq) does not match the quantization method specified in the `quantization` argument (awq).": "bad_arguments",
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.": "bad_arguments",
    "ValueError: Model architectures ['QwenImage'] are not supported for now.": "bad_arguments",
    "ValueError: The checkpoint you are trying to load has model type `foo4` but Transformers does not recognize this architecture.": "bad_arguments",
    "ValueError: Loading x requires you to execute the configuration file; please set the option `trust_remote_code=True` to remove this error.": "bad_arguments",
    "ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (8192). This effectively limits the maximum sequence length": "bad_arguments",
    "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.": "bad_arguments",
    "RuntimeError: CUDA error: invalid device ordinal": "bad_arguments",
    "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser": "bad_arguments",
    "KeyError: 'invalid tool call parser: foo (chose from { hermes })'": "bad_arguments",
    "OSError: Incorrect path_or_model_id: '/models/foo'. Please provide either the path to a local folder or the repo_id of a model on the Hub.": "model_not_found",
    "FileNotFoundError: [Errno 2] No such file or directory: '/models/llama/config.json'": "model_not_found",
    "OSError: /models/x does not appear to have a file named config.json.": "model_not_found",
    "ValueError: Invalid repository ID or local directory specified: '/models/x'.": "model_not_found",
    "RuntimeError: Cannot find any model weights with `/models/x`": "model_not_found",
    "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. (Request ID: Root=1)": "model_not_found",
    "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/a/b/resolve/main/config.json": "model_not_found",
    "ValueError: Loading lora sql-lora failed: No adapter found for /loras/sql": "model_not_found",
    "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge": "model_not_found",
    "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach https://huggingface.co/api/models/a/b: offline mode is enabled.": "hub_unreachable",
    "requests.exceptions.SSLError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: / (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]')))\"))": "hub_unreachable",
    "requests.exceptions.ProxyError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded": "hub_unreachable",
    "requests.exceptions.ReadTimeout: (ReadTimeoutError(\"HTTPSConnectionPool(host='cdn-lfs.hf.co', port=443): Read timed out.\"))": "hub_unreachable",
    "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/models/a/b": "hub_unreachable",
    "httpx.ConnectError: [Errno -3] Temporary failure in name resolution": "hub_unreachable",
    "httpx.ConnectTimeout: timed out": "hub_unreachable",
    "OSError: We couldn't connect to 'https://huggingface.co' to load this file": "hub_unreachable",
    "OSError: [Errno 28] No space left on device": "disk_full",
    "OSError: [Errno 122] Disk quota exceeded: '~/.cache/huggingface'": "disk_full",
    "OSError: [Errno 28] No space left on device: '/dev/shm/psm_1f2e'": "shm_too_small",
    "RuntimeError: unable to open shared memory object </torch_12_34> in read-write mode: No space left on device (28)": "shm_too_small",
    "RuntimeError: unable to write to file </torch_12_34_5>: No space left on device (28)": "shm_too_small",
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).": "shm_too_small",
    "Fatal Python error: Bus error": "shm_too_small",
    "bash: line 1:     7 Bus error               (core dumped) vllm serve x": "shm_too_small",
    "OSError: [Errno 98] Address already in use": "port_in_use",
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).": "port_in_use",
    "docker: Error response from daemon: driver failed programming external connectivity on endpoint a (x): Bind for 0.0.0.0:8000 failed: port is already allocated.": "port_in_use",
    "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: nvidia-container-cli: device error: GPU-1: unknown device: unknown.": "container_runtime_error",
    "/bin/sh: 1: vllm: not found": "container_runtime_error",
    "exec /usr/bin/vllm: exec format error": "container_runtime_error",
    "TimeoutError: Timed out waiting for engines to send initial message on input socket.": "startup_timeout",
    "RuntimeError: Did not receive response from front-end process within 5 minutes": "startup_timeout",
    "AssertionError: Error in memory profiling. Initial free memory 79.1 GiB, current free memory 81.0 GiB. This happens when other processes sharing the same container release GPU memory": "gpu_memory_taken",
    "ValueError: Free memory on device cuda:1 (3.22/23.53 GiB) on startup is less than desired GPU memory utilization (0.92, 21.65 GiB).": "gpu_memory_taken",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB (GPU 0; 23.69 GiB total capacity; 22.61 GiB already allocated; 83.69 MiB free; 23.00 GiB reserved in total by PyTorch)": "cuda_oom_startup",
    "RuntimeError: CUDA error: out of memory": "cuda_oom_startup",
    "RuntimeError: CUDA out of memory occurred when warming up pooler (task='embed') with 256 dummy requests.": "cuda_oom_sampler_warmup",
    "RuntimeError: No CUDA GPUs are available": "gpu_detached",
    "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG`": "gpu_detached",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).": "cuda_launch_failure",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": "cuda_launch_failure",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': -9}": "engine_died",
}  # fmt: skip
SERVING = {
    "ERROR 01-02 03:04:05 engine.py:366] HIP out of memory. Tried to allocate 64.00 MiB. GPU 0 has a total capacity of 15.98 GiB of which 22.00 MiB is free.": "cuda_oom_runtime",
    "(RayWorkerWrapper pid=5280, ip=10.0.0.2) ERROR 04-26 01:59:07 worker_base.py:157] torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.": "cuda_oom_runtime",
    "RuntimeError: CUDA error: device-side assert triggered": "cuda_illegal_access",
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered": "cuda_illegal_access",
    "Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f. Reason: Page not present.": "cuda_illegal_access",
    "RuntimeError: CUDA error: unspecified launch failure": "cuda_launch_failure",
    "RuntimeError: CUDA error: uncorrectable ECC error encountered": "gpu_ecc",
    "[1234.567890] NVRM: Xid (PCI:0000:c6:00): 48, pid=1234, name=python3, An uncorrectable double bit error": "gpu_ecc",
    "[1234.567890] NVRM: Xid (PCI:0000:c6:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.": "gpu_lost",
    "[1234.567890] NVRM: Xid (0000:c6:00): 119, pid=99, Timeout after 6s of waiting for RPC response from GPU3 GSP!": "gpu_lost",
    "Failed to initialize NVML: Driver/library version mismatch": "gpu_lost",
    "Failed to initialize NVML: Unknown Error": "gpu_detached",
    "RuntimeError: CUDA error: no CUDA-capable device is detected": "gpu_detached",
    "ERROR 01-02 03:04:05 [core.py:1] TimeoutError: RPC call to execute_model timed out.": "worker_hung",
    "ERROR 01-02 03:04:05 client.py:250] TimeoutError('No heartbeat received from MQLLMEngine')": "engine_hung",
    "ERROR 01-02 03:04:05 client.py:250] RuntimeError('Engine loop has died')": "engine_died",
    "[rank0]:[E1002 16:06:04.5 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600009 milliseconds before timing out.": "nccl_timeout",
    "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.": "worker_died",
    "(raylet) A worker died or was killed while executing a task by an unexpected system error.": "worker_died",
    "ERROR 01-02 03:04:05 [multiproc_executor.py:300] Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.": "worker_died",
    "CRITICAL 01-02 03:04:05 launcher.py:99] AsyncLLMEngine has failed, terminating server process": "engine_died",
    "CRITICAL 01-02 03:04:05 [core_client.py:158] Got fatal signal from worker processes, shutting down. See stack trace above for root cause issue.": "engine_died",
    "ERROR 01-02 03:04:05 [core.py:340] EngineCore hit an exception: Traceback (most recent call last):": "engine_died",
    "ERROR 01-02 03:04:05 [utils.py:900] Process EngineCore_1 (PID: 123) died with exit code -11": "engine_died",
    "/entrypoint.sh: line 12:    34 Killed                  vllm serve x": "sigkill_unknown",
    "[99.1] Out of memory: Killed process 4242 (VLLM::EngineCor) total-vm:1kB, anon-rss:2kB": "host_oom",
    "[99.1] Memory cgroup out of memory: Killed process 4242 (VLLM::Worker_TP0) total-vm:1kB": "cgroup_oom",
    "(raylet) [2024-01-02 03:04:05] 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed": "host_oom",
    '{"levelname": "ERROR", "message": "EngineCore encountered a fatal error.", "exc_info": "Traceback (most recent call last):\\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"}': "cuda_oom_runtime",
    "(APIServer pid=1) INFO 01-02 03:04:05 [launcher.py:254] [shutdown] API server: shutdown triggered": "clean_stop",
    "INFO 01-02 03:04:05 launcher.py:55] Gracefully stopping http server": "clean_stop",
    "KeyboardInterrupt: MQLLMEngine terminated": "clean_stop",
    "ERROR 01-02 03:04:05 [serving_chat.py:230] Error in preprocessing prompt inputs: 'CUDA error: an illegal memory access was encountered'": "healthy",
    "WARNING 01-02 03:04:05 scheduler.py:1242] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption=51": "healthy",
    "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded": "healthy",
    "please note: CUDA out of memory. Tried to allocate 2.00 GiB": "healthy",
    "Note that Xid 79 and uncorrectable things are bad": "healthy",
}  # fmt: skip


@pytest.mark.parametrize("line", STARTING)
def test_a_start_that_fails(line: str) -> None:
    assert diagnose(f"{LAUNCH}{line}\n").cause == STARTING[line]


@pytest.mark.parametrize("line", SERVING)
def test_a_server_that_fails(line: str) -> None:
    assert diagnose(f"{READY}{line}\n").cause == SERVING[line]


OWN = "INFO 01-02 03:04:0{n} metrics.py:455] Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 40.2 tokens/s, Running: 32 reqs, Swapped: 0 reqs, Pending: 9 reqs, GPU KV cache usage: 99.1%, CPU KV cache usage: 0.0%."
WARNED = "WARNING 01-02 03:04:06 scheduler.py:1242] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption={n}"


def test_preemption_all_the_time_is_a_storm() -> None:
    lines = [OWN.format(n=1), WARNED.format(n=101), OWN.format(n=2), WARNED.format(n=151), OWN.format(n=3)]  # fmt: skip

    assert diagnose(READY + "\n".join(lines)).cause == "preemption_storm"
    assert (
        diagnose(READY + "\n".join([WARNED.format(n=1), *[OWN.format(n=1)] * 3])).cause
        == "saturated"
    )
