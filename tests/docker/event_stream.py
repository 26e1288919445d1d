"""Everything Docker says was done to containers, held against who says that he did it.

The tests' own acts are known from the answers their client got, a daemon's from its journal, and
Docker starts again what has a restart policy. What is left was done by a daemon without a word.
"""

import contextlib
import json
import math
import re
import sqlite3
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import docker
import requests

from deploy.testbed import wait_until

WATCHED = ("create", "start", "stop", "kill", "die", "restart", "rename", "update", "destroy")
SLACK = 0.2  # seconds between an act and the answer that tells of it
TURN = 1.0  # the same, for what a daemon writes down
OFTEN = 9  # signals: how many belong to one stop is the engine's business

MAY_CAUSE: Mapping[str, Mapping[str, int]] = {
    "create": {"create": 1},
    "start": {"start": 1},
    "stop": {"kill": OFTEN, "stop": 1},
    "kill": {"kill": 1},
    "restart": {"kill": OFTEN, "stop": 1, "start": 1, "restart": 1},
    "rename": {"rename": 1},
    "update": {"update": 1},
    "remove": {"kill": OFTEN, "destroy": 1},
}
"""What one act can bring about, to one container."""

MADE_ANEW: Mapping[str, int] = {
    "create": 1,
    "kill": OFTEN,
    "stop": 2,
    "start": 3,
    "rename": 2,
    "update": 2,
    "destroy": 1,
}
"""And a whole recreation, undone or not, to each of its two containers."""

_PATH = re.compile(r"/containers/([^/]+)(?:/([a-z]+))?$")


@dataclass(frozen=True, slots=True)
class Event:
    container_id: str
    names: tuple[str, ...]
    action: str
    at: float

    def __str__(self) -> str:
        return f"{self.action} of {self.names[0]} at {datetime.fromtimestamp(self.at, UTC):%T.%f}"


@dataclass(frozen=True, slots=True)
class Act:
    of: frozenset[str]  # ids or names
    since: float
    until: float
    may_cause: Mapping[str, int] = field(hash=False)


class EventStream:
    """Listens from the moment it is made; the client's own acts are known from then on, too."""

    def __init__(self, client: docker.DockerClient, listener: docker.DockerClient) -> None:
        self.events: list[Event] = []
        self.own_acts: list[Act] = []
        self.restarted_by_docker: set[str] = set()  # ids or names that have a restart policy
        self._removed: set[str] = set()
        client.api.hooks["response"].append(self._answered)
        self._stream = listener.events(
            decode=True, filters={"type": "container", "event": list(WATCHED)}
        )
        self._listener = listener
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def unaccounted(self, journals: Sequence[tuple[str, Path]]) -> list[str]:
        """What was done to containers of such a prefix, and neither by a test nor by the book."""
        prefixes, state_dbs = zip(*journals, strict=True) if journals else ((), ())
        self._settle()
        events = list(self.events)  # before the journals are read: they were written earlier
        acts = [*self.own_acts, *(act for state_db in set(state_dbs) for act in acts_of(state_db))]
        return unaccounted(events, acts, self.restarted_by_docker, prefixes)

    def close(self) -> None:
        self._stream.close()
        self._thread.join(10)
        self._listener.close()

    def _listen(self) -> None:
        for raw in self._stream:
            labels = raw["Actor"]["Attributes"]
            names = [labels[key].lstrip("/") for key in ("name", "oldName") if key in labels]
            at = raw["timeNano"] / 1e9
            self.events.append(Event(raw["Actor"]["ID"], tuple(names), raw["Action"], at))

    def _settle(self) -> None:
        """Wait until the end of every container is heard that a test has removed."""

        def all_heard() -> bool:
            assert self._thread.is_alive(), "Docker's event stream has ended"
            gone = [event for event in self.events if event.action == "destroy"]
            return self._removed <= {who for e in gone for who in (e.container_id, *e.names)}

        wait_until(all_heard, 15, "Docker to tell what was removed")

    def _answered(self, response: requests.Response, **_: Any) -> None:
        """Called by requests for each answer."""
        asked, now = response.request, time.time()
        where = urlsplit(str(asked.url))
        if asked.method not in ("POST", "DELETE") or not (found := _PATH.search(where.path)):
            return
        who, verb = found.groups()
        if asked.method == "DELETE":
            verb = "remove"
            if response.ok:
                self._removed.add(who)
        elif who == "create":
            who, verb = parse_qs(where.query).get("name", [""])[0], "create"
        if verb not in MAY_CAUSE:
            return
        if _sets_a_policy(asked.body):
            self.restarted_by_docker.add(who)
        since = now - response.elapsed.total_seconds() - SLACK
        self.own_acts.append(Act(frozenset({who}), since, now + SLACK, MAY_CAUSE[verb]))


def _sets_a_policy(body: object) -> bool:
    said = json.loads(body) if isinstance(body, str | bytes) and body else {}
    policy = (said.get("HostConfig") or said).get("RestartPolicy") or {}
    return policy.get("Name") not in (None, "", "no")


# --- what a journal says


def acts_of(state_db: Path) -> list[Act]:
    """None when there is no journal, or none that can be read: then nothing may be done."""
    if not state_db.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{state_db}?mode=ro", uri=True)) as db:
        db.row_factory = sqlite3.Row
        try:
            intents = db.execute("SELECT * FROM intent").fetchall()
            steps = db.execute("SELECT * FROM step WHERE started_at IS NOT NULL").fetchall()
        except sqlite3.DatabaseError:
            return []
    begun = defaultdict(list)
    for step in steps:
        begun[step["intent"]].append(step)
    return [act for intent in intents for act in _acts_of(intent, begun[intent["number"]])]


def _acts_of(intent: sqlite3.Row, begun: Sequence[sqlite3.Row]) -> Iterator[Act]:
    container_id, ended = intent["container_id"], intent["closed_at"]
    if any(step["name"] == "create" for step in begun):
        new = f"{intent['target']}.sn-{intent['number']}-{container_id[:8]}"
        since = min(step["started_at"] for step in begun)
        yield _act(frozenset({container_id, new}), since, ended, MADE_ANEW)
        return
    for step in begun:
        of, until = frozenset({container_id}), step["done_at"] or ended
        yield _act(of, step["started_at"], until, MAY_CAUSE[step["name"]])


def _act(of: frozenset[str], since: str, until: str | None, may_cause: Mapping[str, int]) -> Act:
    ended = datetime.fromisoformat(until).timestamp() + TURN if until else math.inf
    return Act(of, datetime.fromisoformat(since).timestamp() - TURN, ended, may_cause)


# --- the reckoning


def unaccounted(
    events: Iterable[Event],
    acts: Sequence[Act],
    restarted_by_docker: Iterable[str],
    prefixes: tuple[str, ...],
) -> list[str]:
    """The events of containers with such a name for which nobody stands, in words."""
    lives: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        lives[event.container_id].append(event)
    found = []
    for container_id, life in lives.items():
        names = {name for event in life for name in event.names}
        if not any(name.startswith(prefixes) for name in names):
            continue
        own = names | {container_id}
        called = own | {name.partition(".sn-")[0] for name in names}
        life.sort(key=lambda event: event.at)
        mine = [act for act in acts if act.of & own]
        restarts = not called.isdisjoint(restarted_by_docker)
        found += [str(event) for event in _left_over(life, mine, restarts=restarts)]
    return found


def _left_over(life: Iterable[Event], acts: Sequence[Act], *, restarts: bool) -> Iterator[Event]:
    spent: Counter[tuple[int, str]] = Counter()
    since_start: set[str] = set()
    for event in life:
        for number, act in enumerate(acts):
            left = act.may_cause.get(event.action, 0) - spent[number, event.action]
            if left > 0 and act.since <= event.at <= act.until:
                spent[number, event.action] += 1
                break
        else:
            ended_alone = "die" in since_start and "stop" not in since_start
            by_docker = event.action == "start" and restarts and ended_alone
            if event.action != "die" and not by_docker:
                yield event
        since_start = set() if event.action == "start" else since_start | {event.action}
