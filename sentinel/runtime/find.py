"""Finds vLLM by what it says: a `vllm:` series on a port of a container nothing else marks.

Only where the operator has not said what to supervise. A stranger is asked a few times after
its start, further and further apart, because a model takes its time to load; then it is left
alone until it is started again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sentinel.core.endpoint import endpoint_of
from sentinel.core.model.container import Container
from sentinel.core.model.target import Answer
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.net import NetAnswer
from sentinel.runtime.scrape import Submit, TargetHttp

_TRIES = 10  # 5 s, 10 s, 20 s … after the first: about 40 min in all
_FIRST_PAUSE = timedelta(seconds=5)
_WITHIN = 2.0  # seconds
_MARK = b"\nvllm:"
_MOST = 1 << 20  # bytes


@dataclass(slots=True)
class _Stranger:
    url: str
    tries: int = 0
    due_at: datetime | None = None
    asking: bool = False


class Finder:
    def __init__(
        self, http: TargetHttp, submit: Submit, inbox: Inbox, wake: Callable[[], None]
    ) -> None:
        """`wake`: something was found; look at the containers anew."""
        self._http, self._submit = http, submit
        self._inbox, self._wake = inbox, wake
        self._strangers: dict[tuple[str, datetime | None], _Stranger] = {}
        self.found: set[str] = set()  # container ids

    def meet(self, strangers: Mapping[str, Container]) -> None:
        """Get to know containers that nothing marks as targets."""
        present = {(box.id, box.started_at) for box in strangers.values()}
        self._strangers = {k: s for k, s in self._strangers.items() if k in present}
        for box in strangers.values():
            endpoint = endpoint_of(box) if box.is_up else None
            if endpoint is not None and box.id not in self.found:
                self._strangers.setdefault((box.id, box.started_at), _Stranger(endpoint.url))

    def ask_if_due(self, now: datetime) -> None:
        for key, stranger in self._strangers.items():
            late = stranger.due_at is None or now >= stranger.due_at
            if late and not stranger.asking and stranger.tries < _TRIES:
                self._ask(key[0], stranger, now)

    def _ask(self, container_id: str, stranger: _Stranger, now: datetime) -> None:
        stranger.asking = True
        stranger.due_at = now + _FIRST_PAUSE * 2**stranger.tries
        stranger.tries += 1
        self._submit(
            lambda: self._http.get(f"{stranger.url}/metrics", timeout=_WITHIN, max_bytes=_MOST),
            deadline=_WITHIN + 1.0,
            deliver=lambda answer: self._inbox.put_sample(
                lambda: self._heard(container_id, stranger, answer)
            ),
        )

    def _heard(self, container_id: str, stranger: _Stranger, answer: NetAnswer[Answer]) -> None:
        stranger.asking = False
        seen = answer.value
        if seen is not None and seen.ok and _MARK in b"\n" + seen.body:
            self.found.add(container_id)
            stranger.tries = _TRIES
            self._wake()
