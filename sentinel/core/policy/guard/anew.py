"""Why its container must not be made anew, or not even stopped: found before it is touched."""

from collections.abc import Callable

from sentinel.core.model.intent import Action
from sentinel.core.model.target import State
from sentinel.core.policy.guard.situation import Held, Situation
from sentinel.core.recreate.preflight import GONE_ONCE_STOPPED, belongs_to


def foreign_orchestrator(now: Situation) -> Held | None:
    """Also of a restart: what is stopped there is replaced, and what ended has been."""
    if now.orchestrator:
        return Held(guard="foreign_orchestrator", because=belongs_to(now.orchestrator))
    return refused("foreign_orchestrator")(now)


def cannot_recreate(now: Situation) -> Held | None:
    if now.container_gone:
        return Held(
            guard="cannot_recreate",
            because="Docker removed it when it exited (--rm): there is nothing left to start",
        )
    if now.removed_once_stopped and now.action is Action.RESTART and now.running:
        return Held(guard="cannot_recreate", because=GONE_ONCE_STOPPED)
    return refused("cannot_recreate")(now) or _out_of_reach(now)


def _out_of_reach(now: Situation) -> Held | None:
    """A plain restart gives it another port too, and is worth that."""
    ports = now.change.ports if now.change is not None else ()
    if not ports or now.action is Action.RESTART or now.pool is None or not now.pool.has_switch:
        return None
    because = (
        f"Docker would publish {', '.join(ports)} on another port of the host, "
        f"and the switch of pool {now.pool.name} would not follow"
    )
    return Held(guard="cannot_recreate", because=because)


def changes_nothing(now: Situation) -> Held | None:
    loops = now.state is State.RESTARTING or now.start_fails
    if now.action is Action.STOP_LOOP and not loops:
        return Held(guard="changes_nothing", because="Docker is not starting it again and again")
    return refused("changes_nothing")(now)


def refused(guard: str) -> Callable[[Situation], Held | None]:
    """The guard of that name, as far as it is decided by what making it anew would change."""

    def look(now: Situation) -> Held | None:
        refusals = now.change.refusals if now.change is not None else ()
        reasons = [refusal.because for refusal in refusals if refusal.guard == guard]
        return Held(guard=guard, because="; ".join(reasons)) if reasons else None

    return look
