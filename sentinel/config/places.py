"""Where things are: a flag wins over the environment, which wins over the file."""

from collections.abc import Mapping
from pathlib import Path

CONFIG_FILE = Path("/etc/sentinel/sentinel.yaml")
RUNTIME_DIRECTORY = Path("/run/sentinel")
SOCKET = "sentinel.sock"


def config_file(flag: Path | None, env: Mapping[str, str]) -> tuple[Path, bool]:
    """The configuration's path, and whether somebody asked for it by name."""
    if flag is not None:
        return flag, True
    if given := env.get("SENTINEL_CONFIG"):
        return Path(given), True
    return CONFIG_FILE, False


def state_dir(flag: Path | None, env: Mapping[str, str], in_file: Path) -> Path:
    if flag is not None:
        return flag.absolute()
    if given := env.get("STATE_DIRECTORY"):  # systemd lists several with colons
        return Path(given.split(":")[0]).absolute()
    return in_file


def socket(flag: Path | None, env: Mapping[str, str], in_file: Path | None) -> Path:
    if flag is not None:
        return flag.absolute()
    if given := env.get("SENTINEL_SOCKET"):
        return Path(given).absolute()
    if in_file is not None:
        return in_file
    if given := env.get("RUNTIME_DIRECTORY"):
        return Path(given.split(":")[0]).absolute() / SOCKET
    return RUNTIME_DIRECTORY / SOCKET
