"""What only a real process shows: pipes, signals, encodings, the time it takes to start."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.fake_house import FakeHouse, a_target, wait_until
from tests.cli.conftest import process


def environment(path: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "SENTINEL_SOCKET": str(path), "COLUMNS": "80", **more}


def test_a_reader_that_leaves_early_changes_neither_answer_nor_calm(
    path: Path, house: FakeHouse
) -> None:
    house.show(targets=[a_target(state="failed")])
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-c", "from sentinel.cli.main import run; run()", "status"]

    done = subprocess.run(
        command,
        env=environment(path),
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
        timeout=30,
    )
    os.close(theirs)

    assert done.returncode == 1
    assert done.stderr == b""


def test_ctrl_c_is_quiet(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s.sock"))
        silent.listen()
        asking = process("alerts", env=environment(tmp_path / "s.sock"))
        silent.settimeout(20)
        connection, _ = silent.accept()
        asking.send_signal(signal.SIGINT)
        out, err = asking.communicate(timeout=20)
        connection.close()

    assert asking.returncode == 130
    assert (out, err.strip()) == ("", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_gets_valid_json_and_readable_text(
    path: Path, house: FakeHouse, encoding: str
) -> None:
    house.show(problems=["显存不足 \U0001f525 é"])
    environ = environment(path, PYTHONIOENCODING=encoding)

    machine, _ = process("status", "--json", env=environ, encoding=encoding).communicate(timeout=30)
    human, errors = process("status", env=environ, encoding=encoding).communicate(timeout=30)

    assert json.loads(machine)["problems"] == ["显存不足 \U0001f525 é"]
    assert "PROBLEMS" in human
    assert errors == ""


def test_status_starts_without_what_is_heavy(path: Path, house: FakeHouse) -> None:
    assert house.snapshot().ready
    heavy = [
        "rich",
        "yaml",
        "starlette",
        "uvicorn",
        "docker",
        "aiohttp",
        "requests",
        "asyncio",
        "prometheus_client",
    ]
    program = (
        "import sys, contextlib\n"
        "from sentinel.cli.main import run\n"
        "assert 'pydantic' not in sys.modules\n"
        "with contextlib.suppress(SystemExit): run()\n"
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program, "status"],
        env=environment(path),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert done.stderr.strip() == "[]"


def test_a_daemon_that_hangs_is_given_up(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "s.sock"))
        silent.listen()
        asking = process(
            "status", "--json", "--state-dir", str(tmp_path), env=environment(tmp_path / "s.sock")
        )
        out, err = asking.communicate(timeout=30)

    assert asking.returncode == 3
    assert json.loads(out)["daemon"]["reachable"] is False
    assert "does not answer" in err
    wait_until(lambda: asking.poll() is not None)
