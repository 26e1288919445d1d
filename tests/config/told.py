"""Writes configurations and says what was made of them."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

from sentinel.config.fault import ConfigRefused, Fault
from sentinel.config.load import Loaded, load_settings

NO_ENV: Mapping[str, str] = {}


def write(folder: Path, text: str, name: str = "sentinel.yaml") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dedent(text), encoding="utf-8")
    return file


def load(folder: Path, text: str, env: Mapping[str, str] = NO_ENV) -> Loaded:
    return load_settings(write(folder, text), env=env)


def faults_of(folder: Path, text: str | bytes, env: Mapping[str, str] = NO_ENV) -> list[Fault]:
    file = folder / "sentinel.yaml"
    file.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())
    try:
        load_settings(file, env=env)
    except ConfigRefused as refused:
        return list(refused.faults)
    return []


def told(folder: Path, text: str | bytes) -> list[str]:
    """`LINE:COL KEY: message` of each fault."""
    return [f"{f.line}:{f.column} {f.key}: {f.message}" for f in faults_of(folder, text)]
