"""Enters each start of a target in the ledger of launches, and explains each end of one.

An ending is explained from everything heard and read by then, and counted once. It is explained
anew only if nobody knew and an event has come since, or if a person stopped what Docker was
about to start again. Memory that ran out is counted once, however many witnesses tell of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sentinel.core.diagnosis.log import LogReading, reading_of
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.diagnosis.reader import LogReader
from sentinel.core.diagnosis.traces import Launch as LogLaunch
from sentinel.core.model.container import Container, EngineEvent, Status
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.policy.ending import Clues, explain_ending, stopped_afterwards
from sentinel.core.recreate.inspected import TX
from sentinel.runtime.counts import Counts
from sentinel.runtime.recreation import is_stopped_by, tx_of
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

_ENDED = (Status.EXITED, Status.DEAD)


def _log_unread(_container_id: str, _started_at: datetime) -> LogLaunch | None:
    return None


def _says_how(log: LogLaunch | None) -> bool:
    reading = reading_of(log) if log is not None else None
    return reading is not None and (reading.died or reading.told_to_stop)


class Ledger:
    def __init__(self, memory: Memory, host: Callable[[], str]) -> None:
        self._launches, self._journal = memory.launches, memory.journal
        self.counts = Counts(memory, host)
        self._ends: dict[str, tuple[datetime, LogLaunch]] = {}  # by container: what its end told
        self.followed: Callable[[str, datetime], LogLaunch | None] = _log_unread
        self.patterns: Callable[[], Sequence[Pattern]] = tuple  # of the operator's for logs
        self.driver: Callable[[], str] = str  # of the GPUs, as it is now; empty: not known

    def hear(self, event: EngineEvent) -> bool:
        """Keep it; False if it was known already."""
        return self._launches.hear(event)

    def count_oom(self, name: str, kind: str, because: str, at: datetime) -> bool:
        """Memory ran out, says one witness; False if another has said so already."""
        return self.counts.oom(name, kind, because, at)

    def learn(self, launch: Launch, facts: Mapping[str, float | str]) -> Launch:
        """Keep what the log of a launch told of it."""
        known = {**launch.facts, **facts}
        driver = launch.driver or self.driver()
        if (known, driver) == (launch.facts, launch.driver):
            return launch
        self._launches.learn(launch, known, driver)
        return replace(launch, facts=known, driver=driver)

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
            self.counts.starts(known, before)
        target.launch = known
        target.previous = before
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
            self.counts.ending(target.name, ending, now)

    def forget(self, container_id: str) -> None:
        """It is gone."""
        self._ends.pop(container_id, None)

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
            log=self._reading(launch, log),
            engine_down_at=lost_at,
            was_ready=launch.ready_at is not None,
            watched=not target.container.auto_remove
            and seen is not None
            and (lost_at is None or lost_at < seen),
            restarted=container.status is Status.RESTARTING,
        )

    def told(self, launch: Launch) -> LogLaunch | None:
        """What its log told: all of it, if that says how it ended; else its end."""
        whole = self.followed(launch.container_id, launch.started_at)
        started_at, end = self._ends.get(launch.container_id, (None, None))
        found = whole
        if end is not None and started_at == launch.started_at and not _says_how(whole):
            found = end
        if found is not None and launch.ready_at is not None:
            found.note("served", 0, {})  # also where the log begins later
        return found

    def _reading(self, launch: Launch, tail: str) -> LogReading | None:
        if tail:
            reader = LogReader(self.patterns())
            reader.feed(tail)
            reader.close()
            self._ends[launch.container_id] = (launch.started_at, reader.launch)
        told = self.told(launch)
        return reading_of(told) if told is not None else None

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
        if known.kind is EndedAs.ENGINE_SHUTDOWN and container.manually_stopped:
            # the order was heard of before Docker's record of who gave it could be read
            found = explain_ending(
                Clues(container=container, events=events, own_stop=False, log=None)
            )
            return found if found.kind is EndedAs.PERSON else known
        waited = was.status is Status.RESTARTING
        stopped = container.manually_stopped or any(event.action == "stop" for event in events)
        ended = waited and container.status in _ENDED and known.is_failure
        if ended and stopped and not self._was_stopping(container):
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
                log=self._reading(before, ""),
                engine_down_at=lost_at,
                restarted=by is By.DOCKER,
                was_ready=before.ready_at is not None,
            )
        )
        self._launches.end(before, ending, now)
        self.counts.ending(before.target, ending, now)
        return replace(before, ending=ending)

    def _started_by(self, container: Container, before: Launch | None) -> By:
        for intent in self._journal.open():
            seen = (intent.wish.container_id, intent.wish.saw_started_at)
            if seen[0] == container.id and container.started_at != seen[1]:
                return By.SENTINEL
            if container.labels.get(TX) == tx_of(intent):
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
            if not is_stopped_by(intent, container, self._journal.recreation(intent.number)):
                continue
            heard = self._launches.heard(container.id, intent.wish.saw_started_at)
            orders = [event for event in heard if event.action in ("kill", "stop")]
            return not orders or orders[0].at >= stop.started_at
        return False
