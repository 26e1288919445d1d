"""Where the daemon's socket and state are: flag, then environment, then file, then default.

The configuration is only glanced at: the command line must work while it is broken or may
not be read, and must not spend a quarter of a second on validating it.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sentinel.config import places

STATE = Path("/var/lib/sentinel")


def socket_path(flag: Path | None) -> Path:
    return places.socket(flag, os.environ, _configured("api", "socket"))


def state_folder(flag: Path | None) -> Path:
    return places.state_dir(flag, os.environ, _configured("state_dir") or STATE)


def _configured(*keys: str) -> Path | None:
    main, _ = places.config_file(None, os.environ)
    found = None
    for file in (main, *sorted(main.parent.glob("sentinel.d/*.y*ml"))):
        for given in _glance(file, keys):
            found = file.absolute().parent / given
    return found


def _glance(file: Path, keys: tuple[str, ...]) -> Iterator[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    if keys[-1] not in text:
        return
    value = _parsed(text)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, str):
        yield value


def _parsed(text: str) -> Any:
    import yaml  # noqa: PLC0415 - only where a file names a place

    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - it is a safe one
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
