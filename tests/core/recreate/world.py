"""An engine with containers in it, as unforgiving as the real one, and a driver that is killed.

Names are taken once, a host port is held by whoever runs, a container that runs is neither
removed nor updated, and a restart of the engine starts what its policy says.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sentinel.core.model.container import Status
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient
from sentinel.core.recreate import deeds
from sentinel.core.recreate.inspected import TX
from sentinel.core.recreate.plan import Aim, Plan, facts_of, plan_of
from sentinel.core.recreate.spec import Recipe
from sentinel.core.recreate.transaction import next_step

START = datetime(2030, 1, 1, tzinfo=UTC)


class Killed(BaseException):
    """Not an Exception, so that no handler in the product can survive it."""


class Fault(StrEnum):
    NONE = "none"
    REFUSED = "refused"
    LOST = "no answer, not done"
    DONE_UNHEARD = "no answer, but done"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    ENGINE_RESTARTS = "engine restarts afterwards"


@dataclass
class Box:
    id: str
    name: str
    policy: str
    tx: str = ""
    up: bool = False
    started_at: datetime | None = None
    stopped_by_hand: bool = False
    volumes: tuple[str, ...] = ("cache",)
    networks: set[str] = field(default_factory=set)
    dies: bool = False  # a program that ends as soon as it is started


@dataclass
class World:
    boxes: dict[str, Box] = field(default_factory=dict)
    faults: Iterator[Fault] = field(default_factory=lambda: itertools.repeat(Fault.NONE))
    done: list[deeds.Deed] = field(default_factory=list)
    _clock: Iterator[int] = field(default_factory=itertools.count)
    _ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def add(self, name: str, policy: str = "no", **facts: Any) -> Box:
        box = Box(id=f"{next(self._ids):064x}", name=name, policy=policy, **facts)
        self.boxes[box.id] = box
        return box

    # what can be seen

    def look(self) -> list[deeds.Seen]:
        return [
            deeds.Seen(
                id=box.id,
                name=box.name,
                tx=box.tx,
                status=self._status(box),
                started_at=box.started_at,
                policy=box.policy,
                networks=frozenset(box.networks),
            )
            for box in self.boxes.values()
        ]

    def _status(self, box: Box) -> Status:
        if box.up:
            return Status.RESTARTING if box.dies else Status.RUNNING
        return Status.CREATED if box.started_at is None else Status.EXITED

    # what can be done

    def do(self, deed: deeds.Deed) -> None:
        fault = next(self.faults, Fault.NONE)
        if fault is Fault.KILLED_BEFORE:
            raise Killed
        if fault is Fault.REFUSED:
            raise Transient("refused")
        if fault is Fault.LOST:
            raise Ambiguous("no answer")
        self._really(deed)
        self.done.append(deed)
        if fault is Fault.ENGINE_RESTARTS:
            self.restart_engine()
        if fault is Fault.KILLED_AFTER:
            raise Killed
        if fault is Fault.DONE_UNHEARD:
            raise Ambiguous("no answer")

    def _really(self, deed: deeds.Deed) -> None:
        match deed:
            case deeds.Create(name=name, body=body):
                self._free(name)
                self.add(name, body["policy"], tx=body["Labels"][TX], dies=body["dies"])
            case deeds.Connect(container_id=container_id, network=network):
                self._own(container_id).networks.add(network)
            case deeds.Stop(container_id=container_id):
                box = self._own(container_id)
                box.stopped_by_hand, box.up = True, False
            case deeds.SetPolicy(container_id=container_id, policy=policy):
                box = self._own(container_id)
                assert not box.up, "an update takes the GPUs from a running container"
                box.policy = policy["Name"]
            case deeds.Rename(container_id=container_id, name=name):
                self._free(name, but=container_id)
                self._own(container_id).name = name
            case deeds.Start(container_id=container_id):
                self._start(self._own(container_id))
            case deeds.Remove(container_id=container_id):
                if self._own(container_id).up:
                    raise Transient("cannot remove a running container")
                del self.boxes[container_id]

    def restart_engine(self) -> None:
        """Those whose policy says so come up; a conflict leaves the later one down."""
        for box in self.boxes.values():
            starts = box.policy == "always" or (
                box.policy == "unless-stopped" and not box.stopped_by_hand
            )
            was_up, box.up = box.up, False
            if starts and (box.started_at is not None) and (was_up or box.policy == "always"):
                try:
                    self._start(box)
                except SentinelError:
                    continue

    def _start(self, box: Box) -> None:
        if box.up:
            return
        if any(other.up for other in self.boxes.values()):
            raise Transient("port is already allocated")
        box.started_at = START + timedelta(seconds=next(self._clock))
        box.stopped_by_hand = False
        box.up = not box.dies or box.policy != "no"

    def _own(self, container_id: str) -> Box:
        if container_id not in self.boxes:
            raise Permanent("No such container")
        return self.boxes[container_id]

    def _free(self, name: str, *, but: str = "") -> None:
        if any(box.name == name and box.id != but for box in self.boxes.values()):
            raise Transient(f"the name {name} is in use")


def a_plan(world: World, old: Box, *, dies: bool = False, networks: Mapping[str, Any]) -> Plan:
    body = {"policy": old.policy, "dies": dies, "Labels": {TX: "7"}}
    return Plan(
        tx="7",
        name=old.name,
        old_id=old.id,
        old_started_at=old.started_at,
        old_policy={"Name": old.policy, "MaximumRetryCount": 0},
        was_running=old.up,
        recipe=Recipe(body=body, networks=networks),
        grace=10,
    )


@dataclass
class Driver:
    """Carries a plan out, keeping nothing but the journal: `facts`, as JSON."""

    world: World
    facts: str
    faithful: bool = True
    turns: int = 0

    @classmethod
    def of(cls, world: World, plan: Plan, **options: Any) -> "Driver":
        return cls(world, json.dumps(facts_of(plan)), **options)

    @property
    def plan(self) -> Plan:
        return plan_of(json.loads(self.facts))

    def finish(self, limit: int = 200) -> deeds.Finished | deeds.Stranded:
        while self.turns < limit:
            self.turns += 1
            try:
                step = self.turn()
            except Killed:
                continue  # and started again: nothing is left but the journal
            if isinstance(step, deeds.Finished | deeds.Stranded):
                return step
        raise AssertionError(f"does not end: {self.plan.aim}, {self.world.boxes}")

    def turn(self) -> deeds.Next:
        plan = self.plan
        step = next_step(plan, self.world.look())
        match step:
            case deeds.Check(container_id=container_id):
                same = plan.found_same(container_id)
                self._write(same if self.faithful else plan.towards(Aim.ROLL_BACK))
            case deeds.Prove(container_id=container_id):
                serves = (
                    self.world.boxes[container_id].up and not self.world.boxes[container_id].dies
                )
                self._write(plan.towards(Aim.COMMIT if serves else Aim.ROLL_BACK))
            case deeds.Abandon():
                self._write(plan.towards(Aim.ROLL_BACK))
            case deeds.Finished() | deeds.Stranded():
                pass
            case _:
                self._do(plan, step)
        return step

    def _do(self, plan: Plan, deed: deeds.Deed) -> None:
        try:
            self.world.do(deed)
        except Permanent:
            if plan.aim is Aim.REPLACE:
                self._write(replace(plan, aim=Aim.ROLL_BACK))
        except SentinelError:
            pass  # another look settles it

    def _write(self, plan: Plan) -> None:
        self.facts = json.dumps(facts_of(plan))
