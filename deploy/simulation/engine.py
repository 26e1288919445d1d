"""The engine: a process of its own, called `VLLM::EngineCore`, that computes tokens.

It tells the API server what it did after each step, and nothing in between. That is why the
server's gauges freeze when this process is stopped, and why it never notices: as in vLLM.
"""

import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from .scheduler import Scheduler, Sequence, Step
from .settings import Settings

TITLE = b"VLLM::EngineCore"
CHUNK = 4 << 20


def show_as(title: bytes) -> None:
    """Change what `ps` and `docker top` show, by writing over our own argument area."""
    Path("/proc/self/comm").write_bytes(title[:15])
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(title[: end - start - 1].ljust(end - start, b"\0"))


class Engine:
    """Reads commands as JSON lines, writes what happened as JSON lines."""

    def __init__(
        self,
        commands: int,
        events: int,
        scheduler: Scheduler,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commands, self._events = commands, events
        self._clock = clock
        self._scheduler = scheduler
        self._settings = settings
        self._unread = b""
        self._first_token_delay = 0.0
        self._draining_until: float | None = None
        self._slowdown = 1.0
        self._hoard: list[bytearray] = []

    def run(self) -> None:
        while True:
            busy = bool(self._scheduler.running or self._scheduler.waiting)
            drained = not busy or self._clock() >= (self._draining_until or 0)
            if self._draining_until is not None and drained:
                return
            if not busy:
                self._listen(0.2 if self._hoard else None)
                self._hoard_more()
                continue
            begun = self._clock()
            step = self._scheduler.step(begun)
            prefill = step.prefill_tokens / self._settings.prefill_rate
            took = self._slowdown * (self._settings.step_seconds + prefill)
            while (left := begun + took - self._clock()) > 0:
                self._listen(left)
            self._report(step)
            self._hoard_more()

    def _listen(self, timeout: float | None) -> None:
        ready, _, _ = select.select([self._commands], [], [], timeout)
        if not ready:
            return
        data = os.read(self._commands, 65_536)
        if not data:
            os._exit(0)  # the API server is gone
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._obey(json.loads(line))

    def _obey(self, command: dict[str, float]) -> None:
        scheduler = self._scheduler
        if "add" in command:
            at = self._clock() + self._first_token_delay if self._first_token_delay else 0.0
            sequence = Sequence(
                int(command["add"]), int(command["prompt"]), int(command["limit"]), at
            )
            scheduler.waiting.append(sequence)
        elif "abort" in command:
            scheduler.abort(int(command["abort"]))
            self._tell(self._stats())
        elif "drain" in command:
            self._draining_until = self._clock() + command["drain"]
        self._first_token_delay = command.get("first_token_delay", self._first_token_delay)
        self._slowdown = command.get("slowdown", self._slowdown)
        scheduler.reserved = command.get("reserved", scheduler.reserved)
        scheduler.storm = bool(command.get("storm", scheduler.storm))
        if command.get("hoard"):
            self._hoard.append(bytearray())

    def _report(self, step: Step) -> None:
        now = self._clock()
        outputs = []
        for sequence in step.answered:
            if sequence not in self._scheduler.running:
                continue  # aborted while this step ran
            sequence.produced += 1
            done = sequence.produced >= sequence.limit
            outputs.append(
                [sequence.id, done, round(now - sequence.scheduled_at, 6), sequence.preempted]
            )
            if done:
                self._scheduler.free(sequence)
        self._tell({**self._stats(), "outputs": outputs, "tokens": step.tokens})

    def _stats(self) -> dict[str, object]:
        return {
            "running": len(self._scheduler.running),
            "waiting": len(self._scheduler.waiting),
            "usage": self._scheduler.usage,
            "preemptions": self._scheduler.preemptions,
            "outputs": [],
        }

    def _tell(self, event: dict[str, object]) -> None:
        os.write(self._events, json.dumps(event).encode() + b"\n")

    def _hoard_more(self) -> None:
        if self._hoard:
            self._hoard.append(bytearray(os.urandom(4096) * (CHUNK // 4096)))


def start(
    scheduler: Scheduler, settings: Settings, listener: socket.socket
) -> tuple[int, int, int]:
    """Fork the engine: its process number, where to write commands, where to read events."""
    command_end, commands = os.pipe()
    events, event_end = os.pipe()
    pid = os.fork()
    if pid:
        os.close(command_end)
        os.close(event_end)
        return pid, commands, events
    try:
        listener.close()
        os.close(commands)
        os.close(events)
        signal.signal(signal.SIGTERM, _terminated)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        show_as(TITLE)
        Engine(command_end, event_end, scheduler, settings).run()
    finally:
        os._exit(0)


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    os._exit(0)
