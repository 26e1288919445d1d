"""Debian's promtool as the second opinion, where it is installed."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sentinel.core.alerting.template_lex import unquote

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")


def promtool(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        ["promtool", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout + done.stderr


def check_rules(*files: Path) -> bool:
    return promtool("check", "rules", *files)[0] == 0


def passes_tests(*files: Path) -> bool:
    return promtool("test", "rules", *files)[0] == 0


def annotations(output: str) -> dict[str, str]:
    """The annotations in promtool's `got:` of the one alert there is."""
    listed = re.search(r"Annotations:\{(.*)\}", output, re.DOTALL)
    assert listed is not None, output
    found: Sequence[tuple[str, str]] = re.findall(r'(\w+)=("(?:\\.|[^"\\])*")', listed[1])
    return {name: unquote(text) for name, text in found}
