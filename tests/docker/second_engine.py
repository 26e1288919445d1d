"""The second Docker engine, years newer than the first, for what must hold on both.

Its packages come from a newer Debian suite. Where that cannot be reached these tests are
skipped and say why, unless `SECOND_ENGINE=required`.
"""

import os
from collections.abc import Iterator

import docker
import pytest

from deploy import second_engine as deployed
from deploy.docker_engine import NoEngineError


@pytest.fixture(scope="session")
def second_engine() -> Iterator[docker.DockerClient]:
    try:
        client = deployed.connect()
    except NoEngineError as reason:
        if os.environ.get("SECOND_ENGINE") == "required":
            pytest.fail(f"there is no second Docker engine: {reason}", pytrace=False)
        pytest.skip(str(reason))
    yield client
    client.close()
    if "PYTEST_XDIST_WORKER" not in os.environ:  # other workers may still need it
        deployed.stop()
