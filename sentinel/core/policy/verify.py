"""Has an open intent worked, failed, or is it too early to say?

Settled by looking at the world, never by remembering. The proof of a restart is a real
completion by the container that was started: Sentinel's own or, where that waits its turn, one
that others have had of it; where none can be asked for, that it answers.
"""

from dataclasses import dataclass

from sentinel.core.model.container import Container
from sentinel.core.model.intent import Intent, Outcome
from sentinel.core.model.launch import EndedAs, Launch
from sentinel.core.model.target import Completion, Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`outcome` None: too early to say."""

    outcome: Outcome | None
    because: str


def verify_restart(
    intent: Intent,
    container: Container | None,
    launch: Launch | None,
    probe: Completion | None,
    *,
    overdue: bool,
    served: Served | None = None,
) -> Verdict:
    """Judge a restart all of whose steps are done.

    `launch`, `probe` and `served` are of the start that `container` is in; `served` only while it
    gets on with its work; `overdue`: the time is over.
    """
    saw = intent.wish.saw_started_at
    if container is None:
        return Verdict(outcome=Outcome.FAILED, because="its container is gone")
    if container.id != intent.wish.container_id:
        return Verdict(
            outcome=Outcome.FAILED, because="somebody replaced the container; hands off the new one"
        )
    started = container.started_at not in (None, saw)  # later or, if the clock was set, earlier
    if started and not container.is_up and launch is not None and launch.ending is not None:
        by_person = launch.ending.kind is EndedAs.PERSON  # theirs to undo, no failure of ours
        return Verdict(
            outcome=Outcome.REFUSED if by_person else Outcome.FAILED,
            because=f"started again, and then {launch.ending.because}",
        )
    if started and container.is_up and probe is not None and probe.ok:
        took = (probe.at - intent.reserved_at).total_seconds() if intent.reserved_at else 0.0
        return Verdict(
            outcome=Outcome.VERIFIED,
            because=f"it serves again, with a completion by {probe.model or 'its model'} "
            f"{took:.0f} s after the restart was decided",
        )
    answers = launch is not None and launch.ready_at is not None
    if started and container.is_up and probe is not None and probe.timed_out and served:
        return Verdict(
            outcome=Outcome.VERIFIED,
            because=f"it serves again: {served.completed} requests of others were completed by "
            f"{served.model or 'its model'}, and ours waits its turn with {served.waiting} more",
        )
    if started and container.is_up and answers and (why := _cannot_be_tried(probe)):
        return Verdict(
            outcome=Outcome.VERIFIED,
            because=f"it answers again; {why}",
        )
    if overdue:
        by = f" by {intent.verify_by:%H:%M:%S} UTC" if intent.verify_by else " in time"
        says = f": {probe.says}" if probe is not None and probe.says else ""
        return Verdict(outcome=Outcome.FAILED, because=f"not serving{by}{says}")
    return Verdict(outcome=None, because="waiting for a completion by the container started")


def _cannot_be_tried(probe: Completion | None) -> str:
    """Why no completion will ever prove it; empty if one may."""
    if probe is not None and (probe.unauthorised or probe.unsupported):
        return f"no token can be asked for: {probe.says}"
    return ""
