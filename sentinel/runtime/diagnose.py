"""Names the cause behind each open incident of a target, from all that is at hand by then.

Anew only when something has changed, or after a while: two looks at the metrics some time apart
say more than one. What is found replaces what was said before only if it outweighs it.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sentinel.core.diagnosis.diagnose import Diagnosis, Material
from sentinel.core.diagnosis.endings import Inference
from sentinel.core.diagnosis.traces import Launch as LogLaunch
from sentinel.core.diagnosis.weigh import of_ended, of_running
from sentinel.core.model.launch import Launch
from sentinel.core.model.target import State
from sentinel.runtime.casebook import Case, Casebook
from sentinel.runtime.target import Target
from sentinel.store.memory import Memory

_LOOKS_APART = timedelta(seconds=30)
_FRESH = timedelta(minutes=5)  # a look older than that is compared with nothing
_AGAIN = 30  # seconds after which an incident that goes on is thought about again
_SURE = 0.85
_SEEN, _KNOWN = 0.9, 0.97
_ENDS_WITHIN = timedelta(minutes=1)  # after a process of it was killed
_OOM_KINDS = {"host": "host_oom", "cgroup": "cgroup_oom"}
_BY_ALERT = {"VllmPreemptionStorm": "preemption_storm"}
_WORKS = (State.IDLE, State.SERVING, State.SATURATED, State.SLEEPING)  # it was asked, and moves
_IN_THE_WAY = frozenset({"none", "stop"})  # kinds that explain no alert


@dataclass(slots=True)
class _Looks:
    """Two earlier scrapes, packed."""

    earlier: tuple[datetime, bytes] | None = None
    last: tuple[datetime, bytes] | None = None


@dataclass(slots=True)
class Diagnoser:
    casebook: Casebook
    memory: Memory
    told: Callable[[Launch], LogLaunch | None]
    _looks: dict[str, _Looks] = field(default_factory=dict)
    _thought: dict[int, object] = field(default_factory=dict)  # by incident: of what

    def diagnose(self, targets: Mapping[str, Target], now: datetime) -> None:
        for name in self._looks.keys() - targets.keys():
            del self._looks[name]
        for number in self._thought.keys() - self.casebook.cases.keys():
            del self._thought[number]
        for target in targets.values():
            self._look(target)
            case = self.casebook.case_of_target(target.name)
            if case is not None:
                self._think(case, target, now)

    def _think(self, case: Case, target: Target, now: datetime) -> None:
        launch = target.at_issue
        ending = launch.ending if launch else None
        alerts = tuple(sorted(alert.alertname for alert in case.firing))
        since = launch.started_at if launch else None
        about = (target.key, since, ending, target.standing.state, alerts)
        slot = (about, int(now.timestamp()) // _AGAIN)
        if self._thought.get(case.incident.number) == slot:
            return
        self._thought[case.incident.number] = slot
        found = self._found(case, target, launch)
        if found is not None:
            self.casebook.diagnose(case, found, since, now)

    def _found(self, case: Case, target: Target, launch: Launch | None) -> Diagnosis | None:
        told = self.told(launch) if launch else None
        if launch is not None and (ending := launch.ending) is not None:
            if not ending.is_failure:
                return None
            is_it = launch is target.launch
            given = Material(
                launch=told,
                exit_code=ending.exit_code,
                container=target.container if is_it else None,
            )
            killed = list(self._ooms(target, launch, ending.at))
            return of_ended(given, ending, target.container, killed)
        metrics, apart = self._compared(target)
        given = Material(launch=told, container=target.container, metrics=metrics, apart=apart)
        known = list(self._known(case, target))
        found = of_running(given, known, target.container)
        if found.cause == "engine_hung" and target.standing.state in _WORKS:
            found = of_running(replace(given, launch=None, metrics=()), known, target.container)
        return None if found.known.kind in _IN_THE_WAY else found

    def _known(self, case: Case, target: Target) -> Iterator[Inference]:
        """What the daemon saw itself of a server that is up."""
        standing = target.standing
        if standing.state is State.HUNG:
            yield Inference("engine_hung", 0.9, "metrics", standing.because)
        if standing.state is State.SATURATED:
            yield Inference("saturated", 0.8, "metrics", standing.because)
        for alert in case.firing:
            if cause := _BY_ALERT.get(alert.alertname):
                says = alert.annotations.get("summary") or alert.alertname
                yield Inference(cause, _SURE, "metrics", says)
        if target.launch is not None:
            yield from self._ooms(target, target.launch, None)

    def _ooms(
        self, target: Target, launch: Launch, ended_at: datetime | None
    ) -> Iterator[Inference]:
        """Memory of host or container that ran out in a launch; if it ended, shortly before."""
        for oom in self.memory.logbook.ooms(target.name, launch.started_at):
            late = ended_at is not None and ended_at - oom.at > _ENDS_WITHIN
            if oom.kind in _OOM_KINDS and oom.launched_at == launch.started_at and not late:
                says = f"out of memory at {oom.at:%H:%M:%S} UTC: {oom.because}"
                sure = _SEEN if ended_at is None else _KNOWN
                yield Inference(_OOM_KINDS[oom.kind], sure, "inspect", says)

    # looks at the metrics

    def _look(self, target: Target) -> None:
        seen = target.scrape
        if seen is None or not seen.ok:
            return
        looks = self._looks.setdefault(target.name, _Looks())
        if looks.last is None or not timedelta(0) <= seen.at - looks.last[0] < _LOOKS_APART:
            looks.earlier, looks.last = looks.last, (seen.at, zlib.compress(target.last_body, 1))

    def _compared(self, target: Target) -> tuple[list[str], float | None]:
        """An earlier look and the last one, and the seconds between them."""
        looks, seen = self._looks.get(target.name), target.scrape
        if looks is None or looks.earlier is None or seen is None or not seen.ok:
            return [], None
        at, packed = looks.earlier
        began = target.container.started_at
        if seen.at - at > _FRESH or seen.at <= at or (began is not None and at < began):
            return [], None
        before = zlib.decompress(packed).decode("utf-8", "replace")
        after = target.last_body.decode("utf-8", "replace")
        return [before, after], (seen.at - at).total_seconds()
