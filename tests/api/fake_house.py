"""A house without a loop: it remembers what was asked and answers what a test put in."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sentinel.api.prometheus.copies import Copies
from sentinel.api.server import ApiServer
from sentinel.api.snapshot import Snapshot
from sentinel.core.dispatch.board import Board
from sentinel.core.model.command import Command
from sentinel.core.model.errors import SentinelError, Transient

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


def a_target(name: str = "t1-a", state: str = "serving", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "container_id": "c0ffee" * 10,
        "model": "Qwen/Qwen2.5-7B-Instruct",
        "pool": "main",
        "state": state,
        "traffic": "active",
        "since": "2030-01-01T11:57:00Z",
        "because": "answers and makes progress",
        "endpoint": "http://127.0.0.1:8000",
        "running": 3,
        "waiting": 0,
        "kv_cache_usage_ratio": 0.41,
        "ttft_p99_seconds": 0.8,
        "gpus": ["GPU-5a3b1c9d-0000-0000-0000-000000000000"],
        "last_action": None,
        "held": [],
        "incident": None,
        **more,
    }


def an_alert(name: str = "VllmContainerExited", **more: Any) -> dict[str, Any]:
    return {
        "alertname": name,
        "state": "firing",
        "severity": "critical",
        "labels": {"alertname": name, "target": "t1-a"},
        "active_at": "2030-01-01T11:58:00Z",
        "value": 1,
        "silenced": False,
        **more,
    }


def an_approval(**more: Any) -> dict[str, Any]:
    return {
        "intent": "n-000012",
        "action": "restart",
        "target": "t1-a",
        "expires_at": "2030-01-01T12:30:00Z",
        **more,
    }


def an_intent(**more: Any) -> dict[str, Any]:
    return {
        "id": "n-000012",
        "action": "restart",
        "target": "t1-a",
        "mode": "act",
        "because": "the engine hangs",
        "reserved_at": "2030-01-01T11:40:00Z",
        "closed_at": "2030-01-01T11:43:00Z",
        "outcome": "verified",
        "by": "sentinel",
        **more,
    }


def an_incident(**more: Any) -> dict[str, Any]:
    return {
        "id": "i-000007",
        "status": "open",
        "subject": {"kind": "target", "name": "t1-a"},
        "severity": "critical",
        "opened_at": "2030-01-01T11:39:00Z",
        "resolved_at": None,
        "diagnosis": {"cause": "engine_hung", "advice": "restart it"},
        "alerts": ["VllmEngineHung"],
        "intents": [an_intent()],
        "timeline": [
            {
                "at": "2030-01-01T11:40:00Z",
                "event": "intent_reserved",
                "because": "the engine hangs",
                "by": "sentinel",
                "facts": {},
            }
        ],
        "evidence": "/var/lib/sentinel/evidence/i-000007",
        **more,
    }


def an_explanation(**more: Any) -> dict[str, Any]:
    return {
        "subject": {"kind": "target", "name": "t1-a"},
        "state": "hung",
        "since": "2030-01-01T11:57:00Z",
        "because": "no progress for 130 s with 3 requests running",
        "witnesses": [{"name": "health", "says": "200", "at": "2030-01-01T11:59:58Z"}],
        "rules": [
            {
                "alertname": "VllmEngineHung",
                "state": "pending",
                "value": 1,
                "active_at": "2030-01-01T11:59:00Z",
                "fires_at": "2030-01-01T12:01:00Z",
            }
        ],
        "remedy": {
            "match": ['alertname="VllmEngineHung"'],
            "ladder": [{"step": "restart", "status": "next"}, {"step": "page", "status": "later"}],
        },
        "guards": [
            {"guard": "cooldown", "holds": True, "because": "restarted 4m ago", "until": None}
        ],
        "next": {"what": "restart", "at": "2030-01-01T12:11:00Z", "because": "cooldown ends"},
        **more,
    }


def a_status(**more: Any) -> dict[str, Any]:
    return {
        "daemon": {
            "version": "0.1.0",
            "mode": "act",
            "started_at": "2029-12-29T08:00:00Z",
            "paused_until": None,
        },
        "targets": [a_target()],
        "alerts": [],
        "approvals": [],
        "problems": [],
        **more,
    }


def a_snapshot(**more: Any) -> Snapshot:
    return Snapshot(at=NOW, ready=True, status=a_status(**more), explain={"t1-a": an_explanation()})


@dataclass
class FakeHouse:
    picture: Snapshot = field(default_factory=a_snapshot)
    answers: dict[str, Any] = field(default_factory=lambda: {"done": True})
    refuses: SentinelError | Exception | None = None
    asked: list[Command] = field(default_factory=list)
    past: list[dict[str, Any]] = field(default_factory=lambda: [an_incident()])
    last_query: tuple[int, str | None] | None = None
    library: Copies | None = None
    standing: Board | None = None
    before_answer: Callable[[], object] = lambda: None

    def show(self, **status: Any) -> None:
        self.picture = replace(self.picture, status=a_status(**status))

    def snapshot(self) -> Snapshot:
        return self.picture

    def ask(self, command: Command, deadline: float) -> dict[str, Any]:
        assert deadline > 0
        self.asked.append(command)
        self.before_answer()
        if self.refuses:
            raise self.refuses
        return self.answers

    def history(self) -> "FakeHouse":
        return self

    def incidents(self, limit: int, status: str | None) -> list[dict[str, Any]]:
        self.last_query = (limit, status)
        if self.refuses:
            raise self.refuses
        return self.past[:limit]

    def incident(self, id: str) -> dict[str, Any] | None:  # noqa: A002
        return next((incident for incident in self.past if incident["id"] == id), None)

    def intents(self) -> list[dict[str, Any]]:
        return [an_intent()]

    def scorecard(self) -> dict[str, Any]:
        return {"remedies": []}

    def copies(self) -> Copies:
        if self.library is None:
            raise Transient("Sentinel is still starting")
        return self.library

    def board(self) -> Board:
        if self.standing is None:
            raise Transient("Sentinel is still starting")
        return self.standing

    def metrics(self) -> bytes:
        return b"sentinel_build_info 1\n"


@contextmanager
def served(house: FakeHouse, path: Path, **more: Any) -> Iterator[ApiServer]:
    server = ApiServer(house, socket=path, **{"now": lambda: NOW, **more})
    server.start()
    try:
        yield server
    finally:
        server.stop(5)


def wait_until(true: Callable[[], bool], within: float = 5.0) -> None:
    end = time.monotonic() + within
    while not true():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.01)
