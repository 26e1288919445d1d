"""A real vLLM on a bench of its own. Only when asked for: `make e2e`, that is `pytest -m e2e`."""

import os
from collections.abc import Iterator

import pytest

from deploy.testbed import NoEngineError, Testbed
from tests.blackbox import hook
from tests.e2e.real_vllm import CannotInstallError, Vllm, install

__all__ = ["hook"]


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


@pytest.fixture(scope="module")
def bench() -> Iterator[Testbed]:
    try:
        made = Testbed()
    except NoEngineError as reason:
        _cannot(reason)
        raise
    yield made
    made.clean()
    made.client.close()
