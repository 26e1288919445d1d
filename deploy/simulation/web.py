"""Just enough of HTTP/1.1 to be taken for uvicorn: keep-alive, chunked answers, access log.

A connection is read while its answer is being made, so that a client that goes away is noticed
at once; the handler is then cancelled, which is how vLLM aborts the request in the engine.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

PHRASES = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
LIMIT = 4 << 20


@dataclass(slots=True)
class Request:
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    client: str
    version: str = "1.1"

    @property
    def keeps_alive(self) -> bool:
        return self.headers.get("connection", "").lower() != "close" and self.version != "1.0"


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    content_type: str = ""
    chunks: AsyncIterator[bytes] | None = None
    extra: dict[str, str] = field(default_factory=dict)


def json_answer(value: object, status: int = 200) -> Answer:
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    return Answer(status=status, body=body, content_type="application/json")


Handler = Callable[[Request], Awaitable[Answer]]
Logger = Callable[[Request, Answer, float], None]


class Connection:
    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handler: Handler,
        log: Logger,
    ) -> None:
        self._reader, self._writer = reader, writer
        self._handler, self._log = handler, log
        self._ahead = b""
        self.answering = False

    def close(self) -> None:
        self._writer.close()

    async def serve(self) -> None:
        try:
            while (request := await self._read()) is not None:
                self.answering = True
                alive = await self._answer(request)
                self.answering = False
                if not alive:
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return
        finally:
            self.close()

    async def _read(self) -> Request | None:
        head = b""
        while b"\r\n\r\n" not in head:
            more = self._ahead or await self._reader.read(65_536)
            self._ahead = b""
            if not more or len(head) > LIMIT:
                return None
            head += more
        text, _, body = head.partition(b"\r\n\r\n")
        first, *rest = text.decode("latin-1").split("\r\n")
        words = first.split(" ")
        if len(words) != 3:
            return None
        method, target, version = words
        headers = {k.strip().lower(): v.strip() for k, _, v in (x.partition(":") for x in rest)}
        length = min(int(headers.get("content-length", "0") or 0), LIMIT)
        while len(body) < length:
            body += await self._reader.readexactly(length - len(body))
        body, self._ahead = body[:length], body[length:]
        path, _, query = target.partition("?")
        host, port = (self._writer.get_extra_info("peername") or ("", 0))[:2]
        client = f"{host}:{port}"
        return Request(method, path, query, headers, body, client, version.removeprefix("HTTP/"))

    async def _answer(self, request: Request) -> bool:
        begun = time.monotonic()
        work = asyncio.ensure_future(self._handler(request))
        if not await self._outlives_client(work):
            self._log(request, Answer(), time.monotonic() - begun)  # a lost client counts as 200
            return False
        answer = work.result()
        self._writer.write(_head(answer, request))
        if answer.chunks is None:
            self._writer.write(answer.body)
        elif not await self._stream(answer.chunks):
            self._log(request, answer, time.monotonic() - begun)
            return False
        self._log(request, answer, time.monotonic() - begun)
        await self._writer.drain()
        return request.keeps_alive

    async def _stream(self, chunks: AsyncIterator[bytes]) -> bool:
        async def send() -> None:
            async for chunk in chunks:
                self._writer.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                await self._writer.drain()
            self._writer.write(b"0\r\n\r\n")

        work = asyncio.ensure_future(send())
        alive = await self._outlives_client(work)
        if alive:
            work.result()
        return alive

    async def _outlives_client(self, work: "asyncio.Future[Answer] | asyncio.Future[None]") -> bool:
        """Wait for `work`, or cancel it when the client goes away."""
        while not work.done():
            watch = asyncio.ensure_future(self._reader.read(65_536))
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            if not watch.done():
                watch.cancel()
                await asyncio.wait({watch})
            if watch.cancelled():
                continue
            data = b"" if watch.exception() else watch.result()
            self._ahead += data
            if not data and not work.done():
                work.cancel()
                await asyncio.wait({work})
                return False
            if not data:
                return True
        return True


def _head(answer: Answer, request: Request) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {PHRASES[answer.status]}",
        time.strftime("date: %a, %d %b %Y %H:%M:%S GMT", time.gmtime()),
        "server: uvicorn",
    ]
    lines += [f"{name}: {value}" for name, value in answer.extra.items()]
    if answer.chunks is None:
        lines.append(f"content-length: {len(answer.body)}")
    if answer.content_type:
        lines.append(f"content-type: {answer.content_type}")
    lines.append("vary: Origin")
    if answer.chunks is not None:
        lines.append("transfer-encoding: chunked")
    if not request.keeps_alive:
        lines.append("connection: close")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
