"""A whole daemon without its threads, over a fake world."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from sentinel.api.snapshot import Snapshot
from sentinel.config.rulefile import load_rule_files
from sentinel.core.dispatch.route import Route
from sentinel.core.model.intent import Mode
from sentinel.runtime.assemble import Outside, assemble
from sentinel.runtime.channels import Book
from sentinel.runtime.configure import shipped_rules
from sentinel.runtime.deliver import Channel
from sentinel.runtime.dispatch import Address
from sentinel.runtime.evidence import Evidence
from sentinel.runtime.loop import Loop
from sentinel.runtime.plan import Plan, TargetPlan
from sentinel.store.memory import Memory, open_memory
from sentinel.telemetry.metrics import Metrics
from tests.fake_recreation import FakeRecreation
from tests.fakes import FakeClock, FakeDocker, FakeReceiver, InlineLane, ask_inline, send_inline

_OF_SLOTS = "SentinelLate"  # here time jumps over slots, and nobody is late
RULES = tuple(
    replace(group, rules=tuple(rule for rule in group.rules if rule.name != _OF_SLOTS))
    for group in load_rule_files(shipped_rules())
)


def plan(mode: Mode = Mode.ACT, **changes: Any) -> Plan:
    return Plan(
        host="gpu1",
        mode=mode,
        target=lambda _name: TargetPlan(mode=mode),
        scrape_interval=timedelta(seconds=1),
        evaluation_interval=timedelta(seconds=1),
        route=Route(receiver="test"),
        rules=RULES,
        **changes,
    )


@cache
def _new_state_file() -> bytes:
    """As a daemon makes it at its first start: to migrate takes longer than most tests."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "state.db"
        open_memory(file).close()
        return file.read_bytes()


def remembering(file: Path) -> Memory:
    """A memory in that file, without waits for the disk: nobody pulls the plug of a test."""
    if not file.exists():
        file.write_bytes(_new_state_file())
    memory = open_memory(file)
    memory.db.execute("PRAGMA synchronous = OFF")
    return memory


@dataclass
class Daemon:
    """Killed by forgetting it; started again over the same directory by `again`."""

    folder: Path
    docker: FakeDocker
    clock: FakeClock
    receiver: FakeReceiver = field(default_factory=FakeReceiver)
    plan: Plan = field(default_factory=plan)
    shown: Snapshot | None = None
    samples: Sequence[Any] = ()  # published with it
    metrics: Metrics = field(default_factory=Metrics)
    heard: int = 0
    watched_until: datetime | None = None
    world: dict[str, Any] = field(default_factory=dict)  # other parts of `Outside`

    def __post_init__(self) -> None:
        self.memory = self.open()
        self.loop = self.build()

    def open(self) -> Memory:
        return remembering(self.folder / "state.db")

    @property
    def book(self) -> Book:
        return Book(
            channels={"test/webhook/0": Channel(self.receiver)},
            addresses={"test": [Address(channel="test/webhook/0", is_machine=True)]},
        )

    def build(self) -> Loop:
        outside = Outside(
            clock=self.clock,
            eyes=self.docker,
            hands=self.docker,
            recreation=lambda: FakeRecreation(self.docker),
            http=self.docker,
            ask=ask_inline,
            send=send_inline,
            shown=self,
            metrics=self.metrics,
            evidence=Evidence(self.folder / "evidence", self.docker),
            lane=cast(Any, InlineLane),
        )
        return assemble(
            replace(outside, **self.world),
            self.memory,
            self.plan,
            self.book,
            daemon={"version": "0", "started_at": None},
            watched_until=self.watched_until,
        )

    def again(self) -> None:
        self.memory.db.close()
        self.memory = self.open()
        self.loop = self.build()

    def show(self, snapshot: Snapshot, samples: Sequence[object], now: datetime) -> None:
        self.shown, self.samples = snapshot, samples

    def beat(self, now: datetime) -> None:
        self.watched_until = now

    def problems(self) -> Sequence[str]:
        return []

    def run(self, seconds: float, *, step: float = 1.0, deaf: bool = False) -> None:
        """Let `seconds` pass. `deaf`: Docker's events are lost."""
        for _ in range(round(seconds / step)):
            self.clock.advance(seconds=step)
            self.turn(deaf=deaf)

    def turn(self, *, deaf: bool = False) -> None:
        for event in self.docker.events[self.heard :]:
            if not deaf:
                self.loop.parts.inbox.put(partial(self.loop.parts.watch.heard, event))
        self.heard = len(self.docker.events)
        for _ in range(4):  # answers bring work that brings answers
            self.loop.step(0.0)

    def told(self, name: str) -> list[str]:
        """The kinds of what was said of one target."""
        return [n.kind for n in self.receiver.took if n.facts.get("target") == name]

    def state(self, name: str) -> str:
        return str(self.target(name)["state"])

    def target(self, name: str) -> dict[str, Any]:
        assert self.shown is not None
        found = [t for t in self.shown.status["targets"] if t["name"] == name]
        return dict(found[0])
