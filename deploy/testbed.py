#!/usr/bin/env python3
"""A bench of vLLM containers for tests and demonstrations, on whatever Docker engine there is.

Containers run in an empty image with the host's /usr and the Python in use mounted read-only,
so nothing is downloaded. Everything made here carries the label `sentinel.test=<run>`; cleaning
up removes what carries it, by id, and never anything else.
"""

import argparse
import io
import json
import os
import secrets
import shlex
import signal
import socket
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import docker
from docker.errors import ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import Mount

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from deploy.docker_engine import NoEngineError, connect, stop_engine

__all__ = ["Box", "NoEngineError", "Testbed", "connect", "free_port", "stop_engine", "wait_until"]

IMAGE = "sentinel-hostfs:1"
LABEL = "sentinel.test"
ENGINE_TITLE = "VLLM::EngineCore"
HERE = Path(__file__).resolve().parent
PYTHON = Path(sys.executable).resolve()

Answer = TypeVar("Answer")


def wait_until(condition: Callable[[], Answer], seconds: float, what: str = "") -> Answer:
    """Ask until the answer is true, and return it; TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what or condition}")
        time.sleep(0.05)
    return answer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# --- what is mounted


def host_mounts(python: Path = PYTHON) -> list[Mount]:
    """Enough of the host, read-only, to run `python` in an empty image."""
    places = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"]
    if not python.is_relative_to("/usr"):
        places.append(str(python.parent.parent))
    return [bind(place, place) for place in places if Path(place).exists()]


def bind(source: str | Path, target: str | Path) -> Mount:
    return Mount(str(target), str(source), type="bind", read_only=True)


def _launcher() -> Path:
    """A program called `vllm`, so that the container's command reads as a real one's."""
    libraries = PYTHON.parent.parent / "lib"
    shared = any(libraries.glob("libpython*.so*")) and not libraries.is_relative_to("/usr")
    path = f"LD_LIBRARY_PATH={shlex.quote(str(libraries))} " if shared else ""
    run = f'{path}exec {shlex.quote(str(PYTHON))} -S /vllm/lib/simulated_vllm.py "$@"'
    text = f"#!/bin/sh\n{run}\n"
    folder = Path(tempfile.gettempdir()) / f"sentinel-testbed-{os.geteuid()}"
    folder.mkdir(mode=0o755, exist_ok=True)
    file = folder / f"vllm-{zlib.crc32(text.encode()):08x}"
    if not file.exists():  # its name is its content; containers start from it again and again
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text(text)
        new.chmod(0o755)
        new.replace(file)
    return file


# --- containers


@dataclass(frozen=True, slots=True)
class Box:
    """One container of the bench, and what a test wants to know of it or do to it."""

    container: Container
    port: int | None  # on 127.0.0.1

    @property
    def name(self) -> str:
        return str(self.container.name)

    @property
    def id(self) -> str:
        return str(self.container.id)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def state(self) -> dict[str, Any]:
        self.container.reload()
        found: dict[str, Any] = self.container.attrs["State"]
        return found

    def get(self, path: str, *, seconds: float = 5.0) -> tuple[int, str]:
        """Status and body; status 0 when nobody answered."""
        return self._ask(urllib.request.Request(self.url + path), seconds)

    def post(self, path: str, body: object = None, *, seconds: float = 30.0) -> tuple[int, str]:
        data = json.dumps(body if body is not None else {}).encode()
        kind = {"content-type": "application/json"}
        return self._ask(urllib.request.Request(self.url + path, data, kind), seconds)

    def _ask(self, request: urllib.request.Request, seconds: float) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return answer.status, answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")
        except OSError:
            return 0, ""

    def complete(self, *, tokens: int = 1, seconds: float = 30.0) -> tuple[int, str]:
        body = {"prompt": "Say something.", "max_tokens": tokens}
        return self.post("/v1/completions", body, seconds=seconds)

    def fault(self, command: str) -> None:
        """Make something go wrong: a command of `simulation/faults.py`."""
        status, body = self.post(f"/sim/{command}")
        if status != 200:
            raise ValueError(body or "nobody answered")

    def wait_ready(self, seconds: float = 60.0) -> "Box":
        wait_until(lambda: self.get("/health")[0] == 200, seconds, f"{self.name} to be ready")
        return self

    def wait_exit(self, seconds: float = 30.0) -> int:
        wait_until(lambda: not self.state["Running"], seconds, f"{self.name} to exit")
        return int(self.state["ExitCode"])

    def host_pid(self, title: str = ENGINE_TITLE) -> int:
        """The process with this title, as the host numbers it."""
        rows = self.container.top(ps_args="-eo pid,args")["Processes"]
        return int(next(row[0] for row in rows if row[1].strip().startswith(title)))

    def kill_engine(self) -> None:
        os.kill(self.host_pid(), signal.SIGKILL)

    def hang_engine(self) -> None:
        os.kill(self.host_pid(), signal.SIGSTOP)

    def logs(self) -> str:
        return str(self.container.logs(timestamps=False).decode(errors="replace"))

    def remove(self) -> None:
        try:
            self.container.remove(force=True, v=True)
        except NotFound:
            return


class Testbed:
    """All containers of one run: `run` is the value of their label and begins their names."""

    __test__ = False  # pytest: not a test

    def __init__(
        self,
        client: docker.DockerClient | None = None,
        *,
        run: str = "",
        prefix: str | None = None,
    ) -> None:
        self.client = client or connect()
        self.run = run or f"t{secrets.token_hex(3)}"
        self.prefix = f"{self.run}-" if prefix is None else prefix
        self._ensure_image()

    def _ensure_image(self) -> None:
        try:
            self.client.images.get(IMAGE)
        except ImageNotFound:
            empty = io.BytesIO()
            tarfile.open(fileobj=empty, mode="w").close()
            repository, _, tag = IMAGE.partition(":")
            self.client.api.import_image_from_data(empty.getvalue(), repository, tag)

    def run_simulated(
        self,
        name: str,
        *,
        args: Sequence[str] = ("--served-model-name", "tiny"),
        env: Mapping[str, str] | None = None,
        port: int | None = None,
        publish: bool = True,
        **options: Any,
    ) -> Box:
        """`vllm serve /models/tiny …` in a container called `<run>-<name>`, started."""
        mounts = [*host_mounts(), bind(_launcher(), "/vllm/bin/vllm"), bind(HERE, "/vllm/lib")]
        command = ["vllm", "serve", "/models/tiny", *args]
        host_port = (port or free_port()) if publish else None
        environment = {"SIM_START_SECONDS": "1", **(env or {})}
        environment["PATH"] = "/vllm/bin:/usr/local/bin:/usr/bin:/bin"
        return self.start(
            name, command, mounts=mounts, env=environment, host_port=host_port, **options
        )

    def start(
        self,
        name: str,
        command: Sequence[str],
        *,
        mounts: Sequence[Mount],
        env: Mapping[str, str],
        host_port: int | None,
        labels: Mapping[str, str] | None = None,
        restart_policy: str = "no",
        **options: Any,
    ) -> Box:
        """Any command on the bench. `options` are docker-py's for `containers.create`."""
        inside = _port_of(command)
        container = self.client.containers.create(
            IMAGE,
            list(command),
            name=self.full_name(name),
            environment=dict(env),
            mounts=list(mounts),
            labels={LABEL: self.run, **(labels or {})},
            ports={f"{inside}/tcp": ("127.0.0.1", host_port)} if host_port else None,
            restart_policy={"Name": restart_policy},  # type: ignore[arg-type]
            **options,
        )
        container.start()
        container.reload()
        return Box(container, host_port)

    def full_name(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def boxes(self) -> list[Container]:
        found = self.client.containers.list(all=True, filters={"label": f"{LABEL}={self.run}"})
        return list(found)

    def clean(self) -> list[str]:
        """Remove every container of this run, and whatever carries its label with them."""
        names = []
        for container in self.boxes():
            names.append(str(container.name))
            Box(container, None).remove()
        for network in self.client.networks.list(filters={"label": f"{LABEL}={self.run}"}):
            network.remove()
        return names


def _port_of(command: Sequence[str]) -> int:
    for at, word in enumerate(command):
        if word == "--port":
            return int(command[at + 1])
        if word.startswith("--port="):
            return int(word.partition("=")[2])
    return 8000


# --- the command line


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="start a simulated vLLM: run NAME [vLLM's arguments]")
    run.add_argument("name")
    run.add_argument("--env", action="append", default=[], metavar="SIM_X=Y")
    run.add_argument("--publish", type=int, metavar="PORT", help="port on 127.0.0.1")
    run.add_argument("--restart", default="no", help="Docker's restart policy")
    clean = commands.add_parser("clean", help="remove the bench's containers called PREFIX…")
    clean.add_argument("prefix")
    commands.add_parser("stop-engine", help="stop the Docker engine that the bench started")
    given, rest = parser.parse_known_args(argv)
    if given.command == "stop-engine":
        stop_engine()
    elif given.command == "clean":
        for container in connect().containers.list(all=True, filters={"label": LABEL}):
            if str(container.name).startswith(given.prefix):
                Box(container, None).remove()
                print(container.name)
    else:
        box = Testbed(run="cli", prefix="").run_simulated(
            given.name,
            args=rest or ("--served-model-name", "tiny"),
            env=dict(pair.split("=", 1) for pair in given.env),
            port=given.publish,
            restart_policy=given.restart,
        )
        print(f"{box.name} {box.url}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
