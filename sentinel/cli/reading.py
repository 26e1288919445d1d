"""What the `config` commands need of the configuration; heavy, so imported when they run."""

import glob
import os
from pathlib import Path
from typing import Any

from sentinel.config.fault import ConfigRefused
from sentinel.config.load import Loaded, load_settings
from sentinel.config.rulefile import load_rule_files

STARS = "**********"  # how pydantic writes a secret


def check(file: Path | None) -> Loaded:
    """The configuration, with its secrets and rules looked at too; raises `ConfigRefused`.

    The daemon starts without a secret it cannot read; a check refuses that.
    """
    loaded = load_settings(file, env=os.environ)
    if loaded.unready:
        raise ConfigRefused(loaded.unready)
    files = [
        Path(found)
        for pattern in loaded.settings.rules.files
        for found in sorted(glob.glob(str(pattern)))  # noqa: PTH207 - the pattern is absolute
    ]
    load_rule_files(files)
    return loaded


def export(file: Path | None) -> dict[str, Any]:
    """Every key with its value, as a file would have it; secrets as `<secret>`."""
    settings = load_settings(file, env=os.environ).settings
    shown: dict[str, Any] = _without_secrets(settings.model_dump(mode="json", by_alias=True))
    return shown


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return "<secret>" if value == STARS else value
