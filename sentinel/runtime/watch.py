"""Keeps the roster of targets true to what the container engine says.

Events only wake it; a survey is the truth. A survey that fails says that Docker is lost,
never that a container is. An ending is explained once, from everything heard and read by
then, and entered in the ledger of launches.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from sentinel.core.diagnosis.log import read_log
from sentinel.core.endpoint import endpoint_of
from sentinel.core.model import series_names as series
from sentinel.core.model.container import Container, EngineEvent, Status
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.policy.discover import is_target
from sentinel.core.policy.ending import Clues, explain_ending
from sentinel.ports import Clock, ContainerEyes
from sentinel.runtime.history import History
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.survey import Question, Survey, survey
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_DEADLINE = 30.0  # seconds for one survey
_RETRY = timedelta(seconds=2)  # while Docker is lost
_ENDED = (Status.EXITED, Status.DEAD)


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
        self._launches, self._journal = memory.launches, memory.journal
        self._counters, self._history = memory.counters, history
        self._inbox, self._lane = inbox, lane
        self.plan = plan
        self.targets: dict[str, Target] = {}
        self.marked: set[str] = set()  # ids found to serve `vllm:` series
        self.others: dict[str, str] = {}  # running containers not marked: id → name
        self.lost_at: datetime | None = None
        self.back_at: datetime | None = None
        self.last_lost_at: datetime | None = None
        self.reconciled = False
        self._known: dict[str, str] = {}
        self._anyway: set[str] = set()
        self._wanted = True
        self._due_at: datetime | None = None

    # what wakes it

    def heard(self, event: EngineEvent) -> None:
        """Docker says that something happened to some container."""
        if not self._launches.hear(event):
            return
        self._anyway.add(event.container_id)
        self._wanted = True
        name = next(
            (t.name for t in self.targets.values() if t.container.id == event.container_id), ""
        )
        if event.action == "oom" and name:
            self._counters.add(series.OOM_EVENTS, self._labels(name, kind="cgroup"))

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
            deliver=lambda answer: self._inbox.put(lambda: self.surveyed(answer)),
        )

    @property
    def due_at(self) -> datetime | None:
        return self._due_at

    def _question(self) -> Question:
        plan, marked = self.plan, frozenset(self.marked)
        ended = frozenset(
            (t.container.id, t.launch.started_at)
            for t in self.targets.values()
            if t.launch is not None and t.launch.ending is not None
        )
        return Question(
            wanted=lambda row: (
                is_target(row, plan.discover, plan.exclude)
                or (row.id in marked and not any(sieve.takes(row) for sieve in plan.exclude))
            ),
            known=dict(self._known),
            inspect_anyway=frozenset(self._anyway),
            explained=ended,
        )

    # what a survey brings

    def surveyed(self, answer: LaneAnswer[Survey]) -> None:
        if answer.value is None:
            error = answer.error
            says = error.message if isinstance(error, SentinelError) else repr(error)
            self._known.clear()
            self._lose(says, self._clock.now())
            return
        seen = answer.value
        self._find(seen.at)
        present = {row.name for row in seen.summaries}
        for name in [name for name in self.targets if name not in present]:
            self._gone(name, seen.at)
        for row in seen.summaries:
            container = seen.containers.get(row.id)
            if container is not None:
                self._known[row.id] = row.fingerprint
                self._seen(container, seen.logs.get(row.id, ""), seen.at)
        self.others = {row.id: row.name for row in seen.others}
        self.reconciled = True

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

    def _gone(self, name: str, now: datetime) -> None:
        target = self.targets.pop(name)
        self._known.pop(target.container.id, None)
        self._history.write(events.TARGET_GONE, "its container is gone", at=now, target=name)

    def _seen(self, container: Container, log: str, now: datetime) -> None:
        target = self.targets.get(container.name)
        if target is None:
            target = self.targets[container.name] = Target(
                name=container.name, container=container, seen_at=now, since=now
            )
            self._begin_counters(container.name)
            self._history.write(
                events.TARGET_FOUND,
                f"a container of {container.image}",
                at=now,
                target=container.name,
                container_id=container.id[:12],
            )
        elif target.key != (container.id, container.started_at):
            target.forget_answers()
            target.launch = None
        target.container, target.seen_at = container, now
        target.endpoint = endpoint_of(container, self.plan.target(container.name).endpoint)
        self._enter_launch(target, container, now)
        self._explain(target, container, log, now)

    def _begin_counters(self, name: str) -> None:
        for code in (*series.EXIT_CODES, "other"):
            self._counters.exist(series.CONTAINER_EXITS, self._labels(name, code=code))
        for kind in series.OOM_KINDS:
            self._counters.exist(series.OOM_EVENTS, self._labels(name, kind=kind))
        for by in series.RESTARTED_BY:
            self._counters.exist(series.CONTAINER_RESTARTS, self._labels(name, by=by))

    # the ledger

    def _enter_launch(self, target: Target, container: Container, now: datetime) -> None:
        if container.started_at is None or target.launch is not None:
            return
        known = self._launches.get(container.id, container.started_at)
        before = self._launches.before(target.name, container.started_at)
        if before is not None and before.ending is None:
            before = self._explain_missed(before, container, now)
        if known is None:
            by = self._started_by(container, before)
            known = self._launches.write(container, target.name, by, now)
            if before is not None:
                self._counters.add(series.CONTAINER_RESTARTS, self._labels(target.name, by=by))
        target.launch = known
        target.previous_ending = before.ending if before else None
        target.model = known.model or target.model

    def _started_by(self, container: Container, before: Launch | None) -> By:
        for intent in self._journal.open():
            if intent.wish.container_id == container.id and (
                container.started_at is not None
                and container.started_at > intent.wish.saw_started_at
            ):
                return By.SENTINEL
        same = before is not None and before.container_id == container.id
        if same and before is not None and container.restart_count > before.restart_count:
            return By.DOCKER
        return By.OTHER

    def _explain(self, target: Target, container: Container, log: str, now: datetime) -> None:
        launch = target.launch
        over = container.status in (*_ENDED, Status.RESTARTING)
        if launch is None or not over or launch.ending is not None:
            return
        ending = explain_ending(
            Clues(
                container=container,
                events=self._launches.heard(container.id, launch.started_at),
                own_stop=self._was_stopping(container),
                log=read_log(log) if log else None,
                engine_down_at=self.last_lost_at,
            )
        )
        self._launches.end(launch, ending, now)
        target.launch = replace(launch, ending=ending)
        self._count_ending(target.name, ending)

    def _explain_missed(self, before: Launch, container: Container, now: datetime) -> Launch:
        """The launch before this one ended, and it was started again before anyone looked."""
        heard = [
            event
            for event in self._launches.heard(before.container_id, before.started_at)
            if container.started_at is None or event.at < container.started_at
        ]
        death = next((event for event in heard if event.action == "die"), None)
        as_it_was = replace(
            container,
            id=before.container_id,
            started_at=before.started_at,
            status=Status.EXITED,
            exit_code=death.exit_code if death else None,
            oom_killed=False,
            manually_stopped=None,
        )
        ending = explain_ending(
            Clues(
                container=as_it_was,
                events=heard,
                own_stop=self._was_stopping(as_it_was),
                log=None,
                engine_down_at=self.last_lost_at,
            )
        )
        self._launches.end(before, ending, now)
        self._count_ending(before.target, ending)
        return replace(before, ending=ending)

    def _was_stopping(self, container: Container) -> bool:
        return any(
            intent.wish.container_id == container.id
            and intent.wish.saw_started_at == container.started_at
            and any(step.name == "stop" and step.started_at for step in intent.steps)
            for intent in self._journal.open()
        )

    def _count_ending(self, name: str, ending: Ending) -> None:
        code = str(ending.exit_code)
        known = code if code in series.EXIT_CODES else "other"
        self._counters.add(series.CONTAINER_EXITS, self._labels(name, code=known))
        if ending.kind is EndedAs.OOM and ending.cause.startswith("cuda_oom"):
            kind = "cuda_runtime" if ending.cause == "cuda_oom_runtime" else "cuda_startup"
            self._counters.add(series.OOM_EVENTS, self._labels(name, kind=kind))

    def _labels(self, target: str, **more: str) -> dict[str, str]:
        return {"target": target, "host": self.plan.host, **more}
