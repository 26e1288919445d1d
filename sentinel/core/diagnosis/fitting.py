"""Advice where something does not fit, with the numbers of this very case: memory of any kind."""

from sentinel.core.diagnosis.case import Case, number, text


def kv_cache_too_small(case: Case) -> str:
    asked = text(case, "asked_len") or text(case, "asked_tokens")
    fits = text(case, "fits") or text(case, "holds")
    needed, there = text(case, "needed"), text(case, "available")
    because = f": one request at {asked} needs {needed} GiB of KV cache and {there} are there"
    if not needed:
        because = f": the KV cache holds {fits} tokens and {asked} are asked for" if fits else ""
    if fits:
        first = f"It needs --max-model-len ≤ {fits}{because}"
    elif about := _about(case):
        first = f"Lower --max-model-len to about {about}{because}"
    else:
        first = f"Lower --max-model-len{because}"
    return (
        f"{first}. Else more room: a higher --gpu-memory-utilization, --kv-cache-dtype fp8, "
        "a smaller or quantised model, or more GPUs (--tensor-parallel-size)."
    )


def _about(case: Case) -> int:
    """In proportion, in whole blocks: versions up to 0.8.4 name no length that fits."""
    asked, needed, there = (number(case, n) for n in ("asked_len", "needed", "available"))
    return int(asked * there / needed) // 16 * 16 if asked and needed and there else 0


def no_kv_cache_memory(case: Case) -> str:
    short, weights = number(case, "kv_gib"), text(case, "weights_gib")
    missing = (
        f" {-short:.2f} GiB are missing before the first block." if short and short < 0 else ""
    )
    held = f" The weights take {weights} GiB." if weights else ""
    used = text(case, "gpu_memory_utilization")
    now = f" (now {used})" if used else ""
    return (
        f"Weights and the profiling peak leave nothing for the KV cache.{missing}{held} Raise "
        f"--gpu-memory-utilization{now} if nothing else uses the GPU, lower "
        "--max-num-batched-tokens (the profiling peak), quantise, or use more GPUs. A lower "
        "--max-num-seqs helps only where the peak is the sampler's: one trial at most."
    )


def gpu_memory_taken(case: Case) -> str:
    free, total, wanted = (text(case, name) for name in ("free", "total", "wanted"))
    device = text(case, "device") or "The GPU"
    short = ""
    if device.startswith("node"):
        return (
            f"NUMA {device} has {free} of {total} GiB of memory free and {wanted} are wanted (a "
            "build for the CPU). Find what holds it (`numactl --hardware`, `ps aux --sort=-rss`), "
            "or lower --gpu-memory-utilization, which counts host memory there."
        )
    known = [number(case, name) for name in ("free", "total", "wanted")]
    if known[0] is not None and known[1] and known[2]:
        missing, most = known[2] - known[0], int(known[0] / known[1] * 100) / 100
        short = (
            f"{device} has {free} of {total} GiB free and {wanted} are wanted: {missing:.2f} GiB "
            f"are held by others, and while they are, --gpu-memory-utilization ≤ {most:g} is all "
            "that passes. "
        )
    return (
        f"{short}Find the holder with `nvidia-smi --query-compute-apps=pid,used_memory "
        "--format=csv`: another container, an orphaned VLLM::EngineCore, or the last launch that "
        "has not let go yet. Wait up to two minutes for it to be free, then start once; two "
        "instances on one GPU start one after the other, each with its share as "
        "--gpu-memory-utilization."
    )


def _oom_sizes(case: Case) -> str:
    said = case.reading.text
    asked = text(case, "asked")
    free = _between(said, "of which ", " is free") or _between(said, "already allocated; ", " free")
    total = (
        _between(said, "total capacity of ", " of which")
        or _between(said, "total capacty of ", " of which")  # so torch wrote it up to 2.2
        or _between(said, "; ", " total capacity")
    )
    if not asked:
        return ""
    there = f" and {free} of {total} were free" if free and total else ""
    return f"{asked} were asked for{there}. "


def _others(case: Case) -> str:
    """Processes beside its own that torch's message names."""
    held = [
        f"process {part.split(' ', 1)[0]} holds {_between(part, ' has ', ' memory in use')}"
        for part in case.reading.text.split(". Process ")[1:]
        if " memory in use" in part
    ]
    return f"Beside it {', '.join(held)}. " if held else ""


def _between(text: str, start: str, end: str) -> str:
    _, found, rest = text.partition(start)
    value, closed, _ = rest.partition(end)
    return value if found and closed and len(value) < 24 else ""


def cuda_oom_runtime(case: Case) -> str:
    seqs = text(case, "max_num_seqs")
    now = f" (now {seqs})" if seqs else ""
    return (
        f"{_oom_sizes(case)}{_others(case)}Restart it once. If it comes again with the same "
        "numbers, lower --max-num-batched-tokens or --gpu-memory-utilization (and the limits on "
        "prompt_logprobs and images), since what grew is one step's activations; --max-num-seqs"
        f"{now} is the second choice."
    )


def cuda_oom_startup(case: Case) -> str:
    weights = text(case, "weights_gib")
    loaded = f"The weights take {weights} GiB. " if weights else "The weights did not fit. "
    return (
        f"{_oom_sizes(case)}{_others(case)}{loaded}Quantise, or spread over more GPUs "
        "(--tensor-parallel-size); if it was loaded already, lower --max-num-batched-tokens or "
        "the CUDA graph sizes (--max-num-seqs, --enforce-eager). If another process holds the "
        "GPU, that comes first."
    )


def sampler_warmup(case: Case) -> str:
    with_ = text(case, "requests") or text(case, "max_num_seqs")
    count = number(case, "requests") or number(case, "max_num_seqs")
    half = f" to {max(1, int(count) // 2)}" if count else ""
    tried = f"Warming up with {with_} requests did not fit. " if with_ else ""
    return (
        f"{tried}Start it again with a lower --max-num-seqs{half}: it is the one out of memory at "
        "start that this cures. Else a slightly lower --gpu-memory-utilization."
    )


def mamba_cache_too_small(case: Case) -> str:
    asked, fits = text(case, "asked_seqs"), text(case, "fits_seqs")
    if fits:
        return (
            f"Start it with --max-num-seqs ≤ {fits} (now {asked}): each sequence takes one block."
        )
    return "Start it with a lower --max-num-seqs: each sequence takes one block of the Mamba cache."


def shm_too_small(case: Case) -> str:
    size, limits = number(case, "size"), case.limits
    wanted = f"A segment of {_mib(size)} did not fit. " if size else ""
    if asked := text(case, "shm_wanted"):
        wanted = f"{asked} MiB are wanted there and {text(case, 'shm_free')} are free. "
    if limits.shares_ipc:
        return (
            f"{wanted}It shares the host's /dev/shm: look there for what dead processes have left "
            "(`ls -la /dev/shm`, `fuser -v` before anything is removed), or make the host's larger "
            "(`mount -o remount,size=64g /dev/shm`)."
        )
    has = f"It has {_mib(limits.shm)} now. " if limits.shm else ""
    return (
        f"{wanted}{has}Make the container with --ipc=host, or with --shm-size 16g or more "
        "(Compose: shm_size). Docker's default is 64 MiB, too little for tensor parallelism."
    )


def _mib(size: float | None) -> str:
    return f"{(size or 0) / (1 << 20):.0f} MiB"


def container_memory(case: Case) -> str:
    limit = case.limits.memory
    raise_ = f"Its limit is {limit / (1 << 30):.1f} GiB: raise it" if limit else "Raise its limit"
    return _host_memory(case, raise_)


def host_memory(case: Case) -> str:
    return _host_memory(case, "Look what else grew (`ps aux --sort=-rss`); give the host more")


def _host_memory(case: Case, first: str) -> str:
    victim = text(case, "victim")
    who = f"The kernel killed {victim}. " if victim else ""
    return (
        f"{who}Restart it once. {first}, or need less: --swap-space and --cpu-offload-gb, fewer "
        "instances on the host, --mm-processor-cache-gb. If resident memory grows over days, plan "
        "restarts and report it."
    )
