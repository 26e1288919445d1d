"""What is seen of the target and of what is around it: loading, crash loops, GPUs, its pool."""

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.model.intent import Action
from sentinel.core.model.target import State
from sentinel.core.policy.guard.situation import (
    Held,
    Situation,
    is_cured_at_start,
    span_of,
)

_HEALTHY = (State.IDLE, State.SERVING, State.SATURATED)


def starting(now: Situation) -> Held | None:
    if now.state is not State.STARTING or is_cured_at_start(now):
        return None
    return Held(guard="starting", because="it is loading; a restart would throw that away")


def crash_looping(now: Situation) -> Held | None:
    if now.state is not State.RESTARTING or now.action is not Action.RESTART:
        return None
    return Held(guard="crash_looping", because="Docker is already starting it again")


def restart_cannot_help(now: Situation) -> Held | None:
    if now.action is not Action.RESTART or now.running or now.ending is None:
        return None
    cause = CAUSES.get(now.ending.cause)
    if cause is None or cause.restart_helps is not False:
        return None
    return Held(
        guard="restart_cannot_help",
        because=f"{cause.says} ({cause.name}); starting it again would change nothing",
    )


def beyond_container(now: Situation) -> Held | None:
    """What the GPU or its driver has, no container can be cured of."""
    if now.gpu_fault:
        because = f"{now.gpu_fault}: no container can put that right"
        return Held(guard="beyond_container", because=because)
    name = now.ending.cause if now.ending is not None and not now.running else now.cause
    cause = CAUSES.get(name)
    if cause is None or cause.kind != "gpu" or cause.restart_helps:
        return None
    if cause.restart_helps is None and not now.remedied:
        return None  # once is worth a try
    because = f"{cause.says} ({cause.name}): no container can put that right"
    return Held(guard="beyond_container", because=because)


def gpu_start(now: Situation) -> Held | None:
    """Two that load onto one GPU each count the other's memory for their own."""
    if not now.gpu_starts:
        return None
    others = ", ".join(sorted(now.gpu_starts))
    because = f"{others} is loading onto the same GPU; one starts after the other"
    return Held(guard="gpu_start", because=because)


def last_healthy(now: Situation) -> Held | None:
    pool = now.pool
    if pool is None or not _is_healthy(now) or len(pool.healthy) >= pool.min_healthy:
        return None
    left = ", ".join(sorted(pool.healthy)) or "nobody"
    return Held(
        guard="last_healthy",
        because=f"pool {pool.name} would be left with {left}, and at least "
        f"{pool.min_healthy} has to serve",
    )


def no_headroom(now: Situation) -> Held | None:
    pool = now.pool
    if pool is None or not pool.healthy or not _is_healthy(now):
        return None
    if set(pool.healthy) - set(pool.saturated):
        return None
    full = ", ".join(sorted(pool.saturated))
    because = f"the rest of pool {pool.name} is full already ({full}) and could not take its work"
    return Held(guard="no_headroom", because=because)


def many_failing(now: Situation) -> Held | None:
    """All that fail together are held together, for as long as they fail."""
    mine = now.failing.get(now.target)
    if mine is None:
        return None
    span, wanted = now.many_failing.within, now.many_failing.at_least
    for first in (at for at in now.failing.values() if mine - span <= at <= mine):
        together = sorted(n for n, at in now.failing.items() if first <= at <= first + span)
        if len(together) >= wanted:
            return Held(
                guard="many_failing",
                because=f"{len(together)} targets failed within {span_of(span)} "
                f"({', '.join(together)}): that is the host's fault rather than theirs",
            )
    return None


def _is_healthy(now: Situation) -> bool:
    return now.running and not now.crashed and now.state in _HEALTHY
