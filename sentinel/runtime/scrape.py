"""Asks the targets: `/metrics` at each slot, `/health` beside it.

An answer belongs to the launch it was asked of; one that comes after that launch is over
is thrown away. One request of a kind is out per target, so a straggler holds up itself alone.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

from sentinel.api.prometheus.copies import Description
from sentinel.core.model.container import Status
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.target import Answer, Completion
from sentinel.ports import Clock
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.ingest import Exposition
from sentinel.runtime.net import NetAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target

T = TypeVar("T")
_MAX_BODY = 16 << 20
_DEAD = (500, 503)
_HEALTH_EVERY = timedelta(seconds=4)  # of a server known to be well


class TargetHttp(Protocol):
    """Asks one target something. Failures are values."""

    async def get(self, url: str, *, timeout: float, max_bytes: int) -> Answer: ...  # noqa: ASYNC109 - a total

    async def complete(
        self, url: str, *, api_key: str | None, deadline: float, ranks: Sequence[str] = ()
    ) -> Completion:
        """`ranks`: the data-parallel engines that each have to answer."""
        ...


class Submit(Protocol):
    def __call__(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        deadline: float,
        deliver: Callable[[NetAnswer[T]], Any],
    ) -> None: ...


class Scraper:
    def __init__(
        self,
        http: TargetHttp,
        submit: Submit,
        clock: Clock,
        store: Store,
        plan: Plan,
        inbox: Inbox,
    ) -> None:
        self._http, self._submit, self._clock = http, submit, clock
        self._store, self._inbox = store, inbox
        self.plan = plan
        self._texts: dict[str, Exposition] = {}

    def descriptions_of(self, name: str) -> Mapping[str, Description]:
        """What a target last said of its metrics."""
        text = self._texts.get(name)
        return {} if text is None else text.descriptions

    def ask_all(self, targets: dict[str, Target], now: datetime) -> None:
        for name in [name for name in self._texts if name not in targets]:
            self._store.drop(f"scrape/{name}")
            del self._texts[name]
        for target in targets.values():
            if target.container.status is Status.RUNNING and target.endpoint is not None:
                self._ask(target, target.endpoint.url)
            elif target.name in self._texts:
                self._texts[target.name].missed(millis(now))

    def _ask(self, target: Target, url: str) -> None:
        timeout = self.plan.scrape_timeout.total_seconds()
        key = target.key
        if not target.scraping:
            target.scraping = True
            self._send(
                lambda: self._http.get(f"{url}/metrics", timeout=timeout, max_bytes=_MAX_BODY),
                timeout,
                lambda answer: self.scraped(target, key, answer),
            )
        if not target.checking and self._is_time_for_health(target):
            target.checking = True
            self._send(
                lambda: self._http.get(f"{url}/health", timeout=timeout, max_bytes=1 << 16),
                timeout,
                lambda answer: self._checked(target, key, answer),
            )

    def _is_time_for_health(self, target: Target) -> bool:
        """At each slot while it matters; a server known to be well is asked more rarely."""
        ready = target.launch is not None and target.launch.ready_at is not None
        last, well = target.health, target.scrape is not None and target.scrape.ok
        if last is None or not (last.ok or last.is_not_offered) or not ready or not well:
            return True
        return not timedelta(0) <= self._clock.now() - last.at < _HEALTH_EVERY

    def _send(
        self,
        work: Callable[[], Coroutine[Any, Any, T]],
        deadline: float,
        then: Callable[[NetAnswer[T]], None],
    ) -> None:
        self._submit(
            work,
            deadline=deadline + 1.0,  # the request ends itself; this is for one that does not
            deliver=lambda answer: self._inbox.put_sample(lambda: then(answer)),
        )

    def scraped(self, target: Target, key: object, answer: NetAnswer[Answer]) -> None:
        if target.key != key:
            return
        target.scraping = False
        seen = self._value(answer)
        text = self._text_of(target)
        at = millis(seen.at)
        if seen.ok:
            try:
                text.take(seen.body, at)
            except SentinelError as error:
                seen = Answer(at=seen.at, took=seen.took, failure="malformed", says=error.message)
        if seen.ok:
            target.scrape_ok_at, target.last_body = seen.at, seen.body
            seen = Answer(at=seen.at, took=seen.took, status=seen.status)  # the body is taken
        else:
            text.missed(at)
        target.scrape = seen

    def _text_of(self, target: Target) -> Exposition:
        """What reads its scrapes: begun anew where it answers at another address than before."""
        assert target.endpoint is not None
        labels = {
            "target": target.name,
            "host": self.plan.host,
            "instance": target.endpoint.instance,
            "job": "vllm",
        }
        source = self._store.source(f"scrape/{target.name}", labels)
        text = self._texts.get(target.name)
        if text is None or text.source is not source:
            text = self._texts[target.name] = Exposition(source)
        return text

    def _value(self, answer: NetAnswer[Answer]) -> Answer:
        if answer.value is not None:
            return answer.value
        says = answer.error.message if isinstance(answer.error, SentinelError) else "no answer"
        return Answer(at=self._clock.now(), took=0.0, failure="timeout", says=says)

    def _checked(self, target: Target, key: object, answer: NetAnswer[Answer]) -> None:
        if target.key != key:
            return
        target.checking = False
        seen = target.health = self._value(answer)
        if seen.status not in _DEAD:
            target.dead_since = None
        elif target.dead_since is None:
            target.dead_since = seen.at
