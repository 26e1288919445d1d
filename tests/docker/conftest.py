"""Fixtures of the tests on a real Docker engine, and what holds for all of them: Docker tells of
no act on a daemon's containers that is neither in its journal nor a test's own."""

from collections.abc import Iterator

import docker
import pytest

from tests.blackbox import Daemon, hook
from tests.docker.engine import docker_engine, testbed, vllm_box
from tests.docker.event_stream import EventStream
from tests.docker.second_engine import second_engine

__all__ = ["docker_engine", "hook", "second_engine", "testbed", "vllm_box"]


@pytest.fixture(scope="session")
def event_stream(docker_engine: docker.DockerClient) -> Iterator[EventStream]:
    """Over the whole run of a worker, and judged once more at its end."""
    stream = EventStream(docker_engine, docker.from_env())
    yield stream
    left = stream.unaccounted(Daemon.journals)
    stream.close()
    if left:
        pytest.fail(f"in no journal, and no test's own: {'; '.join(left)}", pytrace=False)


@pytest.fixture(autouse=True)
def nothing_is_done_without_a_word(request: pytest.FixtureRequest) -> Iterator[None]:
    """Judged for each test, so that the one is named in which it was done."""
    if "docker_engine" not in request.fixturenames:
        yield
        return
    stream: EventStream = request.getfixturevalue("event_stream")
    before = len(Daemon.journals)
    yield
    left = stream.unaccounted(Daemon.journals[before:])
    if left:
        pytest.fail(f"in no journal, and not this test's own: {'; '.join(left)}", pytrace=False)
