"""A Docker engine for tests and demonstrations: the one that answers, or one started here.

Starting one needs root and says so in a line; what was started is remembered in a file, and
`stop_engine` stops that and nothing else.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import docker
from docker.errors import DockerException

STARTED_ENGINE = Path(tempfile.gettempdir()) / "sentinel-testbed-dockerd.pid"
TIMID = ("--iptables=false", "--ip-masq=false", "--storage-driver=vfs")
_daemons: list["subprocess.Popen[bytes]"] = []  # kept, or Python would call them leaked


class NoEngineError(Exception):
    """No Docker engine answers, and none could be started."""


def connect() -> docker.DockerClient:
    """A client of the engine that answers; starts one if none does and we are root."""
    client = _answering()
    if client is not None:
        return client
    if os.geteuid() != 0:
        raise NoEngineError("no Docker engine answers, and only root can start one")
    with STARTED_ENGINE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several test workers starts it
        _install_engine()
        for start in (_answering, _start_engine, lambda: _start_engine(TIMID)):
            client = start()
            if client is not None:
                return client
    raise NoEngineError(f"dockerd does not stay up: see {STARTED_ENGINE.with_suffix('.log')}")


def _answering() -> docker.DockerClient | None:
    try:
        client = docker.from_env(timeout=60)
    except DockerException:
        return None
    try:
        client.ping()
    except (DockerException, OSError):
        client.close()
        return None
    return client


def _install_engine() -> None:
    if shutil.which("dockerd") is None:
        print("testbed: no Docker here; apt-get install -y docker.io iptables", flush=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update"], ["install", "-y", "docker.io", "iptables"]):
            command = ["apt-get", "-qq", *words]
            subprocess.run(command, check=False, env=quiet, stdout=subprocess.DEVNULL)
    if shutil.which("dockerd") is None:
        raise NoEngineError("dockerd is not installed and apt-get could not install it")


def _start_engine(flags: Sequence[str] = ()) -> docker.DockerClient | None:
    with STARTED_ENGINE.with_suffix(".log").open("ab") as log:
        daemon = subprocess.Popen(
            ["dockerd", *flags], stdout=log, stderr=log, start_new_session=True
        )
    _daemons.append(daemon)
    for _ in range(150):
        if daemon.poll() is not None:
            return None
        client = _answering()
        if client is not None:
            STARTED_ENGINE.write_text(str(daemon.pid))
            print(f"testbed: started dockerd {' '.join(flags)} as process {daemon.pid}", flush=True)
            return client
        time.sleep(0.2)
    daemon.terminate()
    daemon.wait(30)
    return None


def stop_engine() -> None:
    """Stop the engine that `connect` started, if it did."""
    if STARTED_ENGINE.exists():
        pid = int(STARTED_ENGINE.read_text())
        STARTED_ENGINE.unlink()
        if (
            Path(f"/proc/{pid}/comm").exists()
            and "dockerd" in Path(f"/proc/{pid}/comm").read_text()
        ):
            os.kill(pid, signal.SIGTERM)
            print(f"testbed: stopped dockerd {pid}", flush=True)
