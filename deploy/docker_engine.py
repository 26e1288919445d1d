"""A Docker engine for tests and demonstrations: the one that answers, or one started here.

Starting one needs root and says so in a line; what was started is remembered in a file, and
`stop_engine` stops that and nothing else.
"""

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import docker
from docker.errors import DockerException

STARTED_ENGINE = Path(tempfile.gettempdir()) / "sentinel-testbed-dockerd.pid"
ENGINE_SOCKET = Path("/var/run/docker.sock")
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
        raise NoEngineError(_why_not_here())
    with STARTED_ENGINE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several test workers starts it
        _install_engine()
        for start in (_answering, _start_engine, lambda: _start_engine(TIMID)):
            client = start()
            if client is not None:
                return client
    raise NoEngineError(f"dockerd does not stay up: see {STARTED_ENGINE.with_suffix('.log')}")


def _why_not_here() -> str:
    if ENGINE_SOCKET.is_socket() and not os.access(ENGINE_SOCKET, os.R_OK | os.W_OK):
        return f"this user may not open {ENGINE_SOCKET}: be root, or of the group docker"
    return "no Docker engine answers, and only root can start one"


def _answering() -> docker.DockerClient | None:
    if "DOCKER_HOST" not in os.environ and not is_open():
        return None
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


def is_open(path: Path = ENGINE_SOCKET) -> bool:
    """Does anybody listen? docker-py would leave a socket open that it could not connect."""
    with socket.socket(socket.AF_UNIX) as door:
        return door.connect_ex(str(path)) == 0


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
    return start_daemon(["dockerd", *flags], STARTED_ENGINE, _answering)


def start_daemon(
    command: Sequence[str], record: Path, answering: Callable[[], docker.DockerClient | None]
) -> docker.DockerClient | None:
    """A client of what `command` starts, whose process is written to `record`; None if it ends."""
    with (log_file := record.with_suffix(".log")).open("ab") as log:
        daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    _daemons.append(daemon)
    for _ in range(150):
        if daemon.poll() is not None:
            return None
        client = answering()
        if client is not None:
            record.write_text(str(daemon.pid))
            print(f"testbed: started an engine, process {daemon.pid}: {log_file}", flush=True)
            return client
        time.sleep(0.2)
    daemon.terminate()
    daemon.wait(30)
    return None


def stop_engine(record: Path = STARTED_ENGINE) -> None:
    """Stop the engine that was started here, if one was, and wait until it is gone."""
    if not record.exists():
        return
    pid = int(record.read_text())
    record.unlink()
    if not _is_engine(pid):
        return
    os.kill(pid, signal.SIGTERM)
    for _ in range(300):  # one that is started meanwhile would find its files taken
        if not _is_engine(pid):
            break
        time.sleep(0.1)
    print(f"testbed: stopped dockerd {pid}", flush=True)


def _is_engine(pid: int) -> bool:
    for daemon in _daemons:
        daemon.poll()  # or our own child would stay as a zombie of that name
    try:
        return "dockerd" in Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return False
