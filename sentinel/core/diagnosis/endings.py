"""What an exit code and an inspect say where the log says nothing, and how much that is worth.

Exit code 0 proves nothing: a vLLM whose engine dies exits 0. Exit code 137 is a SIGKILL, and
an OOM only if somebody saw one.
"""

from dataclasses import dataclass

from sentinel.core.diagnosis.case import Case


@dataclass(frozen=True, slots=True)
class Inference:
    cause: str
    sure: float
    source: str
    text: str


_SIGNALS = {
    129: "SIGHUP",
    130: "SIGINT",
    132: "SIGILL",
    134: "SIGABRT",
    135: "SIGBUS",
    136: "SIGFPE",
    137: "SIGKILL",
    139: "SIGSEGV",
    143: "SIGTERM",
}
_SAYS_WHEN_STOPPED = (0, 25)  # from this version on vLLM logs that it was told to stop


def code_text(code: int) -> str:
    name = _SIGNALS.get(code)
    return f"exit code {code}" + (f" ({name})" if name else "")


def by_runtime(case: Case) -> Inference | None:
    """Docker's own error from a start that never came to be."""
    container = case.container
    if container is None or not container.error or container.is_up:
        return None
    said = container.error
    if "port is already allocated" in said or "address already in use" in said:
        return Inference("port_in_use", 0.97, "inspect", f"State.Error: {said}")
    if "no space left on device" in said:
        return Inference("disk_full", 0.95, "inspect", f"State.Error: {said}")
    return Inference("container_runtime_error", 0.95, "inspect", f"State.Error: {said}")


def by_oom(case: Case) -> Inference | None:
    if case.container is None or not case.container.oom_killed:
        return None
    if case.container.is_up and case.container.finished_at is not None:
        return None  # engines up to 20.10 keep it over a start: it may be of the launch before
    if case.limits.memory == 0:
        says = "State.OOMKilled is true and there is no memory limit: the host's memory ran out"
        return Inference("host_oom", 0.85, "inspect", says)
    limit = case.limits.memory
    which = f" of {limit / (1 << 30):.1f} GiB" if limit else ""
    says = f"State.OOMKilled is true: the memory limit{which} was hit"
    return Inference("cgroup_oom", 0.95, "inspect", says)


def by_code(case: Case) -> Inference | None:
    code = case.exit_code
    if code is None:
        return None
    cause, sure = _by_code(code, case)
    return Inference(cause, sure, "exit_code", code_text(code)) if cause else None


def _by_code(code: int, case: Case) -> tuple[str, float]:
    if code in (125, 126, 127):
        return "container_runtime_error", 0.9
    if code in (129, 130, 143):
        return "external_stop", 0.85
    if code == 137:
        return "sigkill_unknown", 0.6
    if code == 135:
        return "shm_too_small", 0.75
    if code == 2 and not case.reading.was_ready:
        return "bad_arguments", 0.75
    if code > 128 or (code == 1 and case.reading.was_ready):
        return "engine_died", 0.55
    if code == 0 and case.reading.was_ready and _would_say(case):
        return "engine_died", 0.5
    return "", 0.0


def _would_say(case: Case) -> bool:
    version = str(case.facts.get("version", "")).split(".")
    if len(version) < 2 or not all(part.isdigit() for part in version[:2]):
        return False
    return (int(version[0]), int(version[1])) >= _SAYS_WHEN_STOPPED
