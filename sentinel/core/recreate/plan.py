"""What is written down of one recreation: enough to finish or undo it, remembering nothing.

It holds the container's environment, secrets among it: it belongs in the journal and nowhere
else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from sentinel.core.dockerspeak import instant
from sentinel.core.model.container import Status
from sentinel.core.recreate.arguments import DEFAULT, Edited, Found
from sentinel.core.recreate.commandline import CommandLine
from sentinel.core.recreate.inspected import (
    ORIGINAL,
    chosen_ports,
    command_line_of,
    labels_of,
    name_of,
    part,
)
from sentinel.core.recreate.spec import Recipe, Source, recipe_of

NEVER: Mapping[str, Any] = {"Name": "no", "MaximumRetryCount": 0}


class Aim(StrEnum):
    """Where it is going. Written down before the first step that serves it."""

    REPLACE = "replace"
    COMMIT = "commit"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    tx: str
    name: str
    old_id: str
    old_started_at: datetime | None  # None: Docker restarts it again and again, any run will do
    old_policy: Mapping[str, Any]  # its restart policy
    was_running: bool  # whether it is to run again if this is undone
    recipe: Recipe
    grace: int  # seconds to stop either container
    aim: Aim = Aim.REPLACE
    checked: str | None = None  # the new container that was found to be the same

    @property
    def new_name(self) -> str:
        return f"{self.name}.sn-{self.tx}"

    @property
    def old_name(self) -> str:
        return f"{self.name}.so-{self.tx}"

    @property
    def command_line(self) -> CommandLine:
        """What the new container is to run."""
        return command_line_of({"Config": self.recipe.body})

    @property
    def chosen_ports(self) -> list[str]:
        """Those of the new container that Docker publishes wherever there is room."""
        body = self.recipe.body
        return chosen_ports({"Config": body, "HostConfig": body.get("HostConfig")})

    def is_run_of(self, started_at: datetime | None, status: Status) -> bool:
        """Whether this is the run that was decided about, or one more turn of a crash loop."""
        looping = self.old_started_at is None or status is Status.RESTARTING
        return looping or started_at == self.old_started_at

    def found_same(self, container_id: str) -> "Plan":
        return replace(self, checked=container_id)

    def towards(self, aim: Aim) -> "Plan":
        return replace(self, aim=aim)


def plan_for(source: Source, edited: Edited, *, tx: str, grace: int) -> Plan:
    container = source.container
    state = part(container, "State")
    status = str(state.get("Status") or "")
    is_looping = status == Status.RESTARTING
    return Plan(
        tx=tx,
        name=name_of(container),
        old_id=str(container.get("Id")),
        old_started_at=None if is_looping else instant(state.get("StartedAt")),
        old_policy=dict(part(container, "HostConfig", "RestartPolicy")),
        was_running=status in (Status.RUNNING, Status.PAUSED, Status.RESTARTING),
        recipe=recipe_of(source, edited.command_line, tx=tx, original=_original(source, edited)),
        grace=grace,
    )


def facts_of(plan: Plan) -> dict[str, Any]:
    """For the journal, as JSON has it."""
    started = plan.old_started_at
    return {
        "tx": plan.tx,
        "name": plan.name,
        "old_id": plan.old_id,
        "old_started_at": None if started is None else started.isoformat(),
        "old_policy": dict(plan.old_policy),
        "was_running": plan.was_running,
        "body": dict(plan.recipe.body),
        "networks": dict(plan.recipe.networks),
        "grace": plan.grace,
        "aim": str(plan.aim),
        "checked": plan.checked,
    }


def plan_of(facts: Mapping[str, Any]) -> Plan:
    started = facts["old_started_at"]
    return Plan(
        tx=facts["tx"],
        name=facts["name"],
        old_id=facts["old_id"],
        old_started_at=None if started is None else datetime.fromisoformat(started),
        old_policy=facts["old_policy"],
        was_running=facts["was_running"],
        recipe=Recipe(body=facts["body"], networks=facts["networks"]),
        grace=facts["grace"],
        aim=Aim(facts["aim"]),
        checked=facts["checked"],
    )


def _original(source: Source, edited: Edited) -> str | None:
    """The limit its owner gave it, over any number of recreations; None: it has it again."""
    known = labels_of(source.container).get(ORIGINAL)
    was = str(edited.was.value) if isinstance(edited.was, Found) else DEFAULT
    original = str(known) if known else was
    return None if original == edited.now else original
