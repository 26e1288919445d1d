"""Follows the logs of containers through the Docker Engine API, all of them on one event loop.

A stream that ends has told all there is for now, and promises no more: the caller asks again
from the last line it took. What is read is bounded, of what was missed (the last lines only)
and of what comes (a breath between two pieces, so that a flood costs no more than this).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import aiohttp

from sentinel.core.logrecords import Record, Records
from sentinel.core.model.errors import Permanent, Transient

MISSED = 20_000  # lines: of what was written while nobody followed, the last ones
_PIECE = 1 << 18  # twice that is taken at once at most
_BREATH = 0.05  # seconds; together some 10 MB a second
_CONNECT, _SILENCE = 3.0, 600.0
_NO_SUCH, _CANNOT = 404, 501
_UNREADABLE = "does not support reading"


class DockerLogs:
    def __init__(self, host: str) -> None:
        self._host = host
        self._session: aiohttp.ClientSession | None = None

    async def follow(
        self,
        container_id: str,
        *,
        since: str,
        tty: bool,
        to_the_end: bool,
        heard: Callable[[Sequence[Record]], None],
    ) -> None:
        asked = {"stdout": "1", "stderr": "1", "timestamps": "1", "tail": str(MISSED)}
        asked |= {"since": since, "follow": "0" if to_the_end else "1"}
        records = Records(tty=tty)
        async with self._answer(container_id, asked) as response:
            async for piece in _pieces(response):
                if found := tuple(records.feed(piece)):
                    heard(found)
        if found := tuple(records.close()):
            heard(found)

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @asynccontextmanager
    async def _answer(
        self, container_id: str, asked: dict[str, str]
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            async with self._opened().get(
                f"{_base(self._host)}/containers/{container_id}/logs", params=asked
            ) as response:
                if response.status // 100 != 2:
                    raise await _refusal(response)
                yield response
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise Transient(f"Docker does not give its log: {error}") from error

    def _opened(self) -> aiohttp.ClientSession:
        """On the thread that uses it."""
        if self._session is None:
            path = self._host.removeprefix("unix://")
            here = path != self._host
            self._session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(path, limit=0)
                if here
                else aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=_CONNECT, sock_read=_SILENCE
                ),
                read_bufsize=_PIECE,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Until the stream ends, breaks, or is silent for so long that it may be dead."""
    while True:
        try:
            piece = await response.content.readany()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return
        if not piece:
            return
        yield piece
        await asyncio.sleep(_BREATH)


async def _refusal(response: aiohttp.ClientResponse) -> Permanent | Transient:
    said = (await response.content.read(1000)).decode("utf-8", "replace").strip()
    if response.status == _NO_SUCH:
        return Permanent("the container is gone")
    if response.status == _CANNOT or _UNREADABLE in said:
        return Permanent("its log cannot be read: the log driver keeps none that Docker can read")
    return Transient(f"Docker refuses its log: {said}")


def _base(host: str) -> str:
    if host.startswith("unix://"):
        return "http://docker"
    return host.replace("tcp://", "http://", 1).rstrip("/")
