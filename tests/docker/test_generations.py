"""What was proved on the first engine holds on one of a later generation: the same tests again.

Those are here that depend on what an engine says and does; which, was learned from both.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploy import second_engine as deployed
from deploy.testbed import Testbed
from sentinel.adapters.docker_eyes import DockerEyes
from sentinel.adapters.docker_hands import DockerHands
from tests.blackbox import Daemon
from tests.docker import test_docker_adapters as adapters
from tests.docker import test_recreate as recreate
from tests.docker.engine import QUICK
from tests.docker.event_stream import EventStream
from tests.docker.test_docker_adapters import DockerBox, TestEvents
from tests.docker.test_recreate import (
    DYING,
    Engine,
    TestNetworks,
    TestRefusals,
    blue,
    no_containers_left,
    test_gpus_are_asked_for_as_they_were,
)

__all__ = [
    "TestEvents",
    "TestNetworks",
    "TestRefusals",
    "blue",
    "no_containers_left",
    "test_gpus_are_asked_for_as_they_were",
]

pytestmark = pytest.mark.docker

NOWHERE = "http://127.0.0.1:9/"  # what is told is proved elsewhere; there is nobody in its network


@pytest.fixture(scope="module")
def engine(
    second_engine: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    with recreate.engine_at(deployed.HOST, tmp_path_factory.mktemp("program")) as made:
        yield made


@pytest.fixture
def docker_box(second_engine: docker.DockerClient) -> Iterator[DockerBox]:
    with contextlib.closing(DockerBox(deployed.HOST)) as box:
        yield box


@pytest.fixture
def eyes(second_engine: docker.DockerClient) -> Iterator[DockerEyes]:
    with contextlib.closing(DockerEyes(deployed.HOST)) as eyes:
        yield eyes


@pytest.fixture
def hands(second_engine: docker.DockerClient) -> Iterator[DockerHands]:
    with contextlib.closing(DockerHands(deployed.HOST)) as hands:
        yield hands


def test_it_is_of_another_generation(
    docker_engine: docker.DockerClient, second_engine: docker.DockerClient
) -> None:
    first, second = (
        tuple(int(part) for part in client.version()["ApiVersion"].split("."))
        for client in (docker_engine, second_engine)
    )

    assert second > first


def test_a_dead_engine_is_put_right_and_proved(
    tmp_path: Path, second_engine: docker.DockerClient
) -> None:
    bench = Testbed(second_engine)
    stream = EventStream(second_engine, docker.DockerClient(base_url=deployed.HOST))
    sentinel = Daemon(tmp_path, prefix=bench.prefix, hook=NOWHERE, docker=deployed.HOST)
    sentinel.within = ("nsenter", f"--net=/proc/{deployed.process()}/ns/net")
    box = bench.run_simulated("a", env=QUICK)
    try:
        sentinel.start().wait_for_state(box.name, "idle")
        box.kill_engine()
        incident = sentinel.wait_for_incident("resolved")
    finally:
        sentinel.close()
        bench.clean()
        left = stream.unaccounted(Daemon.journals[-1:])
        stream.close()

    assert incident["diagnosis"]["cause"] == "engine_died"
    assert [i["outcome"] for i in incident["intents"]] == ["verified"]
    assert left == []


@pytest.mark.parametrize(("limit", "after"), [(64, 2), (64, 6), (DYING, 11)])
def test_a_kill_after_a_deed_leaves_one_container_running(
    engine: Engine, blue: str, limit: int, after: int
) -> None:
    recreate.test_a_kill_after_any_deed_leaves_one_container_running(engine, blue, limit, after)


@given(
    host=st.fixed_dictionaries({}, optional=recreate.HOST_CONFIGS),
    config=st.fixed_dictionaries({}, optional=recreate.CONFIGS),
)
@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_options_are_those_of_the_candidate(
    engine: Engine, blue: str, host: dict[str, Any], config: dict[str, Any]
) -> None:
    recreate.any_options_are_those_of_the_candidate(engine, blue, host, config)


class TestRecreation:
    test_entrypoint = recreate.TestTheCommandLine.test_an_entrypoint_switched_off_stays_off
    test_tag = recreate.TestTheCommandLine.test_a_tag_that_moved_does_not_bring_another_image
    test_host_name = recreate.TestNames.test_a_host_name_of_nobodys_is_the_new_short_id
    test_volumes = recreate.TestVolumes.test_anonymous_volumes_go_over_with_what_is_in_them
    test_tmpfs = recreate.TestVolumes.test_a_tmpfs_over_an_images_volume_stays_one
    test_growth = recreate.TestVolumes.test_nothing_grows_over_three_recreations
    test_undone = (
        recreate.TestWhenItGoesWrong.test_a_program_that_ends_at_once_brings_the_old_one_back
    )


class TestEyes:
    test_whole = adapters.TestEyes.test_a_running_container_is_seen_whole
    test_never_started = adapters.TestEyes.test_a_container_that_was_never_started_has_no_times
    test_list = adapters.TestEyes.test_a_list_tells_which_containers_to_look_at_again
    test_record = adapters.TestEyes.test_dockers_own_record_tells_a_person_from_a_crash
    test_log = adapters.TestEyes.test_the_log_is_text_without_colours


class TestHands:
    test_grace = adapters.TestHands.test_a_stop_is_given_its_grace
    test_paused = adapters.TestHands.test_a_paused_container_is_stopped
    test_crash_loop = adapters.TestHands.test_a_crash_loop_is_ended_by_a_stop
    test_start_twice = adapters.TestHands.test_a_start_can_be_repeated
    test_another_run = adapters.TestHands.test_what_was_restarted_in_between_is_not_stopped
