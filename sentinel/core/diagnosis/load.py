"""What vLLM's own lines about its load say, where nobody looked at its metrics."""

from sentinel.core.diagnosis.case import Case
from sentinel.core.diagnosis.endings import Inference
from sentinel.core.diagnosis.facts import Facts
from sentinel.core.diagnosis.traces import Launch

_STILL = 4  # lines, ten seconds each
_BUSY = 3
_OFTEN = 10  # preemptions in ten seconds


def by_load(case: Case) -> Inference | None:
    """Only of what runs: what ended has other reasons."""
    launch = case.launch
    if launch is None or case.exit_code is not None or not launch.was_ready or case.reading.died:
        return None
    loads = [facts for _, facts in launch.loads]
    if launch.last.get("slow", 0) > launch.last.get("load", 0):
        says = "workers have not answered the engine for a minute or more"
        return Inference("engine_hung", 0.6, "log", says)
    if len(loads) >= _STILL and all(_is_still(facts) for facts in loads[-_STILL:]):
        says = f"{_told(loads[-1])}, and no token in the last {_STILL} lines about it"
        return Inference("engine_hung", 0.65, "log", says)
    if len(loads) >= _BUSY and _is_storm(case, launch):
        says = f"{_told(loads[-1])}, and requests are preempted all the time"
        return Inference("preemption_storm", 0.6, "log", says)
    if len(loads) >= _BUSY and all(_is_full(facts) for facts in loads[-_BUSY:]):
        return Inference("saturated", 0.7, "log", f"{_told(loads[-1])}, and tokens flow")
    return None


def _is_still(load: Facts) -> bool:
    rates = (load.get("prompt_rate"), load.get("generation_rate"))
    return rates == (0, 0) and bool(load.get("running"))


def _is_full(load: Facts) -> bool:
    return bool(load.get("waiting")) and bool(load.get("generation_rate"))


def _is_storm(case: Case, launch: Launch) -> bool:
    """Up to 0.10 vLLM warns of every fiftieth preemption; later its lines about the load count."""
    recent = launch.loads[-_BUSY:]
    if not all(_is_full(facts) for _, facts in recent):
        return False
    warned = launch.last.get("preempted", 0) > recent[0][0]
    many = case.facts.get("preemptions", 0)
    counts = [facts.get("preempted", 0) for _, facts in recent]
    return (warned and isinstance(many, int) and many > 100) or all(
        isinstance(count, int) and count >= _OFTEN for count in counts
    )


def _told(load: Facts) -> str:
    kv = f", KV cache {load['kv_percent']}% full" if "kv_percent" in load else ""
    return f"{load.get('running')} running, {load.get('waiting')} waiting{kv}"
