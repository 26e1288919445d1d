"""Stand-ins for the world, as slow and as rude as the real thing, moved by a fake clock.

A container that is started takes `loads_for` seconds until it serves: a fake that heals
instantly would hide a restart done twice.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sentinel.core.logrecords import Record, nanoseconds
from sentinel.core.model.container import Container, EngineEvent, PublishedPort, Status, Summary
from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.message import Notice
from sentinel.core.model.target import Answer, Completion
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.net import NetAnswer

FIXTURES = Path(__file__).parent / "fixtures"
IDLE = (FIXTURES / "vllm-0.32.0-cpu" / "metrics_0.32_idle_fresh.txt").read_bytes()
CRASH_LOG = (FIXTURES / "vllm-0.32.0-cpu" / "log_0.32_enginecore_sigkill_rc0.txt").read_text()


class Killed(BaseException):
    """Not an Exception, so that no handler in the product can survive it."""


class FakeClock:
    """Time that moves when a test says so, and only then."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, **span: float) -> None:
        step = timedelta(**span)
        self._now += step
        self._monotonic += step.total_seconds()

    def jump(self, **span: float) -> None:
        """The wall clock is set back or forth; durations are not affected."""
        self._now += timedelta(**span)


@dataclass
class FakeContainer:
    seen: Container
    log: str = ""
    loads_for: float = 20.0
    started_tick: float = 0.0  # monotonic
    body: bytes = IDLE
    health: int = 200
    answers: bool = True  # completions
    written: list[Record] = field(default_factory=list)  # its log, as it is followed
    unreadable: bool = False  # its log driver keeps nothing
    chosen_port: bool = False  # Docker publishes it on another port of the host at each start
    dies_with: frozenset[int] = frozenset()  # limits with which it ends as soon as it is started


@dataclass
class FakeDocker:
    """An engine with containers in it. `done` is what was really done to the world."""

    clock: FakeClock
    boxes: dict[str, FakeContainer] = field(default_factory=dict)
    events: list[EngineEvent] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)  # URLs, in order
    follows: list[str] = field(default_factory=list)  # from where logs were asked for
    mute: bool = False  # no log can be had now
    lost: bool = False
    refuses: SentinelError | None = None

    def add(self, name: str, *, policy: str = "no", loads_for: float = 20.0) -> FakeContainer:
        at = self.clock.now() - timedelta(hours=1)
        port = 8000 + len(self.boxes)
        box = FakeContainer(
            seen=Container(
                id=f"{len(self.boxes):064x}",
                name=name,
                image="vllm/vllm-openai:v0.32.0",
                image_id="sha256:1",
                argv=("vllm", "serve", "tiny", "--port", "8000"),
                status=Status.RUNNING,
                pid=4242,
                started_at=at,
                created_at=at,
                restart_policy=policy,
                ports=(PublishedPort(container_port=8000, host_ip="127.0.0.1", host_port=port),),
                manually_stopped=False,
            ),
            loads_for=loads_for,
            started_tick=self.clock.monotonic() - 3600,
        )
        self.boxes[name] = box
        return box

    # what happens by itself, or by somebody else's hands

    def die(self, name: str, *, code: int = 0, log: str = CRASH_LOG) -> None:
        box = self.boxes[name]
        box.log = log
        self._end(box, code, manually=False)
        self._say("die", box, exit_code=code)

    def write(self, name: str, *texts: str) -> None:
        """It writes some lines."""
        box, at = self.boxes[name], self.clock.now()
        stamp = f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z".encode()
        lines = (line for text in texts for line in text.splitlines())
        box.written += [Record(stamp, line.encode()) for line in lines]

    def stop_by_person(self, name: str, *, heard: bool = True) -> None:
        box = self.boxes[name]
        box.log = ""
        if heard:
            self._say("kill", box, signal="15")
        self._end(box, 0, manually=True)
        if heard:
            self._say("die", box, exit_code=0)
            self._say("stop", box)

    def _end(self, box: FakeContainer, code: int, *, manually: bool) -> None:
        box.seen = replace(
            box.seen,
            status=Status.EXITED,
            exit_code=code,
            pid=None,
            finished_at=self.clock.now(),
            manually_stopped=manually,
        )

    def _say(self, action: str, box: FakeContainer, **facts: Any) -> None:
        at = self.clock.now()
        self.events.append(
            EngineEvent(
                at=at,
                at_ns=round(at.timestamp() * 1e9) + len(self.events),
                action=action,
                container_id=box.seen.id,
                name=box.seen.name,
                **facts,
            )
        )

    # eyes

    def list(self) -> Sequence[Summary]:
        self._answer()
        return [
            Summary(
                id=box.seen.id,
                name=box.seen.name,
                image=box.seen.image,
                command=" ".join(box.seen.argv),
                labels=box.seen.labels,
                status=box.seen.status,
                fingerprint=f"{box.seen.status} {box.seen.started_at} {box.seen.finished_at}",
            )
            for box in self.boxes.values()
        ]

    def inspect(self, container_id: str) -> Container | None:
        self._answer()
        return next((b.seen for b in self.boxes.values() if b.seen.id == container_id), None)

    def log_tail(self, container_id: str, *, lines: int, since: datetime | None = None) -> str:
        self._answer()
        return next((b.log for b in self.boxes.values() if b.seen.id == container_id), "")

    async def follow(
        self,
        container_id: str,
        *,
        since: str,
        tty: bool,
        to_the_end: bool,
        heard: Callable[[Sequence[Record]], None],
    ) -> None:
        """A stream that ends after what there is, as one may at any time."""
        self._answer()
        self.follows.append(since)
        if self.mute:
            raise Transient("the log cannot be had now")
        box = next((b for b in self.boxes.values() if b.seen.id == container_id), None)
        if box is None or box.unreadable:
            raise Permanent("its log cannot be read: the log driver keeps none")
        seconds, _, nanos = since.partition(".")
        edge = int(seconds) * 10**9 + int(nanos.ljust(9, "0"))
        if found := [each for each in box.written if nanoseconds(each.stamp) >= edge]:
            heard(found)

    def raw(self, container_id: str) -> Mapping[str, Any] | None:
        seen = self.inspect(container_id)
        if seen is None:
            return None
        environment = ["PATH=/bin", "HF_TOKEN=s3cr3t"]
        return {"Id": seen.id, "Args": [*seen.argv], "Config": {"Env": environment}}

    # hands

    def stop(self, container_id: str, *, if_started_at: datetime, grace: int) -> None:
        box = self._own(container_id)
        if box.seen.started_at != if_started_at:
            raise Permanent("no longer the one seen")
        if box.seen.status is not Status.RUNNING:
            return
        self.done.append(f"stop {box.seen.name}")
        self._say("kill", box, signal="15")
        self._end(box, 0, manually=True)
        self._say("die", box, exit_code=0)

    def start(self, container_id: str, *, if_started_at: datetime) -> None:
        box = self._own(container_id)
        if box.seen.started_at != if_started_at:
            if box.seen.status is Status.RUNNING:
                return
            raise Permanent("no longer the one seen")
        if box.seen.status is Status.RUNNING:
            return
        self.done.append(f"start {box.seen.name}")
        box.seen = replace(
            box.seen,
            status=Status.RUNNING,
            exit_code=0,
            pid=4343,
            started_at=self.clock.now(),
            manually_stopped=False,
        )
        box.started_tick = self.clock.monotonic()
        self._say("start", box)

    def _own(self, container_id: str) -> FakeContainer:
        self._answer()
        if self.refuses is not None:
            raise self.refuses
        found = next((b for b in self.boxes.values() if b.seen.id == container_id), None)
        if found is None:
            raise Permanent("the container is gone")
        return found

    def _answer(self) -> None:
        if self.lost:
            raise Transient("Docker does not answer")

    # targets' HTTP

    async def get(self, url: str, *, timeout: float, max_bytes: int) -> Answer:
        now = self.clock.now()
        self.asked.append(url)
        box = self._serving(url)
        if box is None:
            return Answer(at=now, took=0.0, failure="refused", says="nobody listens")
        if url.endswith("/health"):
            return Answer(at=now, took=0.001, status=box.health)
        return Answer(at=now, took=0.002, status=200, body=box.body)

    async def complete(
        self, url: str, *, api_key: str | None, deadline: float, ranks: Sequence[str] = ()
    ) -> Completion:
        now = self.clock.now()
        box = self._serving(url)
        if box is None:
            return Completion(at=now, took=0.0, ok=False, refused=True, says="nobody listens")
        says, late = "" if box.answers else "no answer before the deadline", not box.answers
        return Completion(at=now, took=0.1, ok=box.answers, model="tiny", says=says, timed_out=late)

    def _serving(self, url: str) -> FakeContainer | None:
        for box in self.boxes.values():
            if f":{box.seen.ports[0].host_port}" not in url:
                continue
            if box.seen.status is not Status.RUNNING:
                continue  # another may have taken its place
            loaded = self.clock.monotonic() - box.started_tick >= box.loads_for
            return box if loaded else None
        return None


class InlineLane:
    """A lane whose thread is the test's own."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.busy_since: float | None = None

    def submit(
        self,
        call: Callable[[], Any],
        *,
        now: float,
        deadline: float,
        deliver: Callable[[LaneAnswer[Any]], Any],
    ) -> int:
        try:
            deliver(LaneAnswer(lane=self.name, token=1, value=call()))
        except Exception as error:
            deliver(LaneAnswer(lane=self.name, token=1, error=error))
        return 1

    def overdue(self, now: float) -> bool:
        return False


def ask_inline(
    work: Callable[[], Coroutine[Any, Any, Any]],
    *,
    deadline: float,
    deliver: Callable[[NetAnswer[Any]], Any],
) -> None:
    deliver(NetAnswer(value=_run(work())))


def follow_inline(
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    deadline: float,
    deliver: Callable[[NetAnswer[None]], Any],
) -> None:
    try:
        _run(work())
    except Exception as error:
        deliver(NetAnswer(error=error))
    else:
        deliver(NetAnswer())


def send_inline(
    send: Callable[[], Coroutine[Any, Any, None]], done: Callable[[BaseException | None], None]
) -> None:
    try:
        _run(send())
    except Exception as error:
        done(error)
    else:
        done(None)


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Fakes never really wait, so one push is enough."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("a fake waited")


@dataclass
class FakeReceiver:
    """Takes everything it is sent, or fails as told."""

    took: list[Notice] = field(default_factory=list)
    fails: SentinelError | None = None

    async def send(self, notice: Notice) -> None:
        if self.fails is not None:
            raise self.fails
        self.took.append(notice)
