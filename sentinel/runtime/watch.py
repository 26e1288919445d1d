"""Keeps the roster of targets true to what the container engine says.

Events only wake it; a survey is the truth. A survey that fails says that Docker is lost,
never that a container is. What was begun on a container is finished: until then it stays a
target, whatever the settings say of it.
"""

from datetime import datetime, timedelta

from sentinel.core.dockerspeak import repository_of
from sentinel.core.endpoint import endpoint_of
from sentinel.core.model.container import Container, EngineEvent
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.launch import EndedAs
from sentinel.core.policy.discover import is_excluded, is_set_aside, is_swapped, is_target
from sentinel.ports import Clock, ContainerEyes
from sentinel.runtime.find import Finder
from sentinel.runtime.history import History
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.ledger import Ledger
from sentinel.runtime.plan import Plan
from sentinel.runtime.survey import Question, Survey, survey
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_DEADLINE = 30.0  # seconds for one survey
_RETRY = timedelta(seconds=2)  # while Docker is lost
_REMEMBERED = timedelta(hours=1)  # a crashed container that Docker removed at once


class Watch:
    def __init__(  # noqa: PLR0913, PLR0917 - one part of each kind
        self,
        eyes: ContainerEyes,
        clock: Clock,
        memory: Memory,
        history: History,
        plan: Plan,
        inbox: Inbox,
        lane: Lane,
    ) -> None:
        self._eyes, self._clock = eyes, clock
        self._memory, self._history = memory, history
        self.ledger = Ledger(memory, lambda: self.plan.host)
        self._inbox, self._lane = inbox, lane
        self.plan = plan
        self.targets: dict[str, Target] = {}
        self.finder: Finder | None = None  # finds targets by the series on their ports
        self._strangers: dict[str, Container] = {}
        self.lost_at: datetime | None = None
        self.back_at: datetime | None = None
        self.last_lost_at: datetime | None = None
        self.reconciled = False
        self.set_aside: list[str] = []  # names of containers that stand between two others
        self._pulls: dict[str, datetime] = {}  # by repository
        self._news = False
        self._known: dict[str, str] = {}
        self._anyway: set[str] = set()
        self._unplaced: list[
            EngineEvent
        ] = []  # of containers that ran out of memory, not yet known
        self._wanted = True
        self._due_at: datetime | None = None

    # what wakes it

    def heard(self, event: EngineEvent) -> None:
        """Docker says that something happened to some container, or to the image of some."""
        if event.action == "pull":
            self._pulled(event)
            return
        self._anyway.add(event.container_id)
        self._wanted = True
        tick = self._clock.monotonic()
        for target in self.targets.values():
            if target.container.id == event.container_id:
                target.heard_tick = tick
                if event.action == "kill" and event.at > (target.container.started_at or event.at):
                    target.told_to_stop_at = event.at
        with self._memory.together():
            if not self.ledger.hear(event):
                return
            if event.action == "oom" and not self._count_oom(event, tick):
                self._unplaced.append(event)

    def _pulled(self, event: EngineEvent) -> None:
        """Another version is as good a sign as the same: whoever pulls is about to deploy."""
        repository = repository_of(event.name)
        self._pulls[repository] = event.at
        for target in self.targets.values():
            if repository_of(target.container.image) == repository:
                target.pulled_at = event.at

    def _count_oom(self, event: EngineEvent, tick: float) -> bool:
        """False for a target not found yet, or just now: its 0 must have been published."""
        for target in self.targets.values():
            if target.container.id == event.container_id and target.looked_tick < tick:
                self.ledger.counts.reported_oom(target.name, target.container, event.at)
                return True
        return False

    def look_again(self) -> None:
        """Look at everything, whether it seems to have changed or not."""
        self._known.clear()
        self._wanted = True

    def look_if_due(self, now: datetime) -> None:
        """Start a survey if one is wanted or due, and none is under way."""
        overdue = self._lane.overdue(self._clock.monotonic())
        if overdue:
            self._lose("Docker has not answered for 30 s", now)
        if self._lane.busy_since is not None:
            return
        if not self._wanted and self._due_at is not None and now < self._due_at:
            return
        self._wanted = False
        wait = _RETRY if self.lost_at else self.plan.reconcile_interval
        self._due_at = now + wait
        question = self._question()
        self._anyway.clear()
        self._lane.submit(
            lambda: survey(self._eyes, question, self._clock),
            now=self._clock.monotonic(),
            deadline=_DEADLINE,
            deliver=lambda answer: self._inbox.put_question(lambda: self.surveyed(answer)),
        )

    @property
    def due_at(self) -> datetime | None:
        return self._due_at

    def _question(self) -> Question:
        plan, found = self.plan, frozenset(self.finder.found if self.finder else ())
        begun = frozenset(
            intent.wish.container_id
            for intent in self._memory.journal.open()
            if any(step.started_at is not None for step in intent.steps)
        )
        ended = frozenset(
            (t.container.id, t.launch.started_at)
            for t in self.targets.values()
            if t.launch is not None
            and t.launch.ending is not None
            and t.launch.ending.kind is not EndedAs.UNWITNESSED
        )
        return Question(
            wanted=lambda row: (
                (row.id in begun and not is_swapped(row.name))
                or is_target(row, plan.discover, plan.exclude)
                or (row.id in found and not is_excluded(row, plan.exclude))
            ),
            known=dict(self._known),
            inspect_anyway=frozenset(self._anyway),
            explained=ended,
            meets_strangers=self.finder is not None and plan.looks_default,
        )

    # what a survey brings

    def surveyed(self, answer: LaneAnswer[Survey]) -> None:
        self._news = self._news or self._is_news(answer.value)
        if answer.value is None:
            error = answer.error
            says = error.message if isinstance(error, SentinelError) else repr(error)
            self._known.clear()
            self._lose(says, self._clock.now())
            return
        try:
            with self._memory.together():
                self._take(answer.value)
        except Exception:
            self._known.clear()  # what was not taken in is looked at again
            self._wanted = True
            raise
        self.reconciled = True

    def has_news(self) -> bool:
        """Whether a survey brought anything since this was last asked: then a turn follows."""
        news, self._news = self._news, False
        return news

    def _is_news(self, seen: Survey | None) -> bool:
        """Most surveys find everything as it was; but what is being done waits for each."""
        if seen is None or not self.reconciled or self.lost_at is not None or seen.containers:
            return True
        gone = self.targets.keys() - {row.name for row in seen.summaries}
        return bool(gone) or bool(self._memory.journal.open())

    def _take(self, seen: Survey) -> None:
        self._find(seen.at)
        sieves = self.plan.discover, self.plan.exclude
        self.set_aside = sorted(row.name for row in seen.swapped if is_set_aside(row, *sieves))
        ours = {row.id for row in seen.summaries}
        self._unplaced = [
            event
            for event in self._unplaced
            if event.container_id in ours and not self._count_oom(event, seen.tick)
        ]
        self._wanted = self._wanted or bool(self._unplaced)
        present = {row.name for row in seen.summaries}
        for name in [name for name in self.targets if name not in present]:
            self._gone(name, seen)
        for row in seen.summaries:
            container = seen.containers.get(row.id)
            if container is not None and container.name != row.name:
                self._wanted = True  # it has another name since it was listed
            elif container is not None:
                self._seen(container, seen.logs.get(row.id, ""), seen.at)
                self.targets[container.name].looked_tick = seen.tick
                self._known[row.id] = row.fingerprint
        self._meet(seen)

    def _meet(self, seen: Survey) -> None:
        """Have the finder ask those that nothing marks, either way."""
        if self.finder is None:
            return
        here = {row.id: row for row in seen.others if not is_excluded(row, self.plan.exclude)}
        met = {**self._strangers, **seen.strangers}
        self._strangers = {one: box for one, box in met.items() if one in here}
        self._known |= {one: here[one].fingerprint for one in self._strangers}
        self.finder.meet(self._strangers)

    def _lose(self, because: str, now: datetime) -> None:
        if self.lost_at is not None:
            return
        self.lost_at = self.last_lost_at = now
        self._history.write(events.DOCKER_LOST, because, at=now)

    def _find(self, now: datetime) -> None:
        if self.lost_at is None:
            return
        gone_for = int((now - self.lost_at).total_seconds())
        self.lost_at, self.back_at = None, now
        self._history.write(events.DOCKER_BACK, f"it answers again after {gone_for} s", at=now)

    def _gone(self, name: str, seen: Survey) -> None:
        target = self.targets[name]
        self._known.pop(target.container.id, None)
        if any(i.wish.target == name and i.wish.is_made_anew for i in self._memory.journal.open()):
            return  # between two containers: it is finished first
        if name in seen.names:
            because = "it is no longer among those to look after"
        elif self._crashed_away(target, seen.at):
            return
        else:
            because = "its container is gone"
        del self.targets[name]
        self.ledger.forget(target.container.id)
        self._history.write(events.TARGET_GONE, because, at=seen.at, target=name)

    def _crashed_away(self, target: Target, now: datetime) -> bool:
        """With --rm a crash takes the container with it, and would pass in silence."""
        if target.is_gone:
            return target.seen_at + _REMEMBERED > now
        container = target.container
        if not container.auto_remove or target.launch is None:
            return False
        ended = self.ledger.removed(target, container, now)
        target.is_gone = ended.kind in (EndedAs.CRASH, EndedAs.OOM)
        return target.is_gone

    def _seen(self, container: Container, log: str, now: datetime) -> None:
        target = self.targets.get(container.name)
        if target is None:
            target = self.targets[container.name] = Target(
                name=container.name, container=container, seen_at=now, since=now
            )
            target.pulled_at = self._pulls.get(repository_of(container.image))
            self.ledger.counts.begin(container.name)
            self._history.write(
                events.TARGET_FOUND,
                f"a container of {container.image}",
                at=now,
                target=container.name,
                container_id=container.id[:12],
            )
        elif target.key != (container.id, container.started_at):
            target.begin_anew()
        before, target.is_gone = target.container, False
        target.container, target.seen_at = container, now
        target.endpoint = endpoint_of(container, self.plan.target(container.name).endpoint)
        lost_at = self.last_lost_at
        self.ledger.enter(target, container, lost_at, now)
        self.ledger.explain(target, before, container, log, lost_at, now)
        if container.is_up:
            target.seen_up_at = now
