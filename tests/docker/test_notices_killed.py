"""Killed at any instant of a sequence of notices: none is lost, and at most one is repeated.

The alerts are posted, as a Prometheus would: whoever posts repeats until the answer is 200.
"""

import random
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy.testbed import wait_until
from tests.blackbox import Daemon, Hook

pytestmark = [pytest.mark.docker, pytest.mark.timeout(180)]

ROUTE = """
route:
  receiver: log
  routes:
    - matchers: [case="kill"]
      receiver: hook
      group_by: [case]
      group_wait: 300ms
      group_interval: 1s
"""
POINTS = [
    ("told", 1, "before"),
    ("told", 4, "after"),
    ("owe", 1, "before"),
    ("owe", 2, "after"),
    ("send", 1, "after"),
    ("send", 3, "before"),
    ("sent", 1, "before"),
    ("sent", 4, "after"),
]

Notice = tuple[tuple[str, str], ...]


def post(sentinel: Daemon, name: str, *, resolved: bool, revive: Callable[[], None]) -> None:
    """Until it is taken: that is what Prometheus does."""

    def taken() -> bool:
        revive()
        now = datetime.now(UTC)
        ends_at = now if resolved else now + timedelta(hours=1)
        alert = {"labels": {"alertname": name, "case": "kill"}, "endsAt": ends_at.isoformat()}
        return sentinel.tell("POST", "/api/v2/alerts", [alert])[0] == 200

    wait_until(taken, 30, f"{name} to be taken")


def told(hook: Hook) -> list[Notice]:
    return [
        tuple(sorted((a["labels"]["alertname"], a["status"]) for a in message["alerts"]))
        for message in list(hook.messages)
    ]


STORY: list[tuple[str, bool, Notice]] = [
    ("A", False, (("A", "firing"),)),
    ("B", False, (("A", "firing"), ("B", "firing"))),
    ("A", True, (("A", "resolved"), ("B", "firing"))),
    ("B", True, (("B", "resolved"),)),
]


def tell_the_story(sentinel: Daemon, hook: Hook, revive: Callable[[], None]) -> None:
    """Each step waits for its notice, so that a dead daemon makes none of them one."""
    for name, resolved, expected in STORY:
        post(sentinel, name, resolved=resolved, revive=revive)

        def is_told(expected: Notice = expected) -> bool:
            revive()
            return expected in told(hook)

        wait_until(is_told, 40, f"{expected} among {told(hook)}")


def reviver(sentinel: Daemon) -> Callable[[], None]:
    def revive() -> None:
        assert sentinel.process is not None
        if sentinel.process.poll() is not None:
            sentinel.start()

    return revive


def check(hook: Hook) -> None:
    found = told(hook)
    expected = [notice for _, _, notice in STORY]
    assert list(dict.fromkeys(found)) == expected
    assert len(found) <= len(expected) + 1, found


@pytest.mark.parametrize(
    ("point", "nth", "when"), POINTS, ids=[f"{when} {p} {n}" for p, n, when in POINTS]
)
def test_killed_at_a_word(tmp_path: Path, point: str, nth: int, when: str) -> None:
    hook = Hook()
    sentinel = Daemon(tmp_path, prefix="none-of-these-", hook=hook.url, more=ROUTE)
    sentinel.start_mortal(point, when, nth)
    tell_the_story(sentinel, hook, reviver(sentinel))
    check(hook)
    sentinel.close()
    hook.close()


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_instant(tmp_path: Path, seed: int) -> None:
    """One kill somewhere in the story, by the clock alone."""
    hook = Hook()
    sentinel = Daemon(tmp_path, prefix="none-of-these-", hook=hook.url, more=ROUTE).start()
    wait_until(lambda: sentinel.tell("GET", "/api/v2/status")[0] == 200, 30, "the daemon")
    kill_at = time.monotonic() + random.Random(seed).uniform(0.2, 3.5)
    alive = reviver(sentinel)

    def revive() -> None:
        nonlocal kill_at
        if time.monotonic() >= kill_at:
            sentinel.kill()
            kill_at = float("inf")
        alive()

    tell_the_story(sentinel, hook, revive)
    check(hook)
    sentinel.close()
    hook.close()
