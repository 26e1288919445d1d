"""Who is at the other end: the kernel's word on the unix socket, "token" over TCP.

It answers *who* in the history and nothing else; access is the socket's mode and group.
"""

import asyncio
import pwd
import socket
import struct

from starlette.requests import Request
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_WITHIN = 10.0  # seconds from connecting to the first request line and headers


class PeerProtocol(H11Protocol):
    """Puts the peer's uid into `request.state`; hangs up on who connects and says nothing."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "uid": _uid(transport.get_extra_info("socket"))}
        self.loop.call_later(REQUEST_WITHIN, self._hang_up_on_silence)

    def _hang_up_on_silence(self) -> None:
        if self.cycle is None:
            self.transport.close()


def who(request: Request) -> str:
    """A name for the history. May block on the user database: not for the event loop."""
    uid = getattr(request.state, "uid", None)
    if uid is None:
        return "token"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _uid(sock: socket.socket | None) -> int | None:
    if sock is None or sock.family != socket.AF_UNIX:
        return None
    packed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", packed)
    return int(uid)
