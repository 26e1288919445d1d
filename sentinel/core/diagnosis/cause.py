"""The words for causes, and what each of them means for what may be done.

The table reads like a field guide: whether starting the container again can help is
knowledge about vLLM, kept here and nowhere else.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    name: str
    kind: str  # crash hang oom startup config gpu host load stop none
    restart_helps: bool | None
    says: str  # one sentence for the person on call


def _cause(name: str, kind: str, restart_helps: bool | None, says: str) -> Cause:  # noqa: FBT001 - a table
    return Cause(name=name, kind=kind, restart_helps=restart_helps, says=says)


CAUSES: dict[str, Cause] = {
    cause.name: cause
    for cause in (
        _cause("clean_stop", "stop", None, "it was told to stop and did"),
        _cause("external_stop", "stop", None, "somebody outside Sentinel stopped it"),
        _cause("engine_died", "crash", True, "the engine process died and the server went with it"),
        _cause("worker_died", "crash", True, "a worker process died and took the engine with it"),
        _cause("worker_hung", "hang", True, "a worker did not answer the engine in time"),
        _cause("nccl_timeout", "hang", True, "a collective operation between GPUs timed out"),
        _cause(
            "host_oom", "oom", True, "the host ran out of memory and the kernel killed a process"
        ),
        _cause("cgroup_oom", "oom", True, "the container hit its memory limit"),
        _cause("cuda_oom_runtime", "oom", True, "the GPU ran out of memory while serving"),
        _cause(
            "cuda_oom_startup", "oom", False, "the GPU ran out of memory while the model loaded"
        ),
        _cause(
            "cuda_oom_sampler_warmup",
            "oom",
            False,
            "the GPU ran out of memory while warming up the sampler; a lower --max-num-seqs helps",
        ),
        _cause(
            "gpu_memory_taken",
            "startup",
            False,
            "something else holds the GPU memory that this start needs",
        ),
        _cause(
            "kv_cache_too_small",
            "config",
            False,
            "one request of --max-model-len does not fit into the KV cache",
        ),
        _cause("no_kv_cache_memory", "config", False, "no GPU memory is left for the KV cache"),
        _cause("mamba_cache_too_small", "config", False, "--max-num-seqs exceeds the Mamba cache"),
        _cause("port_in_use", "config", False, "its port is taken by another process"),
        _cause("bad_arguments", "config", False, "vLLM refuses its own command line"),
        _cause("model_not_found", "config", False, "the model it is told to serve is not there"),
        _cause("hub_unreachable", "host", False, "the model hub cannot be reached"),
        _cause("disk_full", "host", False, "a disk it needs is full"),
        _cause("startup_timeout", "startup", False, "loading took longer than vLLM allows"),
        _cause("cuda_illegal_access", "crash", True, "the GPU reported an illegal memory access"),
        _cause("cuda_launch_failure", "gpu", None, "the GPU could not run a kernel"),
        _cause("gpu_ecc", "gpu", None, "the GPU reported an uncorrectable memory error"),
        _cause(
            "sigkill_unknown", "crash", True, "it was killed with SIGKILL; nothing says by whom"
        ),
        _cause("engine_hung", "hang", True, "the engine makes no progress though work waits"),
        _cause("container_runtime_error", "startup", False, "Docker could not start the process"),
        _cause("unknown", "none", None, "nothing says why"),
    )
}
