"""The simulated vLLM in a time of its own: minutes of load are computed in a second.

Its scheduler, its engine loop, what it counts and how it prints that are the simulation's; only
the clock, the clients and the wire between engine and server are stood in for.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from deploy.simulation.calls import Calls
from deploy.simulation.engine import Engine
from deploy.simulation.exposition import Exposition
from deploy.simulation.http_counts import HttpCounts
from deploy.simulation.scheduler import Scheduler, Sequence, Step
from deploy.simulation.settings import Settings

SCRAPED_EVERY, ILL_AFTER = 5.0, 60.0  # seconds
MODEL, PROMPT = "tiny", 100
PREFILL_RATE, MAX_LEN, BLOCK_SIZE = 20_000.0, 4096, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What clients ask of a server, and what goes wrong with it after a minute."""

    minutes: int = 13
    rate: float = 1.0  # requests a second
    then_rate: float | None = None
    tokens: int = 20  # of each answer
    step: float = 0.1  # seconds: one token of every running request
    blocks: int = 400
    max_seqs: int = 64
    engine: tuple[tuple[str, float], ...] = ()  # commands of the simulated engine
    admits: bool = True
    decodes: bool = True
    hangs: bool = False
    fails_each: int = 0  # every n-th request is answered with 500


class _TimeIsOverError(Exception):
    """Everything on the agenda has been done."""


@dataclass
class _Faulty(Scheduler):
    """A scheduler that can lose its wits."""

    load: Load
    ill: bool = False

    def __post_init__(self) -> None:
        super().__init__(
            blocks=self.load.blocks,
            block_size=BLOCK_SIZE,
            max_seqs=self.load.max_seqs,
            max_tokens=2048,
        )

    def _admit(self, step: Step, now: float) -> None:
        if self.load.admits or not self.ill:
            super()._admit(step, now)

    def _advance(self, sequence: Sequence, step: Step, now: float) -> None:
        if self.load.decodes or not self.ill or not sequence.produced:
            super()._advance(sequence, step, now)


class VirtualVllm(Engine):
    def __init__(self, load: Load) -> None:
        self.now, self._load = 0.0, load
        self._brain = _Faulty(load)
        settings = Settings(step_seconds=load.step, prefill_rate=PREFILL_RATE)
        super().__init__(-1, -1, self._brain, settings, clock=lambda: self.now)
        self._shown = Exposition(
            model=MODEL, blocks=load.blocks, block_size=BLOCK_SIZE, max_len=MAX_LEN
        )
        self._calls, self._http = Calls(self._shown, self._clock), HttpCounts()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._arrived, self._frozen = count(), 0, False
        self.scrapes: list[str] = []

    def play(self) -> list[str]:
        """What each scrape brings until the time is over."""
        self._at(0.0, self._scrape)
        self._at(0.0, self._arrive)
        self._at(ILL_AFTER, self._fall_ill)
        try:
            self.run()
        except _TimeIsOverError:
            return self.scrapes
        raise AssertionError("the engine ended by itself")

    def _at(self, when: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), act))

    def _listen(self, timeout: float | None) -> None:
        until = self.now + timeout if timeout is not None else self._agenda[0][0]
        while self._frozen or self._agenda[0][0] <= until:
            when, _, act = heapq.heappop(self._agenda)
            self.now = max(self.now, when)
            act()
        self.now = max(self.now, until)

    def _tell(self, event: dict[str, Any]) -> None:
        if self._brain.ill and not self._load.decodes:
            self._shown.add("vllm:prompt_tokens_total", PROMPT * len(event["outputs"]))
            event["outputs"] = []  # a prompt has been read, and no token comes of it
        before = len(self._calls)
        self._calls.take_step(event)
        for _ in range(before - len(self._calls)):
            self._answer(200)

    def _answer(self, status: int) -> None:
        self._http.count("/v1/completions", "POST", status, sizes=(200, 200), took=1.0)

    def _scrape(self) -> None:
        self.scrapes.append(self._shown.text() + self._http.text())
        if self.now >= self._load.minutes * 60:
            raise _TimeIsOverError
        self._at(self.now + SCRAPED_EVERY, self._scrape)

    def _arrive(self) -> None:
        load, self._arrived = self._load, self._arrived + 1
        rate = load.then_rate if self._brain.ill and load.then_rate else load.rate
        self._at(self.now + 1 / rate, self._arrive)
        if self._brain.ill and load.fails_each and self._arrived % load.fails_each == 0:
            self._answer(500)
            return
        call = self._calls.open(prompt=PROMPT, limit=load.tokens)
        self._obey({"add": call.id, "prompt": PROMPT, "limit": load.tokens})

    def _fall_ill(self) -> None:
        self._brain.ill, self._frozen = True, self._load.hangs
        self._obey(dict(self._load.engine))


@cache
def scrapes_of(load: Load) -> tuple[str, ...]:
    return tuple(VirtualVllm(load).play())
