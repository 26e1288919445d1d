from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes import FakeClock, FakeDocker
from tests.runtime.house import Daemon


@pytest.fixture
def docker() -> FakeDocker:
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    return docker


@pytest.fixture
def house(tmp_path: Path, docker: FakeDocker) -> Iterator[Daemon]:
    made = Daemon(folder=tmp_path, docker=docker, clock=docker.clock)
    made.run(5)
    yield made
    made.memory.close()
