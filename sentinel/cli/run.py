"""`sentinel run`: the daemon itself."""

import os
from pathlib import Path

from sentinel.runtime.app import App, Flags
from sentinel.telemetry.logging import configure


def run(config: Path | None, state_dir: Path | None, socket: Path | None) -> None:
    configure()
    App(Flags(config=config, state_dir=state_dir, socket=socket), os.environ).run()
