"""Tells systemd how it goes: ready, alive, stopping. A no-op where nobody listens.

`WATCHDOG=1` is said by the loop at the end of a turn and nowhere else.
"""

import os
import socket
from collections.abc import Mapping


class Systemd:
    def __init__(self, env: Mapping[str, str]) -> None:
        address = env.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        pid = env.get("WATCHDOG_PID")
        self._watched = bool(env.get("WATCHDOG_USEC")) and pid in (None, str(os.getpid()))

    def ready(self, status: str) -> None:
        self._say(f"READY=1\nSTATUS={status}")

    def alive(self) -> None:
        if self._watched:
            self._say("WATCHDOG=1")

    def stopping(self) -> None:
        self._say("STOPPING=1")

    def _say(self, text: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.connect(self._address)
                out.send(text.encode())
        except OSError:
            return  # a watchdog that cannot be told will act on its own
