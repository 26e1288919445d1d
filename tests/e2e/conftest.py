"""A real vLLM on a bench of its own. Only when asked for: `make e2e`, that is `pytest -m e2e`.

One server serves all tests of what Sentinel does: each starts a daemon of its own over it, with
no memory of what the others did, and whoever finds the server dead has it started again.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.testbed import Box, NoEngineError, Testbed
from tests.blackbox import Daemon, Hook, hook
from tests.e2e.real_vllm import CannotInstallError, Vllm, install, run_real_vllm

__all__ = ["hook"]

READY_WITHIN = 300.0  # seconds
SMALL = (  # a cache that a few requests fill, and steps of few tokens
    *("--distributed-executor-backend", "mp"),
    *("--max-model-len", "2048", "--num-gpu-blocks-override", "24"),
    *("--max-num-seqs", "16", "--max-num-batched-tokens", "16", "--no-enable-prefix-caching"),
)
PATIENCE = """
  overrides:
    - name: "*"
      hung_after: 20s
      hung_after_in_first_minutes: {minutes: 1, hung_after: 20s}
      probe: {deadline: 8s}
"""

Start = Callable[..., Daemon]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "e2e" in (config.option.markexpr or ""):
        return
    for item in items:
        if item.get_closest_marker("e2e"):
            item.add_marker(pytest.mark.skip(reason="needs a real vLLM: make e2e"))


def _cannot(reason: Exception) -> None:
    if os.environ.get("CI", "").lower() in ("true", "1"):
        pytest.fail(f"CI must be able to run this: {reason}", pytrace=False)
    pytest.skip(str(reason))


@pytest.fixture(scope="session")
def vllm() -> Vllm:
    try:
        return install()
    except CannotInstallError as reason:
        _cannot(reason)
        raise


@pytest.fixture(scope="session")
def bench() -> Iterator[Testbed]:
    try:
        made = Testbed()
    except NoEngineError as reason:
        _cannot(reason)
        raise
    yield made
    made.clean()
    made.client.close()


@pytest.fixture(scope="session")
def only_server(bench: Testbed, vllm: Vllm) -> Box:
    return run_real_vllm(bench, vllm, "server", args=SMALL, mem_limit="5g")


@pytest.fixture
def server(only_server: Box) -> Box:
    """The one server, serving."""
    if not only_server.state["Running"]:
        only_server.container.start()
    return only_server.wait_ready(READY_WITHIN)


@pytest.fixture
def daemon(hook: Hook, tmp_path: Path) -> Iterator[Start]:
    """Starts a daemon that looks after the containers whose names begin as told."""
    made: list[Daemon] = []

    def start(prefix: str, **settings: str) -> Daemon:
        settings.setdefault("override", PATIENCE)
        found = Daemon(tmp_path, prefix=prefix, hook=hook.url, **settings)
        made.append(found)
        return found.start()

    yield start
    for each in made:
        each.close()
