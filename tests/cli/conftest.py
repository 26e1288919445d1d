import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sentinel.cli.main import app
from tests.api.fake_house import FakeHouse, served

Sentinel = Callable[..., Result]

SETTINGS = (
    "SENTINEL_SOCKET",
    "SENTINEL_CONFIG",
    "STATE_DIRECTORY",
    "RUNTIME_DIRECTORY",
    "NO_COLOR",
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeHouse, Path]]:
    house, path = FakeHouse(), tmp_path_factory.mktemp("cli") / "s.sock"
    with served(house, path):
        yield house, path


@pytest.fixture
def house(serving: tuple[FakeHouse, Path]) -> FakeHouse:
    serving[0].__dict__.update(FakeHouse().__dict__)
    return serving[0]


@pytest.fixture
def path(serving: tuple[FakeHouse, Path], house: FakeHouse) -> Path:
    assert house is serving[0]
    return serving[1]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Sentinel:
    """`sentinel ARGS…` in an environment that says nothing."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SENTINEL_CONFIG", str(tmp_path / "sentinel.yaml"))
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *args, **env: CliRunner().invoke(app, list(args), env=env)


@pytest.fixture
def sentinel(alone: Sentinel, path: Path) -> Sentinel:
    """`sentinel ARGS…` with a daemon that answers."""
    return lambda *args, **env: alone(*args, SENTINEL_SOCKET=str(path), **env)


def process(*args: str, **more: Any) -> "subprocess.Popen[str]":
    """`sentinel ARGS…` as a real process, with Ctrl-C in force.

    What runs in the background of a shell inherits that it is ignored.
    """
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from sentinel.cli.main import run; run()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, *args],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )
