"""What a senior engineer would say to do, with the numbers of this very case.

One function for each cause that has something to add; where the numbers are missing the
sentence is still whole. Advice names flags and commands, never a person to ask.
"""

from collections.abc import Callable

from sentinel.core.diagnosis import fitting
from sentinel.core.diagnosis.case import Case, number, text

_VICTIM = "docker inspect, `oom` in docker events, and `journalctl -k | grep -i 'killed process'`"


def advise(cause: str, case: Case) -> str:
    return _ADVICE[cause](case)


def _port_in_use(case: Case) -> str:
    port = next(filter(None, (text(case, n) for n in ("bound", "port"))), "8000")
    return (
        f"Port {port} is held by another process. Find it with `ss -ltnp 'sport = :{port}'` "
        "(docker ps shows published ports); stop it, or give this one another --port. With host "
        "networking every container shares the host's ports; an old launch may still be ending."
    )


def _bad_arguments(case: Case) -> str:
    wrong = text(case, "wrong")
    if not wrong:
        details = [text.partition(" [type=")[0] for _, text in case.reading.more]
        wrong = ": ".join(details[:2]).removeprefix("Value error, ")
    section = text(case, "section")
    whose = f" ({section})" if section else ""
    told = f"vLLM says{whose}: {wrong[:300].rstrip('.')}. " if wrong else ""
    return (
        f"{told}Correct the argument; `vllm serve --help=all` lists them for this version. If it "
        "worked before, an image update or the last change to the command did it: take that back."
    )


def _model_not_found(case: Case) -> str:
    if text(case, "gated") or text(case, "refused"):
        return (
            "The hub refuses to hand it out: accept the model's licence there, and give the "
            "container a token that may read it (HF_TOKEN). The name may also be misspelt: the "
            "hub answers 401 for what does not exist."
        )
    if text(case, "broken"):
        return (
            "The weight files are there and cannot be read: a download that broke off, or Git LFS "
            "pointers in place of files. Fetch them again; from a hub's cache, remove them first."
        )
    return (
        "Check the model's name, --revision and the path as the container sees it: a directory "
        "that is not mounted looks like a hub name to vLLM. It must hold config.json, the "
        "tokenizer and the weights; for LoRA, adapter_config.json."
    )


def _hub_unreachable(case: Case) -> str:
    del case
    return (
        "Check name resolution, proxy (HTTPS_PROXY) and certificates from inside the container, "
        "and whether the hub is up. A model that is in the cache starts with HF_HUB_OFFLINE=1; "
        "one that is not has to be fetched before. Try again after minutes, not seconds."
    )


def _disk_full(case: Case) -> str:
    del case
    return (
        "Free space where it writes: the model cache (~/.cache/huggingface), vLLM's compile "
        "cache (~/.cache/vllm), /tmp, and Docker's own root (`docker system df`, `df -h`, "
        "`df -i`)."
    )


def _startup_timeout(case: Case) -> str:
    waited = text(case, "waited") or text(case, "after")
    after = f"It was given up after {waited} s. " if waited else ""
    return (
        f"{after}Raise VLLM_ENGINE_READY_TIMEOUT_S well above what loading takes, or make loading "
        "faster (weights on a local disk, the compile cache on a volume). Engine processes may "
        "live on and hold GPU memory: look before the next start."
    )


def _runtime_error(case: Case) -> str:
    said = (case.container.error if case.container else "") or case.reading.text
    code = case.exit_code
    if "could not select device driver" in said:
        return (
            "Docker knows no GPU runtime: install nvidia-container-toolkit, run "
            "`nvidia-ctk runtime configure --runtime=docker`, restart Docker."
        )
    if "nvidia" in said:
        return (
            "The NVIDIA container toolkit refused. Run nvidia-smi on the host; a version mismatch "
            "means that the driver was updated under a running kernel module: reboot, or reload "
            "the module. An unknown device means that the GPU asked for is gone or renamed."
        )
    if code == 127 or "not found" in said or "no such file" in said:
        return "The command does not exist in the image: check the entrypoint and the image's tag."
    if code == 126 or "permission denied" in said:
        return "The command may not be executed: check its mode, and security profiles of the host."
    return "Read State.Error of docker inspect, and the log of dockerd at that time."


def _illegal_access(case: Case) -> str:
    del case
    return (
        "Restart it once; the CUDA context is lost and nothing else helps. If it comes again on "
        "the same GPU with other models, suspect the GPU (Xid, ECC, `dcgmi diag`); with the same "
        "model on any GPU, the software: pin or take back the version."
    )


def _launch_failure(case: Case) -> str:
    if text(case, "driver"):
        return (
            "The host's driver is too old for this image: update the driver, or take an image "
            "built for an older CUDA."
        )
    if "no kernel image" in case.reading.text or "Torch not compiled" in case.reading.text:
        return "This image has no kernels for that GPU's architecture: take another image."
    if "out of resource" in case.reading.text:
        return (
            "A kernel asks for more than that GPU has (shared memory, registers): take another "
            "--attention-backend or quantisation, or an image whose kernels are tuned for it."
        )
    return (
        "Look at the host: nvidia-smi (ERR! fields), `dmesg | grep -i xid`. If it comes again "
        "after one restart, take the node out and have the GPU examined."
    )


def _ecc(case: Case) -> str:
    xid = text(case, "xid")
    if xid == "94":
        return (
            "Xid 94 is contained: restart the container once, and read the row remapping with "
            "`nvidia-smi -q -d ROW_REMAPPER`."
        )
    return (
        "Take the GPU out of service, read `nvidia-smi -q -d ECC,ROW_REMAPPER`: remapping pending "
        "means drain and reset the GPU, remapping failed means replace it. The same GPU twice: "
        "replace it."
    )


def _gpu_lost(case: Case) -> str:
    if "mismatch" in case.reading.text:
        return (
            "The driver was updated under a loaded kernel module: reload the module with nothing "
            "using the GPU, or reboot. Until then running containers may go on; do not stop them "
            "without need, they cannot start again."
        )
    return (
        "Move its traffic away and have the node rebooted (power-cycled for Xid 79); a container "
        "cannot bring the GPU back. If it comes again, have the hardware examined."
    )


def _gpu_detached(case: Case) -> str:
    started = case.reading.was_ready
    first = (
        "It had its GPU and lost it: docker update on it, or `systemctl daemon-reload`, takes "
        "device access away from a running container. Restart the container."
        if started
        else "The container sees no GPU: was it made with --gpus (or a runtime nvidia), does "
        "NVIDIA_VISIBLE_DEVICES name one that exists, does nvidia-smi work on the host? A restart "
        "helps if access was lost meanwhile, and not if it was never given."
    )
    return (
        f"{first} If the host's nvidia-smi works, the GPU is well; systemd as cgroup driver with "
        "device nodes given by --device, or cgroupfs, keeps it from happening again."
    )


_CHILD_ENDED = {
    "-9": f"It was killed (SIGKILL), most often by the kernel for memory: look at {_VICTIM}. ",
    "-7": "It got SIGBUS: /dev/shm is too small. ",
    "-6": "It aborted (SIGABRT): NCCL's watchdog or a CUDA error above says why. ",
    "-4": "It met an illegal instruction (SIGILL): the image is built for another processor. ",
    "-11": "It crashed in native code (SIGSEGV). ",
    "-15": "It was told to end (SIGTERM): by whoever stopped the others. ",
}


def _how_it_ended(case: Case) -> str:
    return _CHILD_ENDED.get(text(case, "code") or text(case, "ended"), "")


def _worker_died(case: Case) -> str:
    return (
        f"{_how_it_ended(case)}Restart it once; on a repetition compare GPU and error with the "
        "last time, and page."
    )


def _engine_died(case: Case) -> str:
    error = case.launch.error if case.launch else None
    why = f"It raised: {error[1][:300].rstrip('.')}. " if error else _how_it_ended(case)
    exited = " Exit code 0 does not mean that anybody wanted it." if case.exit_code == 0 else ""
    killed = "" if why else f"If nothing in the log says why, it was killed: look at {_VICTIM}. "
    return (
        f"{why}{killed}Restart it once. The same error for the third time is a defect that a "
        f"request or a version brings: take the version back, and page.{exited}"
    )


def _worker_hung(case: Case) -> str:
    method = text(case, "method")
    what = f"No worker answered {method} in time. " if method else ""
    return (
        f"{what}Restart it once, after a look for Xid and ECC errors of its GPUs (`dmesg | grep "
        "-i xid`): a dying GPU hangs like this first. Before that, `py-spy dump` of a VLLM::Worker "
        "tells where it hangs."
    )


def _engine_hung(case: Case) -> str:
    del case
    return (
        "Confirm it with a one-token completion and a deadline; then take it out of the balancer "
        "and restart it once. A GPU that draws far less power than usual at full utilisation "
        "confirms it too. If the restart hangs as well, the host has to be rebooted."
    )


def _nccl(case: Case) -> str:
    operation, timeout = text(case, "operation"), number(case, "timeout_ms")
    what = f"{operation} did not end within {timeout / 1000:g} s. " if timeout and operation else ""
    return (
        f"{what}Restart it once; look at every GPU of the group for Xid (74: NVLink), at "
        "`nvidia-smi nvlink -s`, and whether one worker died or hung before. At start, try "
        "NCCL_DEBUG=INFO, and NCCL_P2P_DISABLE=1 to tell PCIe peer access."
    )


def _sigkill(case: Case) -> str:
    del case
    return (
        f"Find out who killed it: {_VICTIM}; and whether someone ran docker kill or a docker stop "
        "that timed out. Without a finding, restart it once."
    )


def _external_stop(case: Case) -> str:
    code = case.exit_code
    late = (
        "It was told to stop and was killed when it had not after the time-out: stop with a "
        "time-out above --shutdown-timeout. "
        if code == 137
        else ""
    )
    return f"{late}Ask who stopped it (docker events, systemd, the deploy) and start it if wanted."


def _unknown(case: Case) -> str:
    if case.launch and case.launch.error and not case.launch.was_ready:
        first = case.launch.error[1][:300].rstrip(".")
        return f"The first error in the log is: {first}. Read what follows it."
    if case.launch and "start_failed" in case.launch.first:
        return "It failed to start, and the reason stands above what was given: get the whole log."
    return (
        "Get more: the whole log of the last launch (docker logs), docker inspect, the exit code, "
        "two scrapes of /metrics some seconds apart."
    )


def _always(text: str) -> Callable[[Case], str]:
    return lambda _: text


_ADVICE: dict[str, Callable[[Case], str]] = {
    "clean_stop": _always("Nothing to do; start it if it is wanted."),
    "external_stop": _external_stop,
    "engine_died": _engine_died,
    "worker_died": _worker_died,
    "sigkill_unknown": _sigkill,
    "worker_hung": _worker_hung,
    "engine_hung": _engine_hung,
    "nccl_timeout": _nccl,
    "host_oom": fitting.host_memory,
    "cgroup_oom": fitting.container_memory,
    "cuda_oom_runtime": fitting.cuda_oom_runtime,
    "cuda_oom_startup": fitting.cuda_oom_startup,
    "cuda_oom_sampler_warmup": fitting.sampler_warmup,
    "gpu_memory_taken": fitting.gpu_memory_taken,
    "kv_cache_too_small": fitting.kv_cache_too_small,
    "no_kv_cache_memory": fitting.no_kv_cache_memory,
    "mamba_cache_too_small": fitting.mamba_cache_too_small,
    "port_in_use": _port_in_use,
    "bad_arguments": _bad_arguments,
    "model_not_found": _model_not_found,
    "hub_unreachable": _hub_unreachable,
    "disk_full": _disk_full,
    "shm_too_small": fitting.shm_too_small,
    "startup_timeout": _startup_timeout,
    "container_runtime_error": _runtime_error,
    "cuda_illegal_access": _illegal_access,
    "cuda_launch_failure": _launch_failure,
    "gpu_ecc": _ecc,
    "gpu_lost": _gpu_lost,
    "gpu_detached": _gpu_detached,
    "saturated": _always(
        "Shed load or add a replica; shift traffic to siblings with room. If the KV cache is the "
        "bound (it is full, and fewer run than --max-num-seqs allows), a shorter --max-model-len "
        "changes nothing; more GPU memory or --kv-cache-dtype fp8 does."
    ),
    "preemption_storm": _always(
        "Lower --max-num-seqs to what the KV cache holds at the lengths in use (running requests "
        "without preemption), and shift load meanwhile; each preempted request is computed again."
    ),
    "healthy": _always("Nothing to do."),
    "unknown": _unknown,
}
