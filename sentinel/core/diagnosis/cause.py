"""The words for causes, and what each of them means for what may be done.

The table reads like a field guide: whether starting the container again can help, whether a
lower --max-num-seqs can, and what must be left alone is knowledge about vLLM, kept here and
nowhere else.
"""

from dataclasses import dataclass
from typing import Literal

Act = Literal["none", "restart", "lower_max_num_seqs", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    name: str
    kind: str  # crash hang oom startup config gpu host load stop none
    restart_helps: bool | None
    says: str  # one sentence for the person on call
    lower_max_num_seqs_helps: bool | None = False
    act: Act = "page"
    avoid: str = ""  # what must not be done


CAUSES: dict[str, Cause] = {
    cause.name: cause
    for cause in (
        # stopped
        Cause(
            name="clean_stop",
            kind="stop",
            restart_helps=None,
            says="it was told to stop and did",
            act="none",
            avoid="Do not start it again because of the EngineDeadError and the 500s in its log: "
            "vLLM writes them on every stop.",
        ),
        Cause(
            name="external_stop",
            kind="stop",
            restart_helps=None,
            says="somebody outside Sentinel stopped it",
            act="none",
            avoid="Do not change flags for it, and do not start it before it is known who stopped "
            "it and why.",
        ),
        # died
        Cause(
            name="engine_died",
            kind="crash",
            restart_helps=True,
            says="the engine process died and the server went with it",
            act="restart",
            avoid="Do not take exit code 0 for a wanted stop, and do not restart without end: the "
            "third death with the same error is a matter for another version.",
        ),
        Cause(
            name="worker_died",
            kind="crash",
            restart_helps=True,
            says="a worker process died and took the engine with it",
            act="restart",
            avoid="Do not lower --max-num-seqs: it does not keep a worker from being killed.",
        ),
        Cause(
            name="sigkill_unknown",
            kind="crash",
            restart_helps=True,
            says="it was killed with SIGKILL; nothing says by whom",
            lower_max_num_seqs_helps=None,
            act="restart",
            avoid="Do not call it an OOM because of exit code 137: docker kill, a stop that timed "
            "out and old vLLM's own end give the same code.",
        ),
        # hangs
        Cause(
            name="worker_hung",
            kind="hang",
            restart_helps=True,
            says="a worker did not answer the engine in time",
            act="restart",
            avoid="Do not blame vLLM when the same GPU hangs again: look for Xid and ECC errors "
            "first.",
        ),
        Cause(
            name="engine_hung",
            kind="hang",
            restart_helps=True,
            says="the engine makes no progress though work waits",
            act="restart",
            avoid="Do not trust /health and the gauges: both stay as they were in a hang.",
        ),
        Cause(
            name="nccl_timeout",
            kind="hang",
            restart_helps=True,
            says="a collective operation between GPUs timed out",
            act="restart",
            avoid="Do not raise the time-out and wait: a collective that lost a rank never ends.",
        ),
        # memory
        Cause(
            name="host_oom",
            kind="oom",
            restart_helps=True,
            says="the host ran out of memory and the kernel killed a process",
            act="restart",
            avoid="Do not lower --max-num-seqs: it is the host's memory, not the GPU's.",
        ),
        Cause(
            name="cgroup_oom",
            kind="oom",
            restart_helps=True,
            says="the container hit its memory limit",
            act="restart",
            avoid="Do not lower --max-num-seqs: it is the container's memory, not the GPU's.",
        ),
        Cause(
            name="cuda_oom_runtime",
            kind="oom",
            restart_helps=True,
            says="the GPU ran out of memory while serving",
            lower_max_num_seqs_helps=None,
            act="restart",
            avoid="Do not tune after the first one; after the second with the same numbers stop "
            "restarting.",
        ),
        Cause(
            name="cuda_oom_startup",
            kind="oom",
            restart_helps=False,
            says="the GPU ran out of memory while the model loaded",
            lower_max_num_seqs_helps=None,
            avoid="Do not start it again unchanged: it ends the same way.",
        ),
        Cause(
            name="cuda_oom_sampler_warmup",
            kind="oom",
            restart_helps=False,
            says="the GPU ran out of memory while warming up the sampler; "
            "a lower --max-num-seqs helps",
            lower_max_num_seqs_helps=True,
            act="lower_max_num_seqs",
            avoid="Do not start it again unchanged: it ends the same way.",
        ),
        Cause(
            name="gpu_memory_taken",
            kind="startup",
            restart_helps=False,
            says="something else holds the GPU memory that this start needs",
            avoid="Do not restart in a loop, do not lower --max-num-seqs (the check comes before "
            "it matters), and do not kill a process that is not provably this container's own.",
        ),
        # what does not fit
        Cause(
            name="kv_cache_too_small",
            kind="config",
            restart_helps=False,
            says="one request of --max-model-len does not fit into the KV cache",
            avoid="Do not lower --max-num-seqs: what one request needs does not depend on it.",
        ),
        Cause(
            name="no_kv_cache_memory",
            kind="config",
            restart_helps=False,
            says="no GPU memory is left for the KV cache",
            lower_max_num_seqs_helps=None,
            avoid="Do not start it again unchanged.",
        ),
        Cause(
            name="mamba_cache_too_small",
            kind="config",
            restart_helps=False,
            says="--max-num-seqs exceeds the Mamba cache",
            lower_max_num_seqs_helps=True,
            act="lower_max_num_seqs",
            avoid="Do not start it again unchanged.",
        ),
        # how it was started
        Cause(
            name="port_in_use",
            kind="config",
            restart_helps=False,
            says="its port is taken by another process",
            avoid="Do not restart in a loop, and do not kill what listens there unseen.",
        ),
        Cause(
            name="bad_arguments",
            kind="config",
            restart_helps=False,
            says="vLLM refuses its own command line",
            avoid="Do not restart: it is refused again. If the arguments were changed just now, "
            "take the change back.",
        ),
        Cause(
            name="model_not_found",
            kind="config",
            restart_helps=False,
            says="the model it is told to serve is not there or may not be read",
            avoid="Do not restart in a loop: hubs answer that with a ban.",
        ),
        Cause(
            name="hub_unreachable",
            kind="host",
            restart_helps=False,
            says="the model hub cannot be reached",
            avoid="Do not restart in a loop: wait minutes, not seconds.",
        ),
        Cause(
            name="disk_full",
            kind="host",
            restart_helps=False,
            says="a disk it needs is full",
            avoid="Do not restart: a start writes more.",
        ),
        Cause(
            name="shm_too_small",
            kind="config",
            restart_helps=False,
            says="the container's shared memory (/dev/shm) is too small",
            avoid="Do not restart unchanged; the size is fixed when the container is made.",
        ),
        Cause(
            name="startup_timeout",
            kind="startup",
            restart_helps=False,
            says="loading took longer than vLLM allows",
            avoid="Do not restart unchanged: it throws away what was loaded.",
        ),
        Cause(
            name="container_runtime_error",
            kind="startup",
            restart_helps=False,
            says="Docker could not start the process",
            avoid="Do not touch vLLM's flags: vLLM never ran.",
        ),
        # the GPU
        Cause(
            name="cuda_illegal_access",
            kind="crash",
            restart_helps=True,
            says="the GPU reported an illegal memory access",
            act="restart",
            avoid="Do not replace the GPU for one of these: it is software until the same GPU "
            "shows it with different models.",
        ),
        Cause(
            name="cuda_launch_failure",
            kind="gpu",
            restart_helps=None,
            says="the GPU could not run a kernel",
            avoid="Do not restart in a loop.",
        ),
        Cause(
            name="gpu_ecc",
            kind="gpu",
            restart_helps=None,
            says="the GPU reported an uncorrectable memory error",
            avoid="Do not treat it as an out of memory, and do not put load back on that GPU "
            "before its row remapping has been read.",
        ),
        Cause(
            name="gpu_lost",
            kind="gpu",
            restart_helps=False,
            says="the host has lost the GPU, or its driver cannot be used",
            avoid="Do not restart or kill the container: both may hang in the driver. Do not "
            "recreate it on another GPU unasked.",
        ),
        Cause(
            name="gpu_detached",
            kind="gpu",
            restart_helps=True,
            says="the container has no access to its GPU (any more); the GPU itself may be well",
            act="restart",
            avoid="Do not replace or reset the GPU, and do not run docker update on a running GPU "
            "container.",
        ),
        # load
        Cause(
            name="saturated",
            kind="load",
            restart_helps=False,
            says="it works at its limit: requests wait, and tokens flow",
            act="none",
            avoid="Do not restart: it drops the work and starts with a cold cache.",
        ),
        Cause(
            name="preemption_storm",
            kind="load",
            restart_helps=False,
            says="it throws requests out of the KV cache faster than it finishes them",
            lower_max_num_seqs_helps=True,
            act="lower_max_num_seqs",
            avoid="Do not restart: the same load brings the same storm.",
        ),
        Cause(
            name="healthy",
            kind="none",
            restart_helps=None,
            says="nothing is wrong as far as this shows",
            act="none",
        ),
        Cause(
            name="unknown",
            kind="none",
            restart_helps=None,
            says="nothing says why",
            lower_max_num_seqs_helps=None,
            act="none",
            avoid="Do not act on a guess.",
        ),
    )
}
