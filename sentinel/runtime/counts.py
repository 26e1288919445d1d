"""Counts what happens to each target: exits, restarts, telling log lines, memory that ran out.

Every counter stands at 0 before the first thing it counts, and goes on over restarts of the
daemon. Memory that ran out is counted once, however many witnesses tell of it: the first names
the kind that is counted, and the kernel, which knows, has the last word in what is written down.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from sentinel.core.diagnosis.privacy import without_prompts
from sentinel.core.diagnosis.reader import LogEvent
from sentinel.core.model import series_names as series
from sentinel.core.model.container import Container
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.policy.ending import oom_cause
from sentinel.store.logbook import Oom
from sentinel.store.memory import Memory

_LONGEST = 300  # characters kept of a line
_SAME = timedelta(seconds=10)  # what witnesses tell of within that is one event
_LAST = timedelta(minutes=10)  # memory that ran out that long before an end is what ended it
_KINDS = {
    "host_oom": "host",
    "cgroup_oom": "cgroup",
    "cuda_oom_runtime": "cuda_runtime",
    "cuda_oom_startup": "cuda_startup",
    "cuda_oom_sampler_warmup": "cuda_startup",
}


class Counts:
    def __init__(self, memory: Memory, host: Callable[[], str]) -> None:
        self._counters, self._logbook = memory.counters, memory.logbook
        self._launches, self._host = memory.launches, host

    def begin(self, name: str) -> None:
        for code in (*series.EXIT_CODES, "other"):
            self._counters.exist(series.CONTAINER_EXITS, self._labels(name, code=code))
        for kind in series.OOM_KINDS:
            self._counters.exist(series.OOM_EVENTS, self._labels(name, kind=kind))
        for by in series.RESTARTED_BY:
            self._counters.exist(series.CONTAINER_RESTARTS, self._labels(name, by=by))
        for event in (*series.TOLD_BY_LOGS, "other"):
            self._counters.exist(series.LOG_EVENTS, self._labels(name, event=event))

    def starts(self, launch: Launch, before: Launch | None) -> None:
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

    def ending(self, name: str, ending: Ending, now: datetime) -> None:
        code = str(ending.exit_code)
        known = code if code in series.EXIT_CODES else "other"
        self._counters.add(series.CONTAINER_EXITS, self._labels(name, code=known))
        if ending.kind is EndedAs.OOM and ending.cause in _KINDS:
            kind, at = _KINDS[ending.cause], ending.at or now
            self._oom(name, kind, ending.because, at, within=_LAST)

    def told(self, name: str, words: Mapping[str, int]) -> bool:
        """The telling lines of a log; False if there was none."""
        counted = Counter[str]()
        for word, times in words.items():
            if word in series.TOLD_BY_LOGS or word == "cause":
                counted["other" if word == "cause" else word] += times
        for event, times in counted.items():
            labels = self._labels(name, event=event)
            self._counters.add(series.LOG_EVENTS, labels, float(times))
        return bool(counted)

    def oom(self, name: str, kind: str, because: str, at: datetime, *, knows: bool = False) -> bool:
        """Memory ran out, says one witness; False if another has said so already."""
        return self._oom(name, kind, because, at, within=_SAME, knows=knows)

    def reported_oom(self, name: str, container: Container, at: datetime) -> bool:
        """The container engine said so, maybe of a process other than the first."""
        says = "the container engine reported it"
        return self.oom(name, _KINDS[oom_cause(container)], says, at)

    def logged_oom(
        self, name: str, container: Container, event: LogEvent, at: datetime, *, was_ready: bool
    ) -> bool:
        launch = self._launches.at(name, at)
        served = was_ready or (launch is not None and launch.ready_at is not None)
        kind = _KINDS.get(event.cause, "cuda_runtime" if served else "cuda_startup")
        if kind == "host":
            kind = _KINDS[oom_cause(container)]
        return self.oom(name, kind, without_prompts(event.text)[:_LONGEST], at)

    def _oom(
        self,
        name: str,
        kind: str,
        because: str,
        at: datetime,
        *,
        within: timedelta,
        knows: bool = False,
    ) -> bool:
        """What befell no launch that is known is not counted."""
        launch = self._launches.at(name, at)
        if launch is None:
            return False
        launched_at = launch.started_at
        for known in self._logbook.ooms(name, at - within):
            alike = known.kind.startswith("cuda") == kind.startswith("cuda")
            if alike and known.launched_at == launched_at and known.at - at <= within:
                if knows and known.kind != kind:
                    self._logbook.correct(known, kind, because)
                return False
        self._logbook.enter(
            Oom(target=name, launched_at=launched_at, kind=kind, at=at, because=because)
        )
        self._counters.add(series.OOM_EVENTS, self._labels(name, kind=kind))
        return True

    def _labels(self, target: str, **more: str) -> dict[str, str]:
        return {"target": target, "host": self._host(), **more}
