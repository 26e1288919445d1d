"""Whatever happens in between, one container of the name is left, running, as it was."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.model.container import Status
from sentinel.core.recreate import deeds
from sentinel.core.recreate.plan import Aim, facts_of, plan_of
from sentinel.core.recreate.transaction import next_step
from tests.core.recreate.world import START, Box, Driver, Fault, World, a_plan

POLICIES = ("no", "on-failure", "unless-stopped", "always")
NETWORKS = {"blue": {"Aliases": ["llm"]}, "green": {}}
HARMLESS = [fault for fault in Fault if fault is not Fault.NONE]


def a_world(policy: str = "always", *faults: Fault, **old: Any) -> tuple[World, Box]:
    world = World()
    box = world.add("llm", policy, up=True, started_at=START, networks=set(NETWORKS), **old)
    world.faults = itertools.chain(faults, itertools.repeat(Fault.NONE))
    return world, box


def left(world: World) -> tuple[Box, ...]:
    return tuple(world.boxes.values())


def is_whole(box: Box, policy: str) -> bool:
    """Its own name, its own policy, its own volumes and networks."""
    return (box.name, box.policy, box.volumes, box.networks) == (
        "llm",
        policy,
        ("cache",),
        set(NETWORKS),
    )


def test_the_order_when_nothing_goes_wrong() -> None:
    world, old = a_world("always")
    plan = a_plan(world, old, networks=NETWORKS)

    ended = Driver.of(world, plan).finish()

    (new,) = left(world)
    assert ended == deeds.Finished(container_id=new.id)
    assert new.id != old.id
    assert [type(deed).__name__ for deed in world.done] == [
        "Create", "Connect", "Connect", "Stop", "SetPolicy", "Rename", "Rename", "Start", "Remove",
    ]  # fmt: skip
    assert is_whole(new, "always")
    assert new.up


@pytest.mark.parametrize("fault", HARMLESS)
@pytest.mark.parametrize("at", range(10))
@pytest.mark.parametrize("dies", [False, True], ids=["serves", "dies at once"])
@pytest.mark.parametrize("policy", POLICIES)
def test_one_fault_at_any_step_leaves_one_container_running(
    fault: Fault, at: int, dies: bool, policy: str
) -> None:
    world, old = a_world(policy, *[Fault.NONE] * at, fault)
    plan = a_plan(world, old, dies=dies, networks=NETWORKS)

    ended = Driver.of(world, plan).finish()

    assert isinstance(ended, deeds.Finished)
    (box,) = left(world)
    assert is_whole(box, policy)
    restarted_for_good = fault is Fault.ENGINE_RESTARTS and policy in ("no", "on-failure")
    assert box.up or restarted_for_good
    if dies:
        assert box.id == old.id


@given(
    policy=st.sampled_from(POLICIES),
    dies=st.booleans(),
    faithful=st.booleans(),
    faults=st.lists(
        st.sampled_from([f for f in Fault if f is not Fault.ENGINE_RESTARTS]), max_size=60
    ),
)
def test_any_number_of_faults_leaves_one_container_running(
    policy: str, dies: bool, faithful: bool, faults: list[Fault]
) -> None:
    world, old = a_world(policy, *faults)
    plan = a_plan(world, old, dies=dies, networks=NETWORKS)

    ended = Driver.of(world, plan, faithful=faithful).finish()

    (box,) = left(world)
    assert ended == deeds.Finished(container_id=box.id)
    assert is_whole(box, policy)
    assert box.up
    assert (box.id == old.id) is (dies or not faithful)


@given(
    policy=st.sampled_from(["always", "unless-stopped"]),
    dies=st.booleans(),
    faults=st.lists(st.sampled_from(Fault), max_size=40),
)
def test_engines_that_restart_in_between_leave_one_container(
    policy: str, dies: bool, faults: list[Fault]
) -> None:
    world, old = a_world(policy, *faults)

    ended = Driver.of(world, a_plan(world, old, dies=dies, networks=NETWORKS)).finish()

    named = [box for box in left(world) if box.name == "llm"]
    assert len(named) == 1
    if isinstance(ended, deeds.Finished):
        assert left(world) == tuple(named)
        assert is_whole(named[0], policy)


def test_what_is_not_the_same_is_taken_away_before_the_old_is_touched() -> None:
    world, old = a_world()

    ended = Driver.of(world, a_plan(world, old, networks=NETWORKS), faithful=False).finish()

    assert ended == deeds.Finished(container_id=old.id)
    assert not any(getattr(deed, "container_id", None) == old.id for deed in world.done)


def test_what_did_not_run_before_does_not_run_after_a_roll_back() -> None:
    world, old = a_world("no")
    old.up = False

    Driver.of(world, a_plan(world, old, dies=True, networks=NETWORKS)).finish()

    assert left(world) == (old,)
    assert not old.up


def test_a_crash_loop_is_ended_whichever_of_its_runs_it_is_in() -> None:
    world, old = a_world(dies=True)
    plan = plan_of({**facts_of(a_plan(world, old, networks={})), "old_started_at": None})
    assert plan.is_run_of(START, Status.RUNNING)

    ended = Driver.of(world, plan).finish()

    assert ended == deeds.Finished(container_id=left(world)[0].id)
    assert left(world)[0].id != old.id


class TestOthers:
    """Somebody else has a hand in it."""

    def reach(self, driver: Driver, deed: type) -> None:
        while not any(isinstance(done, deed) for done in driver.world.done):
            driver.turn()

    @pytest.fixture
    def driver(self) -> Driver:
        world, old = a_world("always")
        return Driver.of(world, a_plan(world, old, networks={}))

    def test_a_restart_by_somebody_before_the_stop_ends_the_attempt(self, driver: Driver) -> None:
        self.reach(driver, deeds.Create)
        old = driver.world.boxes[driver.plan.old_id]
        old.started_at = START.replace(year=2031)

        ended = driver.finish()

        assert ended == deeds.Finished(container_id=old.id)
        assert left(driver.world) == (old,)
        assert old.up

    def test_a_name_taken_in_between_strands_the_old_one_beside_it(self, driver: Driver) -> None:
        self.reach(driver, deeds.Rename)
        stranger = driver.world.add("llm", "always", up=True, started_at=START)

        ended = driver.finish()

        assert isinstance(ended, deeds.Stranded)
        assert {box.name for box in left(driver.world)} == {"llm", "llm.so-7"}
        assert stranger.up

    def test_a_backup_that_somebody_started_is_not_run_beside_the_new(self, driver: Driver) -> None:
        self.reach(driver, deeds.Start)
        new = next(box for box in left(driver.world) if box.tx)
        old = driver.world.boxes[driver.plan.old_id]
        new.up, old.up = False, True

        ended = driver.finish()

        assert isinstance(ended, deeds.Stranded)  # its policy can only be set by hand
        assert "back to always" in ended.because
        assert left(driver.world) == (old,)

    @pytest.mark.parametrize("begun", [deeds.Create, deeds.Stop, deeds.Rename, deeds.Start])
    def test_an_old_one_removed_by_somebody_leaves_the_new(
        self, driver: Driver, begun: type
    ) -> None:
        self.reach(driver, begun)
        del driver.world.boxes[driver.plan.old_id]

        ended = driver.finish()

        assert isinstance(ended, deeds.Stranded)
        (box,) = left(driver.world)
        assert (box.name, box.up) == ("llm", True)

    def test_an_old_one_removed_before_there_is_a_new_is_not_brought_back(
        self, driver: Driver
    ) -> None:
        driver.world.boxes.clear()

        assert isinstance(driver.finish(), deeds.Stranded)
        assert not driver.world.boxes

    def test_the_old_one_is_not_removed_where_the_new_has_gone(self, driver: Driver) -> None:
        self.reach(driver, deeds.Start)
        new = next(box for box in left(driver.world) if box.tx)
        driver.facts = Driver.of(driver.world, driver.plan.towards(Aim.COMMIT)).facts
        del driver.world.boxes[new.id]

        ended = driver.finish()

        assert ended == deeds.Finished(container_id=driver.plan.old_id)
        assert left(driver.world)[0].up

    def test_a_candidate_that_somebody_started_is_taken_away(self, driver: Driver) -> None:
        self.reach(driver, deeds.Create)
        new = next(box for box in left(driver.world) if box.tx)
        new.up, new.started_at = True, START

        driver.turn()
        ended = driver.finish()

        assert ended == deeds.Finished(container_id=driver.plan.old_id)
        assert len(left(driver.world)) == 1


def test_a_plan_outlives_the_journal() -> None:
    world, old = a_world()
    plan = a_plan(world, old, networks=NETWORKS).found_same("x").towards(Aim.COMMIT)

    assert plan_of(facts_of(plan)) == plan
    assert next_step(plan_of(facts_of(plan)), world.look()) == next_step(plan, world.look())
