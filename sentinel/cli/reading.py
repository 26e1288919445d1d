"""What the `config` commands need of the configuration; heavy, so imported when they run."""

import glob
import os
from pathlib import Path
from typing import Any

from sentinel.config.export import as_alertmanager, effective
from sentinel.config.fault import ConfigRefused
from sentinel.config.load import Loaded, load_settings
from sentinel.config.patterns import load_all_patterns
from sentinel.config.rulefile import load_rule_files


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
    load_all_patterns(loaded.settings.log_patterns)
    return loaded


def export(file: Path | None) -> dict[str, Any]:
    return effective(load_settings(file, env=os.environ).settings)


def export_alertmanager(file: Path | None) -> str:
    return as_alertmanager(load_settings(file, env=os.environ).settings)
