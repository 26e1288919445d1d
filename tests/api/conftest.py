from pathlib import Path

import pytest

from tests.api.fake_house import FakeHouse


@pytest.fixture
def house() -> FakeHouse:
    return FakeHouse()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sock"
