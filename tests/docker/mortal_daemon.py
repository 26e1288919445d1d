"""A daemon that is killed with SIGKILL at one chosen word of a remedy.

`python -m tests.docker.mortal_daemon POINT before|after NTH CONFIG STATE SOCKET`
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentinel.adapters.docker_hands import DockerHands
from sentinel.runtime.app import App, Flags
from sentinel.store.journal import Journal
from sentinel.telemetry.logging import configure

POINTS: dict[str, tuple[type, str]] = {
    "reserve": (Journal, "reserve"),
    "begin": (Journal, "begin"),
    "done": (Journal, "done"),
    "expect_proof": (Journal, "expect_proof"),
    "close": (Journal, "close"),
    "stop": (DockerHands, "stop"),
    "start": (DockerHands, "start"),
}


def mortal(real: Callable[..., Any], when: str, nth: int) -> Callable[..., Any]:
    left = nth

    def trapped(*args: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = real(*args, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return trapped


def main() -> None:
    point, when, nth, config, state, socket = sys.argv[1:]
    owner, name = POINTS[point]
    setattr(owner, name, mortal(getattr(owner, name), when, int(nth)))
    configure()
    App(Flags(config=Path(config), state_dir=Path(state), socket=Path(socket)), os.environ).run()


if __name__ == "__main__":
    main()
