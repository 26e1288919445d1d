"""The last gate before an action: every reason to hold back, each with its sentence.

A guard never acts and never forgets: it is asked when a step is decided and again just
before it is done, and what it says is what the log, the CLI and the message say.
"""

from collections.abc import Callable

from sentinel.core.policy.guard import anew, seen, spent, wanted
from sentinel.core.policy.guard.situation import Budget, Held, ManyFailing, PoolState, Situation
from sentinel.core.policy.guard.spent import dockers_restarts

__all__ = [
    "BEFORE_A_STEP",
    "BEFORE_THE_FIRST",
    "CLEAR",
    "GUARDS",
    "NEVER_FORCED",
    "Budget",
    "Held",
    "ManyFailing",
    "PoolState",
    "Situation",
    "dockers_restarts",
    "holds",
]


def holds(situation: Situation, *, but: frozenset[str] = frozenset()) -> tuple[Held, ...]:
    """Every guard that holds, hardest first; empty if the way is free."""
    found = (guard(situation) for name, guard in GUARDS.items() if name not in but)
    return tuple(held for held in found if held is not None)


GUARDS: dict[str, Callable[[Situation], Held | None]] = {
    "journal_unreadable": spent.journal_unreadable,
    "stop_file": wanted.stop_file,
    "paused": wanted.paused,
    "external_alert": wanted.external_alert,
    "unconfirmed": wanted.unconfirmed,
    "maintenance": wanted.maintenance,
    "human_stop": wanted.human_stop,
    "unwitnessed_stop": wanted.unwitnessed_stop,
    "foreign_orchestrator": anew.foreign_orchestrator,
    "others_depend": anew.refused("others_depend"),
    "cannot_recreate": anew.cannot_recreate,
    "arguments_unclear": anew.refused("arguments_unclear"),
    "other_owner": anew.refused("other_owner"),
    "changes_nothing": anew.changes_nothing,
    "deploy_in_progress": wanted.deploy_in_progress,
    "starting": seen.starting,
    "crash_looping": seen.crash_looping,
    "restart_cannot_help": seen.restart_cannot_help,
    "beyond_container": seen.beyond_container,
    "gpu_start": seen.gpu_start,
    "last_healthy": seen.last_healthy,
    "no_headroom": seen.no_headroom,
    "many_failing": seen.many_failing,
    "open_intent": spent.open_intent,
    "ineffective": spent.ineffective,
    "cooldown": spent.cooldown,
    "budget_target": spent.budget_target,
    "budget_host": spent.budget_host,
    "mode": wanted.mode,
}
"""In the order in which they are said: what a person did first, the mode last."""

CLEAR: dict[str, str] = {
    "journal_unreadable": "the journal can be read and written",
    "stop_file": "there is no STOP file",
    "paused": "nobody has paused it",
    "external_alert": "no alert of others asks for it alone",
    "unconfirmed": "what Sentinel sees itself says the same",
    "maintenance": "it is not a time of maintenance",
    "human_stop": "no person has stopped it",
    "unwitnessed_stop": "it has not stopped unseen",
    "foreign_orchestrator": "no other program is known to run it",
    "others_depend": "no other container is known to depend on it",
    "cannot_recreate": "its container is there",
    "arguments_unclear": "nothing is known to be unclear about its arguments",
    "other_owner": "nobody is known to have taken a change back",
    "changes_nothing": "what is wanted would change something",
    "deploy_in_progress": "nobody is known to be making it anew",
    "starting": "it is not loading",
    "crash_looping": "Docker is not starting it again",
    "restart_cannot_help": "nothing says that a restart cannot help",
    "beyond_container": "no fault is known that a container cannot be cured of",
    "gpu_start": "nothing else is loading onto its GPU",
    "last_healthy": "enough others serve, or it does not serve itself",
    "no_headroom": "its pool is not full",
    "many_failing": "few targets or none fail together",
    "open_intent": "nothing is being done to it",
    "ineffective": "no remedy is known to be in vain",
    "cooldown": "no action on it is recent",
    "budget_target": "its budget is not spent",
    "budget_host": "the budget of the host is not spent",
    "mode": "the mode is act",
}
"""What is said of each guard while it does not hold."""

BEFORE_A_STEP: frozenset[str] = frozenset(
    {"journal_unreadable", "stop_file", "paused", "human_stop"}
)
"""Asked again before each step of an intent that is already under way."""

BEFORE_THE_FIRST: frozenset[str] = BEFORE_A_STEP | {
    "maintenance",
    "deploy_in_progress",
    "beyond_container",
    "gpu_start",
    "last_healthy",
    "no_headroom",
    "many_failing",
}
"""Asked again as long as nothing has been done: then it may still be left alone."""

NEVER_FORCED: frozenset[str] = frozenset({"stop_file", "open_intent", "journal_unreadable"})
"""Not even a person may override these."""
