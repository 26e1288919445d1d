"""How low `--max-num-seqs` has to be, from what really ran.

Only measured numbers count: a limit above what the engine ever held changes nothing, and one
below what it held without trouble costs throughput for nothing.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

CURED = frozenset(
    {"preemption_storm", "cuda_oom_runtime", "cuda_oom_sampler_warmup", "mamba_cache_too_small"}
)
"""The causes that a lower limit cures."""

_SUSTAINED = 5  # looks at least, without a preemption between them
_FULL = 0.9  # of the KV cache: from here on a queue means that memory is the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What the engine said of itself at one scrape."""

    running: int
    waiting: int = 0
    preemptions: float = 0.0  # the counter
    finished: float = 0.0  # the counter of requests that ended
    kv_cache_usage: float = 0.0  # 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is known of one engine. `looks`: oldest first, of one launch."""

    limit: int | None  # in force: given on the command line, or vLLM's default
    looks: Sequence[Look] = ()
    mamba_blocks: int | None = None  # "exceeds available Mamba cache blocks (N)"

    @property
    def most_running(self) -> int:
        return max((look.running for look in self.looks), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    value: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoFit:
    because: str
    guard: str = "changes_nothing"


def fit(cause: str, load: Load, *, floor: int) -> Fit | NoFit:
    """The highest limit that takes `cause` away.

    preemption_storm         what ran without a preemption for as long as requests take, and not
                             less than what still ran at the worst moment of the storm: the KV
                             cache holds that many sequences of the lengths that came
    cuda_oom_runtime         three quarters of the most that ran, or what was sustained if more
    cuda_oom_sampler_warmup  half the limit: the warm-up runs exactly `limit` dummy requests
    mamba_cache_too_small    the number of blocks that the engine said it has

    Sources: vLLM's scheduler preempts the last of the running when no KV block is free, so the
    running number in a storm is what memory holds; its sampler warm-up and Mamba check say
    themselves that `max_num_seqs` is to be lowered.
    """
    if cause not in CURED:
        return NoFit(because=f"a lower --max-num-seqs does not help against {cause}")
    wanted = _WANTED[cause](load)
    if isinstance(wanted, NoFit):
        return wanted
    if wanted.value < floor:
        wanted = Fit(value=floor, because=f"{wanted.because}; never below {floor}")
    return changes_nothing(wanted.value, load) or wanted


def changes_nothing(value: int, load: Load) -> NoFit | None:
    """Why a limit of `value` would leave everything as it is; None if it would not."""
    if load.limit is not None and value >= load.limit:
        return NoFit(because=f"{value} is not below the {load.limit} it runs with")
    held = _held_by_memory(load)
    if held is not None and value >= held:
        return NoFit(because=f"memory never held more than {held} at once, so {value} is no limit")
    return None


def _held_by_memory(load: Load) -> int | None:
    """The most that ran, if it was memory and not the limit or the demand that set it."""
    was_full = any(look.waiting and look.kv_cache_usage >= _FULL for look in load.looks)
    if not (was_full or _storm(load.looks)) or load.most_running == load.limit:
        return None
    return load.most_running


def _by_storm(load: Load) -> Fit | NoFit:
    storm = _storm(load.looks)
    if not storm:
        return NoFit(because="no preemption was seen while it was looked at")
    sustained = _sustained(load.looks)
    lowest = max(1, min(storm))
    value = max(sustained, lowest)
    if value >= load.most_running:
        because = f"{value} ran without a preemption and never more than {load.most_running}"
        return NoFit(because=f"{because}: not their number makes it preempt")
    how = "ran without a preemption" if sustained >= lowest else "still ran at the worst moment"
    return Fit(value=value, because=f"{value} {how}; {load.most_running} did not fit")


def _by_running(load: Load) -> Fit | NoFit:
    most = load.most_running
    if most < 2:
        return NoFit(because=f"it ran out of memory with {most} running: not their number did it")
    sustained = _sustained(load.looks)
    value = max(most * 3 // 4, sustained if sustained < most else 0)
    return Fit(value=value, because=f"it ran out of memory with up to {most} running")


def _by_warm_up(load: Load) -> Fit | NoFit:
    if load.limit is None:
        return NoFit(because="the limit it was started with is not known")
    return Fit(
        value=load.limit // 2, because=f"its warm-up ran out of memory with {load.limit} requests"
    )


def _by_mamba_blocks(load: Load) -> Fit | NoFit:
    if not load.mamba_blocks:
        return NoFit(because="how many Mamba cache blocks it has is not known")
    return Fit(value=load.mamba_blocks, because=f"it has {load.mamba_blocks} Mamba cache blocks")


_WANTED = {
    "preemption_storm": _by_storm,
    "cuda_oom_runtime": _by_running,
    "cuda_oom_sampler_warmup": _by_warm_up,
    "mamba_cache_too_small": _by_mamba_blocks,
}


def _storm(looks: Sequence[Look]) -> list[int]:
    """How many ran at each look that had seen preemptions since the one before."""
    return [now.running for before, now in pairwise(looks) if _preempted(before, now)]


def _sustained(looks: Sequence[Look]) -> int:
    """The most that ran without a preemption until as many had ended as ran.

    A shorter peace says nothing: memory fills as requests grow, and those that came together
    are all short at first.
    """
    running, finished = [look.running for look in looks], [look.finished for look in looks]
    most = 0
    for at, first in enumerate(looks):
        turned_over = bisect_left(finished, first.finished + first.running, at)
        end = max(turned_over, at + _SUSTAINED - 1)
        if end < len(looks) and not _preempted(first, looks[end]):
            most = max(most, min(running[at : end + 1]))
    return most


def _preempted(before: Look, now: Look) -> bool:
    return now.preemptions > before.preemptions
