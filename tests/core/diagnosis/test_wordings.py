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
    "RuntimeError: Insufficient space in /dev/shm for ShmRingBuffer: 160 MiB required, 63 MiB free. Increase /dev/shm (e.g. --shm-size or --ipc=host).": "shm_too_small",
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
    "RuntimeError: CUDA driver error: out of memory": "cuda_oom_startup",
    "RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62": "cuda_oom_startup",
    "RuntimeError: Triton Error [CUDA]: out of memory": "cuda_oom_startup",
    "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 192.00 MiB. GPU 0 has a total capacity of 15 GiB.": "cuda_oom_startup",
    "ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try increasing `gpu_memory_utilization`.": "no_kv_cache_memory",
    "ValueError: Available memory on node 0 (9.1/62.7 GiB) on kv cache allocation is less than requested memory for kv (40.0 GiB). Decrease --kv-cache-memory-bytes, VLLM_CPU_KVCACHE_SPACE, ": "no_kv_cache_memory",
    "ValueError: Available memory on node 0 (12.5/62.7 GiB) on startup is less than desired CPU memory utilization (0.92, 57.7 GiB). Decrease --gpu-memory-utilization": "gpu_memory_taken",
    "RuntimeError: DP Coordinator process failed to report ZMQ addresses within timeout=30 seconds during startup.": "startup_timeout",
    "RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)": "nccl_timeout",
    "OSError: It looks like the config file at '/models/x/config.json' is not a valid JSON file.": "model_not_found",
    "ValueError: Following weights were not initialized from checkpoint: {'model.layers.3.mlp.gate'}": "model_not_found",
    "RuntimeError: Cannot find any safetensors model weights with `s3://models/x`": "model_not_found",
    "ValueError: Could not find checkpoint files '/models/x', only pre-sharded checkpoints are currently supported!": "model_not_found",
    "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376. Reducing block sizes or `num_stages` may help.": "cuda_launch_failure",
    "RuntimeError: CUDA out of memory occurred when warming up pooler (task='embed') with 256 dummy requests.": "cuda_oom_sampler_warmup",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination": "cuda_launch_failure",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW": "cuda_launch_failure",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 2: out of memory": "cuda_oom_startup",
    "AssertionError: Torch not compiled with CUDA enabled": "cuda_launch_failure",
    "RuntimeError: CUDA error: operation not supported": "cuda_launch_failure",
    "AssertionError: 151936 is not divisible by 3": "bad_arguments",
    "ValueError: Too large swap space. 64.00 GiB out of the 62.00 GiB total CPU memory is allocated for the swap space.": "bad_arguments",
    "ValueError: Current node has no GPU available. current_node_resource={'CPU': 8.0}. vLLM engine cannot start without GPU.": "bad_arguments",
    "ValueError: Unrecognized configuration class <class 'transformers_modules.x'> for this kind of AutoModel: AutoModelForCausalLM.": "bad_arguments",
    "OSError: [Errno 99] Cannot assign requested address": "bad_arguments",
    "ERROR:    [Errno 13] error while attempting to bind on address ('0.0.0.0', 80): permission denied": "bad_arguments",
    "modelscope.hub.errors.NotExistError: Failed to request model: x/y, the model may not exist": "model_not_found",
    "PermissionError: [Errno 13] Permission denied: '/root/.cache/vllm'": "unknown",
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
    "(EngineCore pid=9) ERROR 01-02 03:04:05 [ray_executor_v2.py:523] RayWorkerProc rank=[1] died unexpectedly, shutting down executor.": "worker_died",
    "terminate called after throwing an instance of 'std::bad_alloc'": "host_oom",
    "MemoryError: Not enough space in the data buffer, try calling free_buf() to free up space": "healthy",
    "ray.exceptions.NodeDiedError: Task failed due to the node dying.": "worker_died",
    "ERROR 01-02 03:04:05 [core.py:1] RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer [10.0.0.2]:41231": "nccl_timeout",
    "RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered": "cuda_illegal_access",
    "ERROR 01-02 03:04:05 [core.py:1] RuntimeError: CUDA error: context is destroyed": "cuda_launch_failure",
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
    "Jan  2 03:04:05 gpu-7 kernel: [99.1] Memory cgroup out of memory: Kill process 4242 (python3) score 1974 or sacrifice child": "cgroup_oom",
    "[Thu Jan  2 03:04:05 2026] Task in /docker/ab killed as a result of limit of /docker/ab": "cgroup_oom",
    "[99.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=ab,mems_allowed=0,oom_memcg=/docker/ab,task_memcg=/docker/ab,task=python3,pid=4242,uid=0": "cgroup_oom",
    "[99.1] Out of memory: Kill process 4242 (python3) score 900 or sacrifice child": "host_oom",
    "[99.1] Out of memory (oom_kill_allocating_task): Killed process 4242 (python3) total-vm:1kB": "host_oom",
    "[99.1] oom-kill:constraint=CONSTRAINT_CPUSET,nodemask=(null),cpuset=ab,mems_allowed=0,global_oom,task_memcg=/docker/ab,task=python3,pid=4242,uid=0": "host_oom",
    "[1234.5] NVRM: Xid (PCI:0000:c6:00): 46, pid=1234, name=python3, GPU stopped processing": "gpu_lost",
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


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
HEADS = {
    "0.5 to 0.7": "ERROR 01-02 03:04:05 engine.py:366] {}",
    "0.6, rank first": "(VllmWorkerProcess pid=22) ERROR 01-02 03:04:05 multiproc_worker_utils.py:233] {}",
    "0.8": "(VllmWorker rank=3 pid=22) ERROR 01-02 03:04:05 [multiproc_executor.py:470] {}",
    "0.10": "(EngineCore_0 pid=66) ERROR 01-02 03:04:05 [core.py:700] {}",
    "two processes": "(EngineCore_DP0 pid=66) (Worker_TP0_EP0 pid=70) ERROR 01-02 03:04:05 [multiproc_executor.py:1] {}",
    "debug, with a path": "(EngineCore pid=6) ERROR 01-02 03:04:05 [v1/worker/.../sample/sampler.py:1] {}",
    "milliseconds": "ERROR 01-02 03:04:05.123 [core.py:1] {}",
    "colours": "\x1b[0;36m(EngineCore pid=6)\x1b[0;0m \x1b[31mERROR\x1b[0m \x1b[90m01-02 03:04:05\x1b[0m \x1b[90m[core.py:1]\x1b[0m {}",
    "a prefix": "[gpu-7] (EngineCore pid=6) ERROR 01-02 03:04:05 [core.py:1] {}",
    "a prefix after the process": "(EngineCore_DP0 pid=6) gpu-7/vllm-a: ERROR 01-02 03:04:05 [core.py:1] {}",
    "Ray": "\x1b[36m(RayWorkerWrapper pid=12, ip=10.0.0.2)\x1b[0m ERROR 01-02 03:04:05 [worker_base.py:1] {} [repeated 3x across cluster]",
    "torch's rank, twice": "[rank0]:[rank0]: {}",
    "logging": "2026-01-02 03:04:05,123 - vllm.v1.engine.core - ERROR - {}",
    "logging's default": "ERROR:vllm.v1.engine.core:{}",
    "level in brackets": "2026-01-02 03:04:05,123 [ERROR] vllm: {}",
    "everything in brackets": "[2026-01-02 03:04:05,123] [ERROR] [core.py:1] {}",
    "loguru": "2026-01-02 03:04:05.123 | ERROR    | vllm.v1.engine.core:run:123 - {}",
    "vLLM's JSON": '{{"asctime": "2026-01-02 03:04:05", "levelname": "ERROR", "name": "vllm.v1.engine.core", "processName": "EngineCore", "process": 66, "message": "EngineCore failed.", "exc_info": "Traceback (most recent call last):\\n  File x\\n{}"}}',
    "ECS": '{{"@timestamp": "x", "log.level": "error", "message": "EngineCore failed.", "error.stack_trace": "Traceback\\n{}"}}',
    "structlog": '{{"event": "{}", "level": "error"}}',
}  # fmt: skip


@pytest.mark.parametrize("form", HEADS)
def test_whoever_writes_the_head_of_a_line(form: str) -> None:
    assert diagnose(f"{READY}{HEADS[form].format(OOM)}\n").cause == "cuda_oom_runtime"
    assert diagnose(f"{LAUNCH}{HEADS[form].format(OOM)}\n").cause == "cuda_oom_startup"


@pytest.mark.parametrize("form", [form for form in HEADS if "ERROR" in HEADS[form]])
def test_whoever_writes_it_a_quiet_line_accuses_nobody(form: str) -> None:
    line = HEADS[form].replace("ERROR", "INFO").format(f"a note on {OOM}")

    assert diagnose(f"{READY}{line}\n").cause == "healthy"


REFUSED = """\
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File "/usr/local/lib/python3.12/dist-packages/vllm/entrypoints/openai/api_server.py", line 200, in build
(APIServer pid=1)     config = engine_args.create_engine_config(usage_context=usage_context)
(APIServer pid=1)   File "/usr/local/lib/python3.12/dist-packages/{}", line 2420, in create
(APIServer pid=1)     raise ValueError(
(APIServer pid=1) {}
"""


@pytest.mark.parametrize(
    ("file", "raised", "cause"),
    [
        ("vllm/engine/arg_utils.py", "ValueError: --x needs --y", "bad_arguments"),
        ("vllm/config.py", "NotImplementedError: LoRA is not there with that", "bad_arguments"),
        ("vllm/config/speculative.py", "ValueError: n must be divisible", "bad_arguments"),
        ("vllm/platforms/cuda.py", "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(x)", "bad_arguments"),
        ("vllm/model_executor/layers/linear.py", "ValueError: Weight input_size_per_partition = 10944 is not divisible by min_thread_k = 128.", "bad_arguments"),
        ("vllm/v1/worker/gpu_worker.py", "ValueError: what nobody has seen", "unknown"),
        ("vllm/engine/arg_utils.py", "ConnectionResetError: [Errno 104]", "unknown"),
        ("vllm/engine/arg_utils.py", "RuntimeError: CUDA error: out of memory", "cuda_oom_startup"),
    ],
)  # fmt: skip
def test_what_vllm_refuses_where_it_reads_arguments(file: str, raised: str, cause: str) -> None:
    text = REFUSED.format(file, raised)

    assert diagnose(f"{LAUNCH}{text}").cause == cause
    assert diagnose(f"{READY}{text}").cause != "bad_arguments"
    assert diagnose(text).cause != "bad_arguments"


@pytest.mark.parametrize(
    "begins",
    [
        '  File "/opt/lib/python3.11/site-packages/vllm/entrypoints/cli/main.py", line 120, in main',
        '  File "/opt/lib/python3.12/site-packages/vllm/entrypoints/openai/api_server.py", line 9, in <module>',
    ],
)
def test_it_may_refuse_before_it_says_its_name(begins: str) -> None:
    text = (
        f"Traceback (most recent call last):\n{begins}\n    args.dispatch_function(args)\n"
        '  File "/opt/lib/python3.11/site-packages/vllm/entrypoints/cli/serve.py", line 100, in cmd\n'
        "    raise ValueError(\nValueError: Cannot use more than one data parallel load balancing mode.\n"
    )

    assert diagnose(text).cause == "bad_arguments"
    assert diagnose(READY + text).cause != "bad_arguments"


def test_a_launch_that_is_written_as_json_begins_anew() -> None:
    begins = '{"levelname": "INFO", "name": "vllm.entrypoints.launchers.launcher", "message": "vLLM server version 0.32.0, serving model m", "vllm_process_name": "APIServer"}\n'
    fails = f'{{"levelname": "ERROR", "name": "vllm.v1.engine.core", "message": "{OOM}"}}\n'

    assert diagnose(begins + fails).cause == "cuda_oom_startup"
    assert diagnose(begins + fails + begins).cause == "unknown"


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8080): address already in use", 8080),
        ("OSError: [Errno 98] Address already in use", 8123),
        ("torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use", 29500),
        ("torch.distributed.DistNetworkError: The server socket has failed to bind to [::]:29501 (errno: 98 - Address already in use).", 29501),
        ("zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5555')", 5555),
    ],
)  # fmt: skip
def test_the_port_that_is_taken_is_the_one_that_is_named(line: str, port: int) -> None:
    asked = "INFO 01-02 03:04:05 [utils.py:233] non-default args: {'port': 8123, 'model': 'x'}\n"

    assert f"Port {port} is held" in diagnose(f"{LAUNCH}{asked}{line}\n").advice


def test_what_would_pass_beside_those_who_hold_the_memory_is_told() -> None:
    line = "ValueError: Free memory on device cuda:1 (3.22/23.53 GiB) on startup is less than desired GPU memory utilization (0.92, 21.65 GiB)."

    assert "--gpu-memory-utilization ≤ 0.13 is all" in diagnose(LAUNCH + line).advice
    for odd in ("3.2.2/23.53", "3.22/0", "./."):
        assert diagnose(LAUNCH + line.replace("3.22/23.53", odd)).cause == "gpu_memory_taken"


def test_the_longest_model_that_fits_is_told_also_where_vllm_does_not() -> None:
    told = "ValueError: To serve at least one request with the models's max seq len (116160), ({} KV cache is needed, which is larger than the available KV cache memory ({}). {}"
    old, new = (told.format("4.43 GB", "3.48 GB", ""), told.format("4.43 GiB", "3.48 GiB", "Based on the available memory, the estimated maximum model length is 91,200."))  # fmt: skip

    assert "--max-model-len to about 91248" in diagnose(LAUNCH + old).advice
    assert "--max-model-len ≤ 91200" in diagnose(LAUNCH + new).advice


OWN = "INFO 01-02 03:04:0{n} metrics.py:455] Avg prompt throughput: 90.0 tokens/s, Avg generation throughput: 40.2 tokens/s, Running: 32 reqs, Swapped: 0 reqs, Pending: 9 reqs, GPU KV cache usage: 99.1%, CPU KV cache usage: 0.0%."
WARNED = "WARNING 01-02 03:04:06 scheduler.py:1242] Sequence group cmpl-1 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_num_cumulative_preemption={n}"


def test_preemption_all_the_time_is_a_storm() -> None:
    lines = [OWN.format(n=1), WARNED.format(n=101), OWN.format(n=2), WARNED.format(n=151), OWN.format(n=3)]  # fmt: skip

    assert diagnose(READY + "\n".join(lines)).cause == "preemption_storm"
    assert (
        diagnose(READY + "\n".join([WARNED.format(n=1), *[OWN.format(n=1)] * 3])).cause
        == "saturated"
    )
