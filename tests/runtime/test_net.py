import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from sentinel.core.model.errors import Ambiguous, Transient
from sentinel.runtime.net import Net, NetAnswer

Inbox = SimpleQueue[NetAnswer[Any]]


@pytest.fixture
def inbox() -> Inbox:
    return SimpleQueue()


@pytest.fixture
def net() -> Iterator[Net]:
    net = Net()
    net.start()
    yield net
    assert net.stop(5)


async def never() -> None:
    await asyncio.Event().wait()


async def answer() -> int:
    return 42


async def broken() -> None:
    raise OSError("no route")


async def timed_out_by_itself() -> None:
    raise TimeoutError("its own")


def test_a_value_comes_into_the_inbox(net: Net, inbox: Inbox) -> None:
    net.submit(answer, deadline=5, deliver=inbox.put)

    assert inbox.get(timeout=5) == NetAnswer(value=42)


@pytest.mark.parametrize("work", [broken, timed_out_by_itself])
def test_an_error_comes_as_a_value(net: Net, inbox: Inbox, work: Any) -> None:
    net.submit(work, deadline=5, deliver=inbox.put)

    assert isinstance(inbox.get(timeout=5).error, OSError)


def test_what_cannot_even_begin_is_a_value(net: Net, inbox: Inbox) -> None:
    net.submit(lambda: 1 / 0, deadline=5, deliver=inbox.put)  # type: ignore[arg-type, return-value]

    assert isinstance(inbox.get(timeout=5).error, ZeroDivisionError)


def test_what_never_ends_is_ended_at_its_deadline(net: Net, inbox: Inbox) -> None:
    begun = time.monotonic()

    net.submit(never, deadline=0.05, deliver=inbox.put)

    assert isinstance(inbox.get(timeout=5).error, Ambiguous)
    assert time.monotonic() - begun < 2


def test_many_waits_wait_together(net: Net, inbox: Inbox) -> None:
    for _ in range(200):
        net.submit(lambda: asyncio.sleep(0.05), deadline=5, deliver=inbox.put)

    begun = time.monotonic()
    assert all(inbox.get(timeout=5).error is None for _ in range(200))
    assert time.monotonic() - begun < 2


def test_everything_submitted_is_answered_once_even_at_the_end(inbox: Inbox) -> None:
    net = Net()
    net.start()
    submitted = 0
    for _ in range(50):
        net.submit(never, deadline=60, deliver=inbox.put)
        submitted += 1

    assert net.stop(5)

    with contextlib.suppress(Transient):
        net.submit(answer, deadline=5, deliver=inbox.put)
        submitted += 1
    answers = []
    with contextlib.suppress(Empty):
        while True:
            answers.append(inbox.get(timeout=0.05))
    assert len(answers) == submitted
    assert all(isinstance(a.error, Ambiguous) for a in answers)


def test_after_the_end_nothing_is_taken() -> None:
    net = Net()
    net.start()
    assert net.stop(5)
    assert net.stop(5)

    with pytest.raises(Transient):
        net.submit(answer, deadline=5, deliver=print)


def test_what_was_never_started_stops() -> None:
    assert Net().stop(1)


def test_a_name_server_that_is_silent_holds_up_nothing_else(inbox: Inbox) -> None:
    gate = threading.Event()

    def lookup(host: str, *_args: Any, **_options: Any) -> Any:
        if host == "silent.example":
            gate.wait(20)
        return socket.getaddrinfo("127.0.0.1", 80)

    async def look_up(host: str) -> Any:
        return await asyncio.get_running_loop().getaddrinfo(host, 80)

    net = Net(lookup)
    net.start()
    for _ in range(50):
        net.submit(lambda: look_up("silent.example"), deadline=0.2, deliver=inbox.put)
    net.submit(lambda: look_up("good.example"), deadline=5, deliver=inbox.put)

    assert inbox.get(timeout=5).value
    assert all(isinstance(inbox.get(timeout=5).error, Ambiguous) for _ in range(50))
    assert net.stop(1)
    gate.set()


def test_a_name_that_does_not_exist_is_an_error(inbox: Inbox) -> None:
    def lookup(*_args: Any, **_options: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    net = Net(lookup)
    net.start()
    net.submit(lambda: asyncio.open_connection("none.example", 80), deadline=5, deliver=inbox.put)

    assert isinstance(inbox.get(timeout=5).error, socket.gaierror)
    assert net.stop(5)


def test_a_silent_name_server_does_not_keep_the_process_alive() -> None:
    program = (
        "import asyncio, threading, time\n"
        "from sentinel.runtime.net import Net\n"
        "net = Net(lambda *a, **k: threading.Event().wait())\n"
        "net.start()\n"
        "net.submit(lambda: asyncio.open_connection('x.example', 1), deadline=9, deliver=print)\n"
        "asyncio.run(asyncio.sleep(0.05))\n"
        "assert net.stop(2)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=10)
