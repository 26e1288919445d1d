"""Scrapes and one-token probes, on servers as rude as they come."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sentinel import __version__
from sentinel.adapters.clock import MachineClock
from sentinel.adapters.target_http import TargetHttp
from sentinel.core.model.target import Answer, Completion

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[str]:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.close()


async def request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *rest = head.strip().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (h.partition(":") for h in rest)}
    return line, headers, await reader.readexactly(int(headers.get("content-length", 0)))


def answering(*pieces: bytes, pause: float = 0.0, stay: bool = False) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        if stay:
            await asyncio.sleep(20)

    return serve


def endless(head: bytes, piece: bytes, pause: float = 0.0) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return serve


async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request(reader)
    writer.transport.abort()


def ask(serve: Serve, *, timeout: float = 2.0, max_bytes: int = 100_000, times: int = 1) -> Answer:
    async def main() -> Answer:
        http = TargetHttp(MachineClock())
        try:
            async with serving(serve) as url:
                for _ in range(times):
                    answer = await http.get(f"{url}/metrics", timeout=timeout, max_bytes=max_bytes)
                return answer
        finally:
            await http.close()

    return asyncio.run(main())


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BOMB = gzip.compress(b"0" * 50_000_000)


def sized(body: bytes, more: bytes = b"") -> bytes:
    return OK + more + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("serve", "failure"),
    [
        pytest.param(answering(b"SSH-2.0-OpenSSH_9.2\r\n"), "malformed", id="another protocol"),
        pytest.param(answering(b"\x00\xff" * 5000), "malformed", id="garbage"),
        pytest.param(answering(b""), "unreachable", id="closed without a word"),
        pytest.param(reset, "unreachable", id="reset"),
        pytest.param(answering(OK + b"Content-Length: 10\r\n\r\nabc"), "malformed", id="cut short"),
        pytest.param(answering(OK + b"Content-Length: x\r\n\r\nabc"), "malformed", id="bad length"),
        pytest.param(
            answering(OK + b"Content-Length: 900000\r\n\r\n", stay=True),
            "too_large",
            id="says it is huge",
        ),
        pytest.param(answering(OK + b"\r\n", b"x" * 200_000), "too_large", id="is huge"),
        pytest.param(
            endless(CHUNKED, b"400\r\n" + b"x" * 1024 + b"\r\n"), "too_large", id="endless chunks"
        ),
        pytest.param(endless(OK, b"X: y\r\n"), "malformed", id="endless headers"),
        pytest.param(endless(OK + b"X: ", b"y" * 1000), "malformed", id="an endless header"),
        pytest.param(answering(CHUNKED + b"zz\r\n"), "malformed", id="bad chunk"),
        pytest.param(
            answering(sized(BOMB, b"Content-Encoding: gzip\r\n")), "too_large", id="gzip bomb"
        ),
        pytest.param(
            answering(sized(gzip.compress(b"x" * 99)[:-9], b"Content-Encoding: gzip\r\n")),
            "malformed",
            id="gzip cut short",
        ),
        pytest.param(
            answering(sized(b"x", b"Content-Encoding: gzip\r\n")), "malformed", id="not gzip"
        ),
        pytest.param(
            answering(sized(b"x", b"Content-Encoding: br\r\n")), "malformed", id="unknown encoding"
        ),
        pytest.param(answering(OK, stay=True), "timeout", id="headers never end"),
        pytest.param(
            answering(OK + b"Content-Length: 9\r\n\r\n", stay=True),
            "timeout",
            id="body never comes",
        ),
        pytest.param(
            endless(OK + b"Content-Length: 9999\r\n\r\n", b"x", 0.02), "timeout", id="dribble"
        ),
        pytest.param(endless(OK, b"X", 0.02), "timeout", id="dribbling headers"),
        pytest.param(
            endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.02), "timeout", id="go on, go on"
        ),
    ],
)
def test_a_rude_server_is_a_value_in_time(serve: Serve, failure: str) -> None:
    begun = time.monotonic()

    answer = ask(serve, timeout=0.4)

    assert answer.failure == failure
    assert answer.says
    assert not answer.ok
    assert answer.body == b""
    assert time.monotonic() - begun < 2


def test_a_polite_server_is_an_answer() -> None:
    answer = ask(answering(sized(b"up 1\n")))

    assert answer.ok
    assert (answer.status, answer.body, answer.failure) == (200, b"up 1\n", "")
    assert 0 < answer.took < 1


@pytest.mark.parametrize("encoding", [b"gzip", b"identity"])
def test_an_encoded_answer_is_decoded(encoding: bytes) -> None:
    body = gzip.compress(b"up 1\n") if encoding == b"gzip" else b"up 1\n"

    assert ask(answering(sized(body, b"Content-Encoding: " + encoding + b"\r\n"))).body == b"up 1\n"


def test_an_answer_of_just_the_allowed_size_is_taken() -> None:
    assert ask(answering(sized(b"x" * 1000)), max_bytes=1000).ok
    assert ask(answering(sized(b"x" * 1001)), max_bytes=1000).failure == "too_large"


def test_more_bytes_than_announced_do_not_spoil_the_next_answer() -> None:
    bodies = [b"Content-Length: 2\r\n\r\nabcdef", b"Content-Length: 2\r\n\r\nok"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(OK + bodies.pop(0))
        await reader.read()

    assert ask(serve, times=2).body == b"ok"


def test_an_error_is_an_answer_with_its_status() -> None:
    answer = ask(answering(b"HTTP/1.1 503 X\r\nContent-Length: 4\r\n\r\ndead"))

    assert (answer.status, answer.body, answer.failure, answer.ok) == (503, b"dead", "", False)


def test_a_redirect_is_not_followed() -> None:
    answer = ask(
        answering(b"HTTP/1.1 302 X\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n")
    )

    assert (answer.status, answer.ok) == (302, False)


def test_a_proxy_for_the_internet_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:1")

    assert ask(answering(sized(b"up 1\n"))).ok


def test_neither_connections_nor_cookies_are_kept() -> None:
    """A connection that outlived its request would look like a client that waits."""
    connections, closed, cookies = 0, 0, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections, closed, cookies
        connections += 1
        _, headers, _ = await request(reader)
        cookies += "cookie" in headers
        writer.write(sized(b"up 1\n", b"Set-Cookie: a=b\r\n"))
        closed += await reader.read() == b""

    assert ask(serve, times=5).ok
    assert (connections, cookies) == (5, 0)
    assert closed >= 4


def test_a_connection_closed_while_idle_does_not_cost_a_scrape() -> None:
    assert ask(answering(sized(b"up 1\n")), times=5).ok


@pytest.mark.parametrize(
    ("url", "failure"),
    [
        pytest.param("http://127.0.0.1:1", "refused", id="nobody listens"),
        pytest.param("http://nowhere.invalid:1", "unreachable", id="no such name"),
        pytest.param("http://", "unreachable", id="no address"),
        pytest.param("ftp://127.0.0.1:1", "unreachable", id="not http"),
        pytest.param("http://127.0.0.1:99999", "unreachable", id="no such port"),
    ],
)
def test_who_cannot_be_reached_is_a_value(url: str, failure: str) -> None:
    async def main() -> Answer:
        http = TargetHttp(MachineClock())
        answer = await http.get(f"{url}/metrics", timeout=3)
        await http.close()
        return answer

    answer = asyncio.run(main())
    assert (answer.failure, answer.status) == (failure, None)
    assert answer.says


def test_a_busy_server_and_a_closed_door_read_differently() -> None:
    answer = ask(answering(stay=True), timeout=0.2)

    assert answer.failure == "timeout"
    assert answer.says.startswith("connected, but")


Reply = tuple[int, Any]
UNSUPPORTED = {"error": {"message": "The model does not support Completions API", "code": 400}}
CARDS = {"data": [{"id": "lora", "parent": "m"}, {"id": "m", "parent": None}]}
CHOICES = {"choices": [{"text": "2"}]}


class Vllm:
    """Answers by path, and remembers who asked what."""

    def __init__(self, **replies: Reply) -> None:
        self.replies = {"models": (200, CARDS), **replies}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.gone = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            line, headers, body = await request(reader)
            path = line.split()[1]
            self.asked.append((path, headers, json.loads(body) if body else None))
            name = path.removeprefix("/v1").strip("/").replace("/", "_")
            status, said = self.replies.get(name, (404, {"detail": "Not Found"}))
            if said is None:
                await reader.read()  # until the other side goes
                self.gone.set()
                return
            content = json.dumps(said).encode()
            writer.write(
                f"HTTP/1.1 {status} X\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content
            )


def probe(
    vllm: Vllm,
    *,
    times: int = 1,
    deadline: float = 2.0,
    api_key: str | None = None,
    ranks: tuple[str, ...] = (),
) -> Completion:
    async def main() -> Completion:
        http = TargetHttp(MachineClock())
        try:
            async with serving(vllm) as url:
                for _ in range(times):
                    said = await http.complete(url, api_key=api_key, deadline=deadline, ranks=ranks)
                if (200, None) in vllm.replies.values():
                    await asyncio.wait_for(vllm.gone.wait(), 2)
                return said
        finally:
            await http.close()

    return asyncio.run(main())


def test_one_token_is_asked_for_as_cheaply_as_can_be() -> None:
    vllm = Vllm(completions=(200, CHOICES))

    said = probe(vllm, api_key="k")

    assert said.ok
    assert said.model == "m"
    (models, _, _), (path, headers, body) = vllm.asked
    assert (models, path) == ("/v1/models", "/v1/completions")
    assert body == {"model": "m", "prompt": "1", "max_tokens": 1, "temperature": 0}
    assert headers["authorization"] == "Bearer k"
    assert headers["user-agent"] == f"vllm-sentinel/{__version__}"
    assert headers["x-request-id"].startswith("sentinel-probe-")


@pytest.mark.parametrize(
    ("vllm", "path"),
    [
        pytest.param(
            {"completions": (400, UNSUPPORTED), "chat_completions": (200, CHOICES)},
            "/v1/chat/completions",
            id="chat only",
        ),
        pytest.param(
            {"chat_completions": (200, CHOICES)}, "/v1/chat/completions", id="no such route"
        ),
        pytest.param({"embeddings": (200, {"data": [{}]})}, "/v1/embeddings", id="embeddings only"),
        pytest.param({"pooling": (200, {"data": [{}]})}, "/pooling", id="pooling only"),
        pytest.param({"classify": (200, {"data": [{}]})}, "/classify", id="classification only"),
    ],
)
def test_what_a_server_offers_is_found_once(vllm: dict[str, Reply], path: str) -> None:
    server = Vllm(**vllm)

    assert probe(server, times=2).ok
    assert [asked for asked, _, _ in server.asked][-2:] == ["/v1/models", path]


@pytest.mark.parametrize(
    ("vllm", "says", "facts"),
    [
        pytest.param(
            {"completions": (500, {"error": {"message": "EngineCore encountered an issue"}})},
            "HTTP 500: EngineCore encountered an issue",
            {},
            id="dead engine",
        ),
        pytest.param({"completions": (503, "busy")}, "HTTP 503", {}, id="unavailable"),
        pytest.param(
            {"completions": (404, {"error": {"message": "The model `m` does not exist."}})},
            "HTTP 404: The model `m` does not exist.",
            {"unsupported": True},
            id="the model has gone",
        ),
        pytest.param(
            {"models": (401, {"error": "Unauthorized"})},
            "HTTP 401: Unauthorized",
            {"unauthorised": True},
            id="no key",
        ),
        pytest.param(
            {"completions": (403, {})}, "HTTP 403", {"unauthorised": True}, id="forbidden"
        ),
        pytest.param(
            {"models": (200, {"data": []})},
            "the server lists no model",
            {"unsupported": True},
            id="no model",
        ),
        pytest.param(
            {"models": (200, [1])},
            "the server lists no model",
            {"unsupported": True},
            id="not a list",
        ),
        pytest.param(
            {"models": (404, {})}, "HTTP 404", {"unsupported": True}, id="no list of models"
        ),
        pytest.param(
            {"completions": (429, {})}, "HTTP 429", {"unsupported": True}, id="too many requests"
        ),
        pytest.param(
            {"completions": (200, {"choices": []})}, "the answer holds nothing", {}, id="empty"
        ),
        pytest.param(
            {}, "HTTP 404: Not Found", {"unsupported": True}, id="nothing that can be asked"
        ),
    ],
)
def test_why_there_was_no_token(vllm: dict[str, Reply], says: str, facts: dict[str, bool]) -> None:
    said = probe(Vllm(**vllm))

    assert not said.ok
    assert said.says == says
    told = {
        "refused": said.refused,
        "unauthorised": said.unauthorised,
        "unsupported": said.unsupported,
    }
    assert told == {"refused": False, "unauthorised": False, "unsupported": False, **facts}


def test_every_engine_of_several_is_met_by_requests_of_its_own() -> None:
    vllm = Vllm(completions=(200, CHOICES))

    said = probe(vllm, ranks=("0", "1"))

    assert said.ok
    meant = [headers["x-data-parallel-rank"] for path, headers, _ in vllm.asked[1:]]
    assert sorted(meant) == ["0", "0", "0", "1", "1", "1"]
    ids = {headers["x-request-id"] for _, headers, _ in vllm.asked}
    assert len(ids) == len(vllm.asked)


def test_one_silent_engine_of_several_is_enough() -> None:
    class OneHangs(Vllm):
        async def __call__(
            self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            _, headers, _ = await request(reader)
            if headers.get("x-data-parallel-rank") == "1":
                await reader.read()
                return
            said = CHOICES if "x-data-parallel-rank" in headers else CARDS
            writer.write(sized(json.dumps(said).encode()))

    said = probe(OneHangs(), ranks=("0", "1", "2"), deadline=0.3)

    assert said.is_silent
    assert said.took < 1


@pytest.mark.parametrize("hung", ["models", "completions"])
def test_a_hung_engine_is_left_at_the_deadline(hung: str) -> None:
    begun = time.monotonic()

    said = probe(Vllm(**{hung: (200, None)}), deadline=0.3)

    assert (said.ok, said.timed_out) == (False, True)
    assert said.says.startswith("connected, but")
    assert 0.25 < said.took < 1
    assert time.monotonic() - begun < 2


def test_nobody_listening_is_said() -> None:
    async def main() -> Completion:
        http = TargetHttp(MachineClock())
        said = await http.complete("http://127.0.0.1:1", api_key=None, deadline=1)
        await http.close()
        return said

    said = asyncio.run(main())
    assert (said.ok, said.refused, said.timed_out) == (False, True, False)
