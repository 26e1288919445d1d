"""Enters each start of a target in the ledger of launches, and explains each end of one.

An ending is explained from everything heard and read by then, and counted once. It is explained
anew only if nobody knew and an event has come since, or if a person stopped what Docker was
about to start again.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sentinel.core.diagnosis.log import read_log
from sentinel.core.model import series_names as series
from sentinel.core.model.container import Container, EngineEvent, Status
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.policy.ending import Clues, explain_ending, stopped_afterwards
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

_ENDED = (Status.EXITED, Status.DEAD)


class Ledger:
    def __init__(self, memory: Memory, host: Callable[[], str]) -> None:
        self._launches, self._journal = memory.launches, memory.journal
        self._counters = memory.counters
        self._host = host

    def begin(self, name: str) -> None:
        """Every counter of a target stands at 0 before the first thing it counts."""
        for code in (*series.EXIT_CODES, "other"):
            self._counters.exist(series.CONTAINER_EXITS, self._labels(name, code=code))
        for kind in series.OOM_KINDS:
            self._counters.exist(series.OOM_EVENTS, self._labels(name, kind=kind))
        for by in series.RESTARTED_BY:
            self._counters.exist(series.CONTAINER_RESTARTS, self._labels(name, by=by))

    def hear(self, event: EngineEvent) -> bool:
        """Keep it; False if it was known already."""
        return self._launches.hear(event)

    def count_oom(self, name: str) -> None:
        self._counters.add(series.OOM_EVENTS, self._labels(name, kind="cgroup"))

    def enter(
        self, target: Target, container: Container, lost_at: datetime | None, now: datetime
    ) -> None:
        """Enter the launch that `container` is in, unless it is known."""
        if container.started_at is None or target.launch is not None:
            return
        known = self._launches.get(container.id, container.started_at)
        before = self._launches.before(target.name, container.id, container.started_at)
        by = known.by if known else self._started_by(container, before)
        if before is not None and before.ending is None:
            before = self._explain_missed(before, container, by, lost_at, now)
        if known is None:
            known = self._launches.write(container, target.name, by, now)
            self._count_starts(known, before)
        target.launch = known
        target.previous_ending = before.ending if before else None
        target.previous_was_ready = before is not None and before.ready_at is not None
        target.model = known.model or target.model

    def explain(
        self,
        target: Target,
        was: Container,
        container: Container,
        log: str,
        lost_at: datetime | None,
        now: datetime,
    ) -> None:
        """Say how the launch that `container` was in has ended, if it has."""
        launch = target.launch
        if launch is None or container.status not in (*_ENDED, Status.RESTARTING):
            return
        if (known := launch.ending) is not None:
            ending = self._explained_anew(known, launch, was, container)
        else:
            ending = explain_ending(self._clues(launch, target, container, log, lost_at))
        if ending == known:
            return
        self._launches.end(launch, ending, now)
        target.launch = replace(launch, ending=ending)
        if known is None:
            self._count_ending(target.name, ending)

    def removed(self, target: Target, container: Container, now: datetime) -> Ending:
        """Docker removed it when it exited (--rm): what was heard is all there is."""
        assert target.launch is not None
        heard = self._launches.heard(container.id, target.launch.started_at)
        death = next((event for event in heard if event.action == "die"), None)
        target.container = replace(
            container,
            status=Status.DEAD,
            exit_code=death.exit_code if death else container.exit_code,
            finished_at=death.at if death else container.finished_at,
        )
        self.explain(target, container, target.container, "", None, now)
        assert target.launch.ending is not None
        return target.launch.ending

    def _clues(
        self,
        launch: Launch,
        target: Target,
        container: Container,
        log: str,
        lost_at: datetime | None,
    ) -> Clues:
        seen = target.seen_up_at
        return Clues(
            container=container,
            events=self._launches.heard(container.id, launch.started_at),
            own_stop=self._was_stopping(container),
            log=read_log(log) if log else None,
            engine_down_at=lost_at,
            watched=not target.container.auto_remove
            and seen is not None
            and (lost_at is None or lost_at < seen),
            restarted=container.status is Status.RESTARTING,
        )

    def _explained_anew(
        self, known: Ending, launch: Launch, was: Container, container: Container
    ) -> Ending:
        events = self._launches.heard(container.id, launch.started_at)
        if known.kind is EndedAs.UNWITNESSED and any(event.action == "die" for event in events):
            own_stop = self._was_stopping(container)
            found = explain_ending(
                Clues(container=container, events=events, own_stop=own_stop, log=None)
            )
            return found if found.kind is not EndedAs.UNWITNESSED else known
        waited = was.status is Status.RESTARTING
        stopped = container.manually_stopped or any(event.action == "stop" for event in events)
        if waited and container.status in _ENDED and known.is_failure and stopped:
            return stopped_afterwards(known, container)
        return known

    def _explain_missed(
        self,
        before: Launch,
        container: Container,
        by: By,
        lost_at: datetime | None,
        now: datetime,
    ) -> Launch:
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
            finished_at=death.at if death else container.finished_at,
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
                engine_down_at=lost_at,
                restarted=by is By.DOCKER,
            )
        )
        self._launches.end(before, ending, now)
        self._count_ending(before.target, ending)
        return replace(before, ending=ending)

    def _started_by(self, container: Container, before: Launch | None) -> By:
        for intent in self._journal.open():
            seen = (intent.wish.container_id, intent.wish.saw_started_at)
            if seen[0] == container.id and container.started_at != seen[1]:
                return By.SENTINEL
        same = before is not None and before.container_id == container.id
        if same and before is not None and container.restart_count > before.restart_count:
            return By.DOCKER
        return By.OTHER

    def _was_stopping(self, container: Container) -> bool:
        """Our own step stopped it, unless somebody had ordered that before the step began."""
        for intent in self._journal.open():
            stop = next((step for step in intent.steps if step.name == "stop"), None)
            if stop is None or stop.started_at is None:
                continue
            if (intent.wish.container_id, intent.wish.saw_started_at) != (
                container.id,
                container.started_at,
            ):
                continue
            heard = self._launches.heard(container.id, intent.wish.saw_started_at)
            orders = [event for event in heard if event.action in ("kill", "stop")]
            return not orders or orders[0].at >= stop.started_at
        return False

    def _count_starts(self, launch: Launch, before: Launch | None) -> None:
        """Docker may have started it several times between two looks."""
        if before is None:
            return
        same = before.container_id == launch.container_id
        between = launch.restart_count - before.restart_count - 1 if same else 0
        more = max(between, 0) if launch.by is By.DOCKER else 0
        labels = self._labels(launch.target, by=launch.by)
        self._counters.add(series.CONTAINER_RESTARTS, labels, 1.0 + more)
        if more:
            missed = self._labels(launch.target, code="other")
            self._counters.add(series.CONTAINER_EXITS, missed, float(more))

    def _count_ending(self, name: str, ending: Ending) -> None:
        code = str(ending.exit_code)
        known = code if code in series.EXIT_CODES else "other"
        self._counters.add(series.CONTAINER_EXITS, self._labels(name, code=known))
        if ending.kind is EndedAs.OOM and ending.cause.startswith("cuda_oom"):
            kind = "cuda_runtime" if ending.cause == "cuda_oom_runtime" else "cuda_startup"
            self._counters.add(series.OOM_EVENTS, self._labels(name, kind=kind))

    def _labels(self, target: str, **more: str) -> dict[str, str]:
        return {"target": target, "host": self._host(), **more}
