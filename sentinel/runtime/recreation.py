"""How far a container has been made anew, as the journal keeps it.

Only what is in here survives a kill: the aim is written before the first deed that serves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sentinel.core.model.container import Container
from sentinel.core.model.intent import Action, Intent, Outcome, Wish
from sentinel.core.policy.change import Change, Lower, Lowered, Restore, Wanted, change_of
from sentinel.core.recreate.deeds import Connect, Create, Deed, Rename, Seen, SetPolicy, Start, Stop
from sentinel.core.recreate.fit import Load
from sentinel.core.recreate.inspected import TX
from sentinel.core.recreate.plan import Aim, Plan, facts_of, plan_for, plan_of
from sentinel.core.recreate.port import Described
from sentinel.core.recreate.preflight import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Recreation:
    plan: Plan
    ends_as: Outcome = Outcome.ROLLED_BACK
    because: str = ""  # why it ends so
    patch: str = ""  # for the file that the container comes from

    def towards_commit(self, because: str) -> "Recreation":
        plan = self.plan.towards(Aim.COMMIT)
        return replace(self, plan=plan, ends_as=Outcome.VERIFIED, because=because)

    def towards_roll_back(self, because: str, *, stays_down: bool = False) -> "Recreation":
        """`stays_down`: a person has stopped it meanwhile, so it is not started again."""
        plan = self.plan.towards(Aim.ROLL_BACK)
        if not stays_down:
            return replace(self, plan=plan, ends_as=Outcome.ROLLED_BACK, because=because)
        plan = replace(plan, was_running=False)
        return replace(self, plan=plan, ends_as=Outcome.REFUSED, because=because)

    def facts(self) -> dict[str, Any]:
        return {
            "plan": facts_of(self.plan),
            "ends_as": self.ends_as,
            "because": self.because,
            "patch": self.patch,
        }


def recreation_of(facts: Mapping[str, Any]) -> Recreation:
    return Recreation(
        plan=plan_of(facts["plan"]),
        ends_as=Outcome(facts["ends_as"]),
        because=facts["because"],
        patch=facts["patch"],
    )


def is_taken_back(facts: Mapping[str, Any] | None) -> bool:
    return facts is not None and facts["plan"]["aim"] == Aim.ROLL_BACK


def is_stopped_by(intent: Intent, container: Container, facts: Mapping[str, Any] | None) -> bool:
    """Whether an intent that stops something means this very run of this container."""
    wish = intent.wish
    if container.labels.get(TX) == tx_of(intent):
        return is_taken_back(facts)
    if container.id != wish.container_id:
        return False
    loops = wish.action is Action.STOP_LOOP
    any_run_will_do = loops or (facts is not None and facts["plan"]["old_started_at"] is None)
    return any_run_will_do or container.started_at == wish.saw_started_at


def begun(
    described: Described,
    intent: Intent,
    lowered: Lowered | None,
    grace: int,
    *,
    loops: bool = False,
) -> tuple[Recreation, Change] | Refusal:
    """All that is written down before anything is touched; or why it must not be.

    `loops`: it dies whenever Docker starts it, so any of its runs will do.
    """
    wish = intent.wish
    change = change_of(described, wanted_by(wish), Load(limit=None), lowered)
    found = [*change.refusals]
    if change.deploys:
        found.append(Refusal(guard="deploy_in_progress", because=change.deploys))
    refusals = [one for one in found if one.guard not in wish.forced]
    if refusals:
        return refusals[0]
    if change.edited is None:
        return change.refusals[0]
    tx = tx_of(intent)
    plan = plan_for(described.source, change.edited, tx=tx, grace=grace)
    if loops:
        plan = replace(plan, old_started_at=None)
    if wish.action is Action.RESTART:
        plan = replace(plan, was_running=True)  # taken back or not, it is to run
    if plan.old_started_at not in (None, wish.saw_started_at):
        because = "its container has been started anew since that was decided"
        return Refusal(guard="cannot_recreate", because=because)
    return Recreation(plan=plan, patch=change.patch), change


def wanted_by(wish: Wish) -> Wanted:
    return Restore() if wish.restores else Lower(to=wish.limit)


def tx_of(intent: Intent) -> str:
    """Its own also over a state file that was lost."""
    return f"{intent.number}-{intent.wish.container_id[:8]}"


def lowered_by(intent: Intent | None) -> Lowered | None:
    """What the last change that was proved left behind; None if that was the owner's own."""
    if intent is None or intent.wish.restores or intent.wish.limit is None:
        return None
    return Lowered(tx=tx_of(intent), limit=intent.wish.limit)


def step_for(deed: Deed) -> str:
    """The step of the journal that a deed belongs to, on the way to the new container."""
    match deed:
        case Create() | Connect():
            return "create"
        case Stop():
            return "stop"
        case SetPolicy() | Rename() | Start():
            return "start"
    raise AssertionError(deed)  # nothing is removed before it is proved


def words_for(deed: Deed, plan: Plan, seen: tuple[Seen, ...]) -> str:
    """A deed in words, for the timeline."""
    if isinstance(deed, Create):
        return f"create {deed.name}"
    name = next((one.name for one in seen if one.id == deed.container_id), plan.name)
    match deed:
        case Connect(network=network):
            return f"connect {name} to network {network}"
        case Stop():
            return f"stop {name}"
        case SetPolicy(policy=policy):
            return f"set the restart policy of {name} to {policy.get('Name') or 'no'}"
        case Rename(name=to):
            return f"rename {name} to {to}"
        case Start():
            return f"start {name}"
    return f"remove {name}"


def deadline_of(deed: Deed) -> float:
    """Seconds the lane may be busy with it."""
    return (deed.grace if isinstance(deed, Stop) else 120.0) + 60.0
