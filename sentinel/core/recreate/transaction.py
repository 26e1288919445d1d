"""The order in which a container is replaced, from any point at which it may have been left.

There is no counter of steps: each time the next one is worked out from the containers there
are, so that a kill, a lost answer or somebody else's hand changes when, not what. The old
container is removed in one place only: after the new one has been proved.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel.core.recreate.deeds import (
    Abandon,
    Check,
    Connect,
    Create,
    Deed,
    Finished,
    Next,
    Prove,
    Remove,
    Rename,
    Seen,
    SetPolicy,
    Start,
    Stop,
    Stranded,
)
from sentinel.core.recreate.plan import NEVER, Aim, Plan


def next_step(plan: Plan, seen: Sequence[Seen]) -> Next:
    """What comes next, from what is there now: in the first go and after a crash alike."""
    scene = _scene(plan, seen)
    if plan.aim is Aim.COMMIT:
        return _commit(plan, scene)
    if plan.aim is Aim.ROLL_BACK:
        return _roll_back(plan, scene)
    return _replace(plan, scene)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    old: Seen | None
    new: Seen | None
    stranger: Seen | None  # somebody else's, under the name


def _scene(plan: Plan, seen: Sequence[Seen]) -> _Scene:
    old = next((s for s in seen if s.id == plan.old_id), None)
    new = next((s for s in seen if s.tx == plan.tx and s.id != plan.old_id), None)
    ours = {s.id for s in (old, new) if s is not None}
    stranger = next((s for s in seen if s.name == plan.name and s.id not in ours), None)
    return _Scene(old=old, new=new, stranger=stranger)


def _replace(plan: Plan, scene: _Scene) -> Next:
    old, new = scene.old, scene.new
    if old is None:
        return Abandon(because="the container was removed by somebody else")
    if scene.stranger is not None:
        return Abandon(because=f"somebody else made a container called {plan.name}")
    if new is None:
        return Create(name=plan.new_name, body=plan.recipe.body)
    if (deed := _connect(plan, new)) is not None:
        return deed
    if plan.checked != new.id:
        return Check(container_id=new.id)
    return _swap(plan, old, new)


def _connect(plan: Plan, new: Seen) -> Connect | None:
    for network, endpoint in plan.recipe.networks.items():
        if network not in new.networks and not new.was_started:
            return Connect(container_id=new.id, network=network, endpoint=endpoint)
    return None


def _swap(plan: Plan, old: Seen, new: Seen) -> Next:
    if old.is_up:
        if new.was_started:
            return Abandon(because="somebody started one while the other was to run")
        if not plan.is_run_of(old.started_at, old.status):
            return Abandon(because="the old container has been started anew since")
        return Stop(container_id=old.id, grace=plan.grace)
    if (deed := _set_aside(plan, old)) is not None:
        return deed
    return _bring_up(plan, new) or Prove(container_id=new.id)


def _set_aside(plan: Plan, old: Seen) -> Deed | None:
    """Stopped as it is, it must not come back by itself, and gives up its name."""
    if old.policy != NEVER["Name"]:
        return SetPolicy(container_id=old.id, policy=NEVER)
    if old.name != plan.old_name:
        return Rename(container_id=old.id, name=plan.old_name)
    return None


def _bring_up(plan: Plan, new: Seen) -> Deed | None:
    if new.name != plan.name:
        return Rename(container_id=new.id, name=plan.name)
    if not new.was_started:
        return Start(container_id=new.id)
    return None


def _commit(plan: Plan, scene: _Scene) -> Next:
    old, new = scene.old, scene.new
    if new is None or new.name != plan.name:
        return Abandon(because=f"the new container is not there as {plan.name} any more")
    if old is None:
        return Finished(container_id=new.id)
    if old.is_up:
        return Stop(container_id=old.id, grace=plan.grace)
    return Remove(container_id=old.id)


def _roll_back(plan: Plan, scene: _Scene) -> Next:
    old, new = scene.old, scene.new
    if old is None:
        return _without_old(plan, scene)
    if new is not None:
        return _take_away(plan, new)
    if scene.stranger is not None:
        because = f"{plan.name} is another container now; the old one is kept as {old.name}"
        return Stranded(because=because)
    return _put_back(plan, old)


def _take_away(plan: Plan, new: Seen) -> Deed:
    if new.is_up:
        return Stop(container_id=new.id, grace=plan.grace)
    return Remove(container_id=new.id)


def _put_back(plan: Plan, old: Seen) -> Next:
    if old.name != plan.name:
        return Rename(container_id=old.id, name=plan.name)
    policy = str(plan.old_policy.get("Name") or NEVER["Name"])
    if old.policy != policy:
        if old.is_up:
            because = f"{plan.name} runs again, but somebody has to set its restart policy"
            return Stranded(because=f"{because} back to {policy}")
        return SetPolicy(container_id=old.id, policy=plan.old_policy)
    if plan.was_running and not old.is_up:
        return Start(container_id=old.id)
    return Finished(container_id=old.id)


def _without_old(plan: Plan, scene: _Scene) -> Next:
    """The new one, if it is there, is all there is: it is kept, whatever it is worth."""
    new = scene.new
    if scene.stranger is not None:
        if new is not None and not new.was_started:
            return Remove(container_id=new.id)
        return Stranded(because=f"{plan.name} is another container now, and the old one is gone")
    if new is None:
        return Stranded(because="the container is gone; how it was made is in the journal")
    deed = _connect(plan, new) or _bring_up(plan, new)
    return deed or Stranded(because="the old container is gone, so the new one is kept as it is")
