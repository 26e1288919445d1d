"""Copies of a store without a loop, and the API over them on a socket of its own."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sentinel.api.prometheus.copies import About, Judged, Known, Scraped
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.series import Store
from tests.api.exchange import exchange, over_unix

T0 = 1_700_000_000  # seconds
STEP = 15


@dataclass
class Library:
    store: Store = field(default_factory=lambda: Store(retention_ms=1 << 50))
    targets: Sequence[Scraped] = ()
    rules: Judged = field(
        default_factory=lambda: Judged(
            groups=(),
            active=(),
            failing={},
            evaluated_at=datetime(2030, 1, 1, 12, tzinfo=UTC),
            interval=timedelta(seconds=5),
        )
    )
    refuses: SentinelError | None = None
    cuts: list[tuple[Collection[str] | None, int]] = field(default_factory=list)

    def about(self) -> About:
        return About(
            host="gpu1",
            external_labels={"host": "gpu1"},
            scrape_interval=timedelta(seconds=5),
            scrape_timeout=timedelta(seconds=3),
            evaluation_interval=timedelta(minutes=1),
            retention=timedelta(hours=1),
            keeps=lambda name: not name.startswith("unkept"),
        )

    def cut(self, names: Collection[str] | None, since_ms: int, within: float) -> Store:
        self._answer(within)
        self.cuts.append((names, since_ms))
        return self.store.cut(names, since_ms)

    def known(self, names: Collection[str] | None, within: float) -> list[Known]:
        self._answer(within)
        return [
            Known(s.labels, s.times[s.first], s.times[s.first + len(s.values) - 1])
            for name in (self.store.names() if names is None else names)
            for s in self.store.named(name)
        ]

    def judged(self, within: float) -> Judged:
        self._answer(within)
        return self.rules

    def scraped(self, within: float) -> list[Scraped]:
        self._answer(within)
        return list(self.targets)

    def _answer(self, within: float) -> None:
        assert within > 0
        if self.refuses is not None:
            raise self.refuses

    def fill(self, samples: Mapping[int, Sequence[tuple[str, Mapping[str, str], float]]]) -> None:
        """Samples by the second they were taken at."""
        source = self.store.source("test", {})
        for at in sorted(samples):
            source.put(samples[at], at * 1000)


Answer = dict[str, Any]


@dataclass
class Client:
    """Asks as any client of Prometheus does."""

    path: Path

    def get(self, path: str, *pairs: tuple[str, str], **parameters: str) -> tuple[int, Answer]:
        query = urlencode([*pairs, *parameters.items()])
        status, answer = exchange(over_unix(self.path), "GET", f"/api/v1/{path}?{query}")
        assert isinstance(answer, dict), answer
        return status, answer

    def post(self, path: str, *pairs: tuple[str, str], **parameters: str) -> tuple[int, Answer]:
        body = urlencode([*pairs, *parameters.items()]).encode()
        kind = {"content-type": "application/x-www-form-urlencoded"}
        status, answer = exchange(over_unix(self.path), "POST", f"/api/v1/{path}", body, kind)
        assert isinstance(answer, dict), answer
        return status, answer

    def data(self, path: str, *pairs: tuple[str, str], **parameters: str) -> Any:
        status, answer = self.get(path, *pairs, **parameters)
        assert status == 200, json.dumps(answer)
        assert answer["status"] == "success"
        return answer["data"]
