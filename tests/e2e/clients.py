"""Clients of a vLLM that ask again and again, and what became of what they asked."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from deploy.testbed import Box


class Clients:
    """`answers` counts by HTTP status; 0 is no answer."""

    def __init__(self, box: Box, *, prompt: int, tokens: int, patience: float) -> None:
        self._box, self._patience = box, patience
        self._body = {"prompt": [7] * prompt, "max_tokens": tokens, "ignore_eos": True}
        self._done = threading.Event()
        self.answers: Counter[int] = Counter()

    def ask(self, *, once: bool = False) -> None:
        while not self._done.is_set():
            status, _ = self._box.post("/v1/completions", self._body, seconds=self._patience)
            self.answers[status] += 1
            if once:
                return
            if status == 0:
                self._done.wait(0.5)  # it may be down

    def leave(self) -> None:
        self._done.set()


@contextmanager
def asking(
    box: Box, count: int, *, prompt: int, tokens: int, once: bool = False, patience: float = 120
) -> Iterator[Clients]:
    """`count` clients at a time, until the end of the block; then their last requests end."""
    clients = Clients(box, prompt=prompt, tokens=tokens, patience=patience)
    threads = [
        threading.Thread(target=clients.ask, kwargs={"once": once}, daemon=True)
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        yield clients
    finally:
        clients.leave()
        for thread in threads:
            thread.join(patience + 5)
