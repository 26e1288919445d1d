"""A daemon that is killed with SIGKILL at one chosen word of a remedy, or of a notice.

`python -m tests.docker.mortal_daemon POINT before|after NTH CONFIG STATE SOCKET`
"""

import inspect
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentinel.adapters.docker_hands import DockerHands
from sentinel.adapters.docker_recreate import DockerRecreation
from sentinel.adapters.webhook import WebhookNotifier
from sentinel.runtime.app import App, Flags
from sentinel.store.dispatch import Dispatches
from sentinel.store.journal import Journal
from sentinel.store.outbox import Outbox
from sentinel.telemetry.logging import configure

POINTS: dict[str, tuple[type, str]] = {
    "reserve": (Journal, "reserve"),
    "begin": (Journal, "begin"),
    "done": (Journal, "done"),
    "expect_proof": (Journal, "expect_proof"),
    "close": (Journal, "close"),
    "told": (Dispatches, "write"),
    "owe": (Outbox, "owe"),
    "send": (WebhookNotifier, "send"),
    "sent": (Outbox, "sent"),
    "stop": (DockerHands, "stop"),
    "start": (DockerHands, "start"),
    "recreate": (Journal, "recreate"),
    "deed": (DockerRecreation, "do"),
}


def mortal(real: Callable[..., Any], when: str, nth: int) -> Callable[..., Any]:
    left = nth

    def die_if(moment: str) -> None:
        if left == 0 and when == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    def trapped(*args: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        die_if("before")
        answer = real(*args, **named)
        die_if("after")
        return answer

    async def trapped_in_flight(*args: Any, **named: Any) -> Any:
        nonlocal left
        left -= 1
        die_if("before")
        answer = await real(*args, **named)
        die_if("after")
        return answer

    return trapped_in_flight if inspect.iscoroutinefunction(real) else trapped


def main() -> None:
    point, when, nth, config, state, socket = sys.argv[1:]
    owner, name = POINTS[point]
    setattr(owner, name, mortal(getattr(owner, name), when, int(nth)))
    configure()
    App(Flags(config=Path(config), state_dir=Path(state), socket=Path(socket)), os.environ).run()


if __name__ == "__main__":
    main()
