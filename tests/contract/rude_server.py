"""A server on a real socket that is as rude as those on the internet.

It reads whole requests and remembers them, then does what its `manner` says.
"""

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Manner = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class RudeServer:
    """`manners` are used up one a request; the last one stays."""

    manners: list[Manner]
    requests: list[Request] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator["RudeServer"]:
        tasks: set[asyncio.Task[None]] = set()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.add(asyncio.ensure_future(self._turn(reader, writer)))

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _turn(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await _read(reader):
                self.requests.append(request)
                manner = self.manners.pop(0) if len(self.manners) > 1 else self.manners[0]
                await manner(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, path, _ = first.split(" ")
    headers = {n.strip().lower(): v.strip() for n, _, v in (x.partition(":") for x in lines if x)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, body)


def answers(status: int, body: bytes = b"", **headers: str) -> Manner:
    """The plain case. Header names are written with underscores."""

    async def manner(_: Request, writer: asyncio.StreamWriter) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["Content-Length"] = str(len(body))
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        writer.write(f"HTTP/1.1 {status} So\r\n{lines}\r\n".encode() + body)
        await writer.drain()

    return manner


def says(told: object, status: int = 200) -> Manner:
    return answers(status, json.dumps(told).encode(), Content_Type="application/json")


async def echoes(request: Request, writer: asyncio.StreamWriter) -> None:
    """400, quoting the whole request, as debugging servers and proxies do."""
    quoted = f"{request.path} {request.headers} ".encode() + request.body
    await answers(400, quoted, X_Path=request.path)(request, writer)


async def hangs(_: Request, __: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def dribbles(_: Request, writer: asyncio.StreamWriter) -> None:
    """Never silent, never done."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b".")
        await writer.drain()
        await asyncio.sleep(0.01)


async def resets(_: Request, writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def closes(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def talks_garbage(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x16\x03\x01\x00\xff this is no HTTP\r\n\r\n")
    await writer.drain()
    writer.close()


async def never_ends(_: Request, writer: asyncio.StreamWriter) -> None:
    """200, and a body without end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


def redirects(status: int) -> Manner:
    return answers(status, Location="/elsewhere")


page = answers(200, b"<html><body>Please log in</body></html>", Content_Type="text/html")
