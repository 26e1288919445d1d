"""Why its container must not be made anew, as was found before anything was touched."""

from collections.abc import Callable

from sentinel.core.model.intent import Action
from sentinel.core.model.target import State
from sentinel.core.policy.guard.situation import Held, Situation


def cannot_recreate(now: Situation) -> Held | None:
    if now.container_gone:
        return Held(
            guard="cannot_recreate",
            because="Docker removed it when it exited (--rm): there is nothing left to start",
        )
    return refused("cannot_recreate")(now)


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
