"""The page of the command line names every command, option and route there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from sentinel.api.answers import CODES
from sentinel.api.app import build_api
from sentinel.cli.main import app
from tests.api.fake_house import NOW, FakeHouse

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(command: Any, name: str = "sentinel") -> Iterator[tuple[str, Any]]:
    for sub, inner in getattr(command, "commands", {}).items():
        if not getattr(inner, "commands", None) or getattr(inner, "invoke_without_command", False):
            yield f"{name} {sub}", inner
        yield from commands(inner, f"{name} {sub}")


ALL = dict(commands(typer.main.get_command(app)))


def usage(name: str) -> str:
    """The line of the page that shows how `name` is called."""
    return next((found[0] for found in re.finditer(r"`(sentinel [^`]+)`", PAGE) if f"`{name} " in found[0] or f"`{name}`" in found[0]), "")  # fmt: skip


def test_the_commands_of_the_product_exist() -> None:
    promised = ["run", "status", "alerts", "incidents", "intents", "explain", "silence add", "silence list", "silence expire", "ack", "approve", "reject", "pause", "resume", "scorecard", "query", "reload", "install", "doctor", "diagnose", "test-notify", "advise", "demo"]  # fmt: skip
    promised += ["rules check", "rules test"]
    promised += [f"act {name}" for name in ("restart", "lower-max-num-seqs", "restore")]
    promised += [f"config {name}" for name in ("check", "reference", "init", "export", "diff")]

    assert {f"sentinel {name}" for name in promised} <= set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_every_command_is_on_the_page(name: str) -> None:
    assert usage(name), f"docs/cli.md does not show {name}"


@pytest.mark.parametrize("name", ALL)
def test_every_option_is_on_the_page_beside_its_command(name: str) -> None:
    lines = "\n".join(
        line for line in PAGE.splitlines() if f"`{name} " in line or f"`{name}`" in line
    )
    options = {
        option for param in ALL[name].params for option in param.opts if option.startswith("--")
    }

    assert not {option for option in options - {"--help"} if option not in lines}


@pytest.mark.parametrize("name", ALL)
def test_every_command_helps(name: str) -> None:
    assert ALL[name].help


def test_every_route_is_on_the_page() -> None:
    api = build_api(FakeHouse(), token=None, trusted=True, now=lambda: NOW)
    routes = {re.sub(r":path", "", route.path) for route in api.routes if "rest" not in route.path}  # type: ignore[attr-defined]

    assert not {route for route in routes - {"/"} if route not in PAGE}


def test_every_status_of_an_error_is_on_the_page() -> None:
    told = PAGE[PAGE.index("A failure of the others is") :]

    assert not {status for status in CODES if status not in (408, 500) and str(status) not in told}
