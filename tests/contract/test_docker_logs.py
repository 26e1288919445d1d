"""Following logs from an engine that is slow, rude, frozen or gone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from sentinel.adapters.docker_logs import MISSED, DockerLogs
from sentinel.core.logrecords import Record
from sentinel.core.model.errors import Permanent, Transient

STAMP = b"2030-01-01T12:00:00.000000001Z"
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def frame(line: bytes) -> bytes:
    text = STAMP + b" " + line
    return b"\1\0\0\0" + len(text).to_bytes(4, "big") + text


@asynccontextmanager
async def engine(folder: Path, answer: Answer) -> AsyncIterator[DockerLogs]:
    app = web.Application()
    app.router.add_get("/containers/{id}/logs", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "d.sock")).start()
    logs = DockerLogs(f"unix://{folder}/d.sock")
    try:
        yield logs
    finally:
        await logs.close()
        await runner.cleanup()


async def read(logs: DockerLogs, **asked: Any) -> list[bytes]:
    lines: list[bytes] = []

    def heard(records: Sequence[Record]) -> None:
        lines.extend(record.line for record in records)

    wanted = {"since": "1.5", "tty": False, "to_the_end": False, **asked}
    await logs.follow("c", heard=heard, **wanted)
    return lines


def says(status: int, text: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=text)

    return answer


async def streams(request: web.Request, *pieces: bytes) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
        await asyncio.sleep(0.01)
    return response


def test_it_asks_for_what_was_missed_and_no_more(tmp_path: Path) -> None:
    asked: dict[str, str] = {}

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.update(request.query)
        return await streams(request, frame(b"one\n"))

    async def check() -> None:
        async with engine(tmp_path, answer) as logs:
            assert await read(logs) == [b"one"]
            assert (asked["since"], asked["follow"], asked["timestamps"]) == ("1.5", "1", "1")
            assert asked["tail"] == str(MISSED)
            await read(logs, to_the_end=True)
            assert asked["follow"] == "0"

    asyncio.run(check())


def test_a_stream_that_is_cut_in_the_middle_of_a_line_has_ended(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = await streams(request, frame(b"one\n"), frame(b"two\n")[:-3])
        assert request.transport is not None
        request.transport.abort()
        return response

    async def check() -> None:
        async with engine(tmp_path, answer) as logs:
            assert await read(logs) == [b"one"]

    asyncio.run(check())


@pytest.mark.parametrize(
    ("status", "text", "kind", "message"),
    [
        (404, '{"message":"No such container: c"}', Permanent, "gone"),
        (
            501,
            '{"message":"configured logging driver does not support reading"}',
            Permanent,
            "driver",
        ),
        (
            500,
            '{"message":"configured logging driver does not support reading"}',
            Permanent,
            "driver",
        ),
        (500, '{"message":"something else"}', Transient, "something else"),
    ],
)
def test_a_refusal_says_whether_it_is_for_good(
    tmp_path: Path, status: int, text: str, kind: type[Exception], message: str
) -> None:
    async def check() -> None:
        async with engine(tmp_path, says(status, text)) as logs:
            with pytest.raises(kind, match=message):
                await read(logs)

    asyncio.run(check())


def test_no_engine_is_no_answer(tmp_path: Path) -> None:
    async def check() -> None:
        logs = DockerLogs(f"unix://{tmp_path}/nobody.sock")
        with pytest.raises(Transient):
            await read(logs)
        await logs.close()

    asyncio.run(check())


def test_who_has_heard_enough_ends_it(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return await streams(request, *[frame(b"line\n")] * 1000)

    class EnoughError(Exception):
        pass

    def heard(_: Sequence[Record]) -> None:
        raise EnoughError

    async def check() -> None:
        async with engine(tmp_path, answer) as logs:
            with pytest.raises(EnoughError):
                await logs.follow("c", since="0", tty=False, to_the_end=False, heard=heard)

    asyncio.run(check())


def test_one_that_never_speaks_holds_up_no_other(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.match_info["id"] == "c":
            return await streams(request, frame(b"one\n"))
        response = await streams(request)
        await asyncio.sleep(30)
        return response

    async def check() -> None:
        async with engine(tmp_path, answer) as logs:
            silent = [
                asyncio.create_task(
                    logs.follow(f"x{n}", since="0", tty=False, to_the_end=False, heard=print)
                )
                for n in range(64)
            ]
            assert await read(logs) == [b"one"]
            for task in silent:
                task.cancel()
            await asyncio.gather(*silent, return_exceptions=True)

    asyncio.run(check())
