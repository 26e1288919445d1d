"""The words for memory that runs out: the GPU's, the host's, the container's, shared and disk."""

from sentinel.core.diagnosis.wording import SHAPE, START, pattern

SHARED_MEMORY = (
    pattern(
        "shm_too_small",
        r"No space left on device.*/dev/shm",
        r"/dev/shm.*No space left on device",  # noqa: S108 - a text to find
        r"posix_fallocate failed ?: No space left",
        r"Error while creating shared memory segment (?P<segment>\S+) \(size (?P<size>\d+)",
        r"Insufficient space in /dev/shm for .*?: (?P<shm_wanted>\d+) MiB required, "
        r"(?P<shm_free>\d+) MiB free",
        **SHAPE,
    ),
    pattern(
        "shm_too_small",
        r"unable to (?:open|write|allocate|resize) shared memory",
        r"unable to write to file </torch|Insufficient space in /dev/shm",
        r"Error while (?:creating|attaching to) shared memory segment",
        r"insufficient shared memory \(shm\)",
        r"ncclShmOpen|Call to (?:shm_open|ftruncate) failed",
        r"^(?:Fatal Python error: |!+ )?Bus error\b|\bBus error\b.*core dumped|Signal: Bus error",
        r"(?:died unexpectedly|died, exit code).*exit code: -7\b",
        r"proc\(s\): \{[^}]*: -7\b",
        sure=0.88,
        **SHAPE,
    ),
)

GPU_MEMORY = (
    pattern(
        "cuda_oom_sampler_warmup",
        r"out of memory occurred when warming up \w+.*? with (?P<requests>\d+) dummy",
        sure=0.98,
    ),
    pattern(
        "gpu_memory_taken",
        r"Free memory on device ?(?P<device>\w+:\d+)? ?"
        r"\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup is less than desired "
        r"GPU memory utilization \((?P<utilization>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        r"Free memory on device .*less than desired",
        sure=0.98,
    ),
    pattern(
        "gpu_memory_taken",
        r"Available memory on (?P<device>node \d+) \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on "
        r"startup is less than desired CPU memory utilization "
        r"\((?P<utilization>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        sure=0.9,
    ),
    pattern("gpu_memory_taken", r"Error in memory profiling\.", sure=0.85, **START),
    pattern(
        "kv_cache_too_small",
        r"max seq len \((?P<asked_len>[\d,]+)\), \(?(?P<needed>[\d.]+) Gi?B KV cache is needed, "
        r"which is larger than the available KV cache memory \((?P<available>[\d.]+) Gi?B\)"
        r"(?:.*estimated maximum model length is (?P<fits>[\d,]+))?",
        r"max seq len \((?P<asked_tokens>\d+)\) is larger than the maximum number of tokens that "
        r"can be stored in KV cache \((?P<holds>\d+)\)",
        sure=0.98,
    ),
    pattern(
        "kv_cache_too_small",
        r"To serve at least one request with|number of tokens that can be stored in KV",
    ),
    pattern(
        "no_kv_cache_memory",
        r"No available memory for the cache blocks|Cannot auto-fit max_model_len: not enough",
        r"on kv cache allocation is less than requested memory for kv",
        sure=0.98,
    ),
    pattern(
        "mamba_cache_too_small",
        r"max_num_seqs \((?P<asked_seqs>\d+)\) exceeds (?:the )?available Mamba cache blocks "
        r"\((?P<fits_seqs>\d+)\)",
        r"exceeds (?:the )?available Mamba cache",
        sure=0.98,
    ),
    pattern(
        "cuda_oom",
        r"(?:CUDA|HIP|XPU|NPU) out of memory\. Tried to allocate (?P<asked>[\d.]+ [KMGT]?i?B)",
        sure=0.98,
    ),
    pattern(
        "cuda_oom",
        r"^(?:torch\.(?:cuda\.)?)?OutOfMemoryError: ",
        r"(?:(?:CUDA|HIP|XPU)(?: driver)? [Ee]rror|Triton Error \[\w+\]):? (?:2 )?out of memory",
        r"Unexpected error from cudaGetDeviceCount.* Error 2: out of memory",
        r"CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory",
        r"Cuda failure (?:\d+ )?'out of memory'",
    ),
    pattern("cuda_oom", r"(?:CUBLAS|CUDNN)_STATUS_ALLOC_FAILED", sure=0.8),
)

HOST_MEMORY = (
    pattern(
        "cgroup_oom",
        r"Memory cgroup out of memory[^:]*: Kill(?:ed)? process (?P<pid>\d+) \((?P<victim>[^)]*)\)",
        r"CONSTRAINT_MEMCG|killed as a result of limit of /",
        sure=0.97,
        **SHAPE,
    ),
    pattern(
        "host_oom",
        r"Out of memory[^:]*: Kill(?:ed)? process (?P<pid>\d+) \((?P<victim>[^)]*)\)",
        r"oom-kill:constraint=.*\bglobal_oom\b|oom-kill:constraint=CONSTRAINT_NONE",
        sure=0.97,
        **SHAPE,
    ),
    pattern(
        "host_oom",
        r"node running low on memory|killed due to memory pressure",
        sure=0.9,
        **SHAPE,
    ),
    pattern(
        "host_oom",
        r"DefaultCPUAllocator: (?:can't allocate|not enough) memory",
        r"\[Errno 12\] Cannot allocate memory|^MemoryError\b(?!: Not enough space in the data)",
        sure=0.85,
    ),
    pattern("host_oom", r"terminate called after .*std::bad_alloc", sure=0.75, **SHAPE),
    pattern(
        "disk_full",
        r"No space left on device|Disk quota exceeded|\[Errno 28\]|not enough free disk space",
    ),
)
