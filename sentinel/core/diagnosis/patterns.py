"""The words by which vLLM, torch, NCCL, Hugging Face and the kernel name a cause, 0.5 to 0.33.

Read from released sources and public reports; where versions differ, all wordings stand side
by side. Within one line of a log the first pattern wins, so the narrower stand before the
wider.
"""

from sentinel.core.diagnosis.death_words import CONSEQUENCES, PARTS
from sentinel.core.diagnosis.gpu_words import ANY_GPU, GPU
from sentinel.core.diagnosis.memory_words import GPU_MEMORY, HOST_MEMORY, SHARED_MEMORY
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.start_words import ARGUMENTS, MODEL, PORT, RUNTIME

# "cuda_oom" stands for two causes; which one it is shows in whether the server ever served.
PATTERNS: tuple[Pattern, ...] = (
    *SHARED_MEMORY,
    *GPU_MEMORY,
    *GPU,
    *HOST_MEMORY,
    *PORT,
    *RUNTIME,
    *MODEL,
    *ARGUMENTS,
    *ANY_GPU,
    *PARTS,
    *CONSEQUENCES,
)

# What says more of a cause that another line named, and takes its place when it comes later.
NARROWER: dict[str, frozenset[str]] = {
    "cuda_oom": frozenset({"cuda_oom_sampler_warmup"}),
    "disk_full": frozenset({"shm_too_small"}),
    "cuda_launch_failure": frozenset({"gpu_ecc", "gpu_lost", "gpu_detached"}),
    "cuda_illegal_access": frozenset({"gpu_ecc", "gpu_lost"}),
    "nccl_timeout": frozenset({"shm_too_small", "gpu_ecc", "gpu_lost"}),
    "worker_died": frozenset({"shm_too_small"}),
}
