"""What can be made to go wrong, and how it is asked for.

A command is `name` or `name=value`; several are separated by commas; `name@30` waits 30 s
after the server became ready. They come from SIM_FAULT, from the first line of
SIM_CONTROL_FILE, or by `POST /sim/<command>`. What only real
events do (a kill of the engine from outside) needs no command: it works.
"""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from .backend import Backend
from .journal import Journal

FAULTS = {
    "ok": "end every lasting fault",
    "die": "the engine is killed (SIGKILL); the server exits with code 0",
    "worker_died": "a worker is killed; the server exits with code 0",
    "worker_hung": "a worker stops answering; after 5 s (or the value) exit with code 0",
    "cuda_oom": "CUDA out of memory at run time; exit with code 0",
    "illegal_access": "CUDA error: an illegal memory access; exit with code 0",
    "exit": "exit at once with the code given, without a word",
    "exit137": "as vLLM 0.7 does on a fatal error: it kills its own process tree",
    "hang": "the engine stops (SIGSTOP): gauges freeze, /health stays 200",
    "resume": "the engine goes on (SIGCONT)",
    "busy": "the API server answers nothing for so many seconds (5)",
    "slow_first_token": "each first token is delayed by so many seconds (3)",
    "slow_steps": "each engine step takes so many times as long (10)",
    "kv_full": "so much of the key-value memory is taken (0.97)",
    "preemption_storm": "in every step a running request is thrown out",
    "health503": "the engine is killed but the server stays, answering 503",
    "garbage_metrics": "/metrics is not an exposition",
    "no_metrics": "/metrics is 404",
    "slow_metrics": "/metrics answers after so many seconds (5)",
    "sleep": "the engine sleeps; a request then kills it",
    "wake": "the engine wakes",
    "eat_memory": "the engine takes host memory until somebody stops it",
    "load": "so many requests a second (5) of its own",
}
ENDINGS = {  # the recording that goes with an engine's death
    "worker_died": "worker_died",
    "cuda_oom": "engine_cuda_oom",
    "illegal_access": "engine_illegal_access",
}
ENGINE_SETTINGS = {
    "slow_first_token": ("first_token_delay", 3.0),
    "slow_steps": ("slowdown", 10.0),
    "kv_full": ("reserved", 0.97),
    "preemption_storm": ("storm", 1.0),
    "eat_memory": ("hoard", 1.0),
}


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    value: float | None = None
    after: float = 0.0

    def amount(self, default: float) -> float:
        return default if self.value is None else self.value


def read_commands(text: str) -> list[Command]:
    """Raises ValueError, naming what exists, for a word that is not a fault."""
    commands = []
    for word in filter(None, (part.strip() for part in text.split(","))):
        rest, _, after = word.partition("@")
        name, _, value = rest.partition("=")
        if name not in FAULTS:
            raise ValueError(f"no fault called {name!r}; there are {', '.join(FAULTS)}")
        commands.append(Command(name, float(value) if value else None, float(after or 0)))
    return commands


def _first_line(file: Path) -> str:
    return file.read_text().partition("\n")[0] if file.exists() else ""


class Trouble:
    """Carries commands out. What lasts is kept here as values that the server looks at."""

    def __init__(self, backend: Backend, journal: Journal) -> None:
        self._backend, self._journal = backend, journal
        self._tasks: set[asyncio.Task[None]] = set()
        self.load: float | None = None
        self.metrics = ""
        self.metrics_delay = 0.0
        self.keep_alive = False

    def begin(self, command: Command) -> None:
        task = asyncio.ensure_future(self._carry_out(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def follow(self, file: str) -> None:
        """Obey the first line of `file` whenever it changes."""
        done = ""
        while True:
            await asyncio.sleep(1)
            text = _first_line(Path(file))
            if text != done:
                done = text
                for command in read_commands(text):
                    self.begin(command)

    async def _carry_out(self, command: Command) -> None:
        await asyncio.sleep(command.after)
        name, backend = command.name, self._backend
        if name in ENDINGS:
            backend.kill(ENDINGS[name])
            backend.after_failure()
        elif name in ENGINE_SETTINGS:
            key, default = ENGINE_SETTINGS[name]
            backend.tell(**{key: command.amount(default)})
        elif name in ("hang", "resume"):
            os.kill(backend.pid, signal.SIGSTOP if name == "hang" else signal.SIGCONT)
        elif name in ("sleep", "wake"):
            backend.sleep(asleep=name == "sleep")
        elif name == "ok":
            self._mend()
        else:
            await self._trouble_server(command)

    async def _trouble_server(self, command: Command) -> None:
        name = command.name
        if name == "worker_hung":
            os.kill(self._backend.pid, signal.SIGSTOP)
            await asyncio.sleep(command.amount(5))
            self._backend.kill("worker_hung")
            self._backend.after_failure()
        elif name == "die":
            os.kill(self._backend.pid, signal.SIGKILL)  # the closed pipe tells the server
        elif name == "health503":
            self.keep_alive = True
            self._backend.kill("engine_died")
        elif name == "exit":
            os._exit(int(command.amount(1)))
        elif name == "exit137":
            self._journal.play("fatal_signal")
            os._exit(137)  # process 1 cannot send itself SIGKILL; Docker reports the same
        elif name == "busy":
            time.sleep(command.amount(5))  # noqa: ASYNC251 - blocking the loop is the fault
        elif name in ("garbage_metrics", "no_metrics"):
            self.metrics = "garbage" if name == "garbage_metrics" else "none"
        elif name == "slow_metrics":
            self.metrics_delay = command.amount(5)
        else:
            self.load = command.amount(5)

    def _mend(self) -> None:
        self.metrics, self.metrics_delay, self.load = "", 0.0, None
        if not self._backend.dead:
            os.kill(self._backend.pid, signal.SIGCONT)
        self._backend.tell(first_token_delay=0, slowdown=1, reserved=0, storm=0)
