"""A Docker engine and a bench of simulated vLLM servers, for tests.

In CI (`CI=true`) a missing engine fails the tests; elsewhere it skips them, but only when none
could be started either. Each test has its own run, so tests may run beside each other.
"""

import os
from collections.abc import Iterator
from typing import Any, Protocol

import docker
import pytest

from deploy.testbed import Box, NoEngineError, Testbed, connect, stop_engine

QUICK = {"SIM_START_SECONDS": "0.3", "SIM_TEARDOWN_SECONDS": "0.2"}


class VllmBox(Protocol):
    def __call__(self, name: str = "a", **options: Any) -> Box: ...


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[docker.DockerClient]:
    try:
        client = connect()
    except NoEngineError as reason:
        if os.environ.get("CI", "").lower() in ("true", "1"):
            pytest.fail(f"CI must have a Docker engine: {reason}", pytrace=False)
        pytest.skip(str(reason))
    yield client
    client.close()
    if "PYTEST_XDIST_WORKER" not in os.environ:  # other workers may still need it
        stop_engine()


@pytest.fixture
def testbed(docker_engine: docker.DockerClient) -> Iterator[Testbed]:
    bench = Testbed(docker_engine)
    yield bench
    bench.clean()


@pytest.fixture
def vllm_box(testbed: Testbed) -> VllmBox:
    """Starts a simulated vLLM that is ready in 0.3 s unless `env` says otherwise."""

    def start(name: str = "a", **options: Any) -> Box:
        env = {**QUICK, **options.pop("env", {})}
        return testbed.run_simulated(name, env=env, **options)

    return start
