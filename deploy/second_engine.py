#!/usr/bin/env python3
"""A second Docker engine, of a newer Debian than the machine's, beside the one that is there.

Its packages are unpacked and never installed. It runs in namespaces of its own for networks and
mounts, with data, socket and processes of its own, so what it does to the network is seen by
its containers alone: from outside, look into them with `exec`, or enter its network.
"""

import argparse
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import docker
from docker.errors import DockerException

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from deploy.docker_engine import TIMID, NoEngineError, is_open, start_daemon, stop_engine

SUITES = ("trixie", "sid")  # the first that runs here
PACKAGES = ("docker.io", "containerd", "runc")
INITS = ("tini", "tini-static")  # docker-init is in the one or the other
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CACHE = Path(__file__).resolve().parent.parent / ".cache" / "second-engine"
PLACE = Path(tempfile.gettempdir()) / "sentinel-second-engine"  # short: sockets lie beneath it
STARTED = PLACE / "dockerd.pid"
SOCKET = PLACE / "docker.sock"
HOST = f"unix://{SOCKET}"
INSIDE = 'ip link set lo up; exec dockerd "$@"'


def connect(suites: Sequence[str] = SUITES) -> docker.DockerClient:
    """A client of the second engine, which is fetched and started where it is not there yet."""
    if os.geteuid() != 0:
        raise NoEngineError("only root can start a second Docker engine")
    PLACE.mkdir(mode=0o711, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one of several test workers starts it
        client = _answering()
        if client is not None:
            return client
        programs = fetch(suites)
        for flags in ((), (*TIMID, "--ip6tables=false")):
            client = start_daemon(_command(programs, flags), STARTED, _answering)
            if client is not None:
                return client
    raise NoEngineError(f"the second dockerd does not stay up: see {STARTED.with_suffix('.log')}")


def stop() -> None:
    """Stop it if it was started here; nothing of it is left but the unpacked packages."""
    stop_engine(STARTED)
    shutil.rmtree(PLACE, ignore_errors=True)


def process() -> int:
    """Its process, in whose network its containers' ports are published."""
    return int(STARTED.read_text())


def _answering() -> docker.DockerClient | None:
    if not is_open(SOCKET):
        return None
    try:
        return docker.DockerClient(base_url=HOST, version="auto", timeout=60)
    except DockerException:  # it listens, and does not answer yet
        return None


def _command(programs: Path, flags: Sequence[str]) -> list[str]:
    path = f"{programs}/usr/bin:{programs}/usr/sbin:{os.environ['PATH']}"
    places = {"--host": HOST, "--data-root": PLACE / "data", "--exec-root": PLACE / "exec"}
    return [
        *("env", f"PATH={path}", "unshare", "--net", "--mount", "sh", "-c", INSIDE, "sh"),
        *(f"{flag}={place}" for flag, place in places.items()),
        f"--pidfile={PLACE / 'own.pid'}",
        *flags,
    ]


# --- its programs


def fetch(suites: Sequence[str] = SUITES) -> Path:
    """The folder of the first suite's programs that run here, from the cache or from Debian."""
    reasons = []
    for suite in suites:
        folder = CACHE / suite
        try:
            if not folder.exists():
                _unpack(suite, folder)
        except (OSError, subprocess.SubprocessError, NoEngineError) as error:
            reasons.append(f"{suite}: {_said(error)}")
        else:
            return folder
    raise NoEngineError(f"no newer Docker engine can be had: {'; '.join(reasons)}")


def _unpack(suite: str, folder: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        work, new = Path(scratch), Path(scratch) / "programs"
        for package in _download(suite, work):
            subprocess.run(["dpkg-deb", "-x", package, new], check=True, capture_output=True)
        _keep_what_runs(new)
        new.rename(folder)  # whole, or not at all


def _download(suite: str, work: Path) -> list[Path]:
    signed = f" [signed-by={KEYRING}]" if KEYRING.exists() else ""
    (work / "sources.list").write_text(f"deb{signed} {_mirror()} {suite} main\n")
    for part in ("lists/partial", "cache/archives/partial"):
        (work / part).mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work / "cache",
        "APT::Sandbox::User": "root",  # no other may be able to write there
        "APT::Update::Error-Mode": "any",
        "Acquire::http::Timeout": "15",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    for words in (["update"], ["download", *PACKAGES]):
        subprocess.run([*apt, *words], check=True, capture_output=True, cwd=work, timeout=80)
    for init in INITS:
        subprocess.run([*apt, "download", init], check=False, capture_output=True, cwd=work)
    return sorted(work.glob("*.deb"))


def _mirror() -> str:
    """Where this machine has its own Debian from."""
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise NoEngineError("a second engine is made of Debian's packages, and this is not Debian")
    words = ["apt-get", "indextargets", "--format", "$(RELEASE) $(REPO_URI)"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split("\n")
    own = release.get("VERSION_CODENAME", "")
    for line in listed:
        name, _, address = line.partition(" ")
        if name == own:
            return address
    raise NoEngineError(f"apt knows no source of {own}")


def _keep_what_runs(programs: Path) -> None:
    """A program may need a newer libc: without runc the machine's own is good enough."""
    for program in ("sbin/dockerd", "bin/containerd"):
        subprocess.run([programs / "usr" / program, "--version"], check=True, capture_output=True)
    runc = programs / "usr" / "sbin" / "runc"
    if subprocess.run([runc, "--version"], check=False, capture_output=True).returncode != 0:
        if shutil.which("runc") is None:
            raise NoEngineError("its runc does not run here, and there is no other")
        runc.unlink()


def _said(error: Exception) -> str:
    said = getattr(error, "stderr", None)
    return said.decode(errors="replace").strip() if said else str(error)


# --- the command line


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("command", choices=["start", "stop"])
    parser.add_argument("--suite", action="append", help=f"instead of {', '.join(SUITES)}")
    given = parser.parse_args()
    if given.command == "stop":
        stop()
        return 0
    client = connect(given.suite or SUITES)
    print(f"{HOST} {client.version()['Version']}")
    client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
