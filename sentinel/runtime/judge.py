"""Brings the state of each target up to date, and publishes it as series.

Says so once when a state changes; a reason that merely counts on is not a change.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from sentinel.core.model import series_names as series
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.core.model.source import Frame
from sentinel.core.model.target import State, Traffic
from sentinel.core.policy.state import is_crashed, judge
from sentinel.core.policy.witness import Witnesses
from sentinel.core.recreate.arguments import Found, max_num_seqs_of
from sentinel.core.recreate.commandline import CommandLine
from sentinel.runtime.act import Actor
from sentinel.runtime.history import History
from sentinel.runtime.plan import Plan
from sentinel.runtime.target import Target
from sentinel.runtime.watch import Watch
from sentinel.store.memory import Memory
from sentinel.telemetry import events

_UP = (State.IDLE, State.SERVING, State.SATURATED, State.SLEEPING)
_REMEMBERED = timedelta(hours=6)
_TOO_OFTEN = 2  # remedies that failed within that time
_STARTS_LEARNED = 10
_NEVER_SLOW = timedelta(
    minutes=1
)  # a start within it is told to nobody, however short those before were
_BEGINNING = (State.STARTING, State.RESTARTING)
_PRODUCER = "kv_producer"  # of disaggregated prefill: others write the tokens
WrittenSample = tuple[str, Mapping[str, str], float]


class Judge:
    def __init__(self, memory: Memory, store: Store, history: History, actor: Actor) -> None:
        self._memory, self._store = memory, store
        self._history, self._actor = history, actor
        self._frames: dict[str, tuple[tuple[object, ...], Frame, object]] = {}
        self._in_vain: frozenset[str] = frozenset()
        self._starts: dict[str, tuple[object, timedelta | None]] = {}
        self._limits: dict[str, tuple[tuple[str, ...], int | None]] = {}
        self.published: list[WrittenSample] = []  # what this turn said of all targets

    def judge(self, watch: Watch, plan: Plan, now: datetime) -> None:
        self._in_vain = self._memory.journal.in_vain(now - _REMEMBERED, at_least=_TOO_OFTEN)
        for target in watch.targets.values():
            self._note_ready(target, now)
            self._judge_one(target, watch, plan, now)
        self._publish(watch, plan, now)

    def _note_ready(self, target: Target, now: datetime) -> None:
        """Its first good answers, of both kinds, make a launch ready: once, and on disk."""
        launch = target.launch
        if launch is None or launch.ready_at is not None or launch.ending is not None:
            return
        if _is_ready(target):
            self._memory.launches.ready(launch, target.model, now)
            target.launch = replace(launch, ready_at=now)

    def _judge_one(self, target: Target, watch: Watch, plan: Plan, now: datetime) -> None:
        seen = Witnesses(
            container=target.container,
            launch=target.launch,
            previous_ending=target.previous_ending,
            own_step=self._actor.step_of(target),
            told_to_stop_at=target.told_to_stop_at,
            engine_lost_at=watch.lost_at,
            engine_back_at=watch.back_at,
            scrape=target.scrape,
            scrape_ok_at=target.scrape_ok_at,
            health=target.health,
            dead_since=target.dead_since,
            load=target.load,
            engines=target.engines,
            probe=target.probe,
            connections=target.connections,
            power=target.power,
            loading=target.loading,
            start_expected=self._learned_start(target),
            patience=plan.target(target.name).patience,
        )
        target.seen = seen
        before, standing = target.standing, judge(seen, now)
        target.standing, target.crashed = (
            standing,
            is_crashed(seen, standing, before=target.crashed),
        )
        target.start_failed = _failed_to_start(target)
        if not target.crashed and standing.state is not State.HUNG:
            target.failing_since = None
        elif target.failing_since is None:
            target.failing_since = _failed_at(target, now)
        if standing.state is before.state:
            return
        target.since = now
        self._history.write(
            events.TARGET_STATE_CHANGED,
            standing.because,
            at=now,
            target=target.name,
            incident=self._incident_of(target.name),
            state=standing.state,
            was=before.state,
        )

    def _incident_of(self, name: str) -> int | None:
        for incident in self._memory.incidents.open():
            if incident.subject.kind == "target" and incident.subject.name == name:
                return incident.number
        return None

    def _publish(self, watch: Watch, plan: Plan, now: datetime) -> None:
        at = millis(now)
        for name in self._frames.keys() - watch.targets.keys():
            self._store.drop(f"target/{name}")
            del self._frames[name]
        self.published = []
        for target in watch.targets.values():
            frame, values = self._frame(target, plan), self._values(target, plan, now)
            self._store.source(f"target/{target.name}", {}).put_frame(frame, values, at)
            self.published += [
                (name, labels, value) for (name, labels), value in zip(frame, values, strict=True)
            ]

    def _frame(self, target: Target, plan: Plan) -> Frame:
        """Names and labels, built anew only when they change."""
        counters = self._memory.counters.frame(target.name)
        place = target.endpoint.instance if target.endpoint and target.scrape else None
        pool, starts = plan.pool_of(target.name), _is_beginning(target)
        shape = (starts, _has_tried(target), bool(target.engines), self._max_num_seqs(target))
        key = (plan.host, place, id(counters), pool, shape)
        known = self._frames.get(target.name)
        if known is not None and known[0] == key:
            return known[1]
        own = {"target": target.name, "host": plan.host}
        frame: list[tuple[str, Mapping[str, str]]] = [
            (series.TARGET_STATE, {**own, "state": state}) for state in State
        ]
        frame += [(series.TARGET_TRAFFIC, {**own, "state": each}) for each in Traffic]
        frame += [(series.TARGET_UP, own), (series.TARGET_CRASHED, own)]
        frame += [(series.STARTUP_FAILED, own), (series.REMEDY_INEFFECTIVE, own)]
        if starts:
            frame += [(series.STARTING_SECONDS, own), (series.START_EXPECTED, own)]
        if pool is not None:
            frame += [(series.POOL_INFO, {**own, "pool": pool})]
        if place is not None:
            there = {**own, "instance": place, "job": "vllm"}
            frame += [("up", there), ("scrape_duration_seconds", there)]
        if _has_tried(target):
            frame += [(series.PROBE_SUCCESS, own), (series.PROBE_DURATION, own)]
        if target.engines:
            frame += [(series.DECODE_STALLED, own)]
        if self._max_num_seqs(target) is not None:
            frame += [(series.MAX_NUM_SEQS, own)]
        frame += counters
        self._frames[target.name] = (key, frame, counters)  # held, so that its id stays its own
        return frame

    def _learned_start(self, target: Target) -> timedelta | None:
        """Twice the longest of its recent starts, a minute at least; None until one is known."""
        known = self._starts.get(target.name)
        if known is None or known[0] != target.key:
            took = self._memory.launches.start_seconds(target.name, _STARTS_LEARNED)
            learned = max(timedelta(seconds=2 * max(took)), _NEVER_SLOW) if took else None
            known = self._starts[target.name] = target.key, learned
        return known[1]

    def _max_num_seqs(self, target: Target) -> int | None:
        """As its arguments say it; None where they do not, or not for certain."""
        argv = target.container.argv
        known = self._limits.get(target.name)
        if known is None or known[0] != argv:
            found = max_num_seqs_of(CommandLine(command=argv))
            limit = found.value if isinstance(found, Found) else None
            known = self._limits[target.name] = argv, limit
        return known[1]

    def _values(self, target: Target, plan: Plan, now: datetime) -> list[float]:
        """In the order of `_frame`."""
        state = target.standing.state
        values = [float(each is state) for each in State]
        values += [float(each is Traffic.UNMANAGED) for each in Traffic]
        values += [float(state in _UP), float(target.crashed)]
        values += [float(target.start_failed), float(target.name in self._in_vain)]
        if _is_beginning(target):
            up_since = target.container.started_at if target.container.is_up else None
            began = up_since or target.since  # the launch that is over is not its start
            deadline = plan.target(target.name).patience.startup_deadline
            expected = self._learned_start(target) or deadline
            values += [(now - began).total_seconds(), expected.total_seconds()]
        if plan.pool_of(target.name) is not None:
            values.append(1.0)
        if target.endpoint is not None and target.scrape is not None:
            values += [float(target.scrape.ok), target.scrape.took]
        if target.probe is not None and _has_tried(target):
            values += [float(target.probe.ok), target.probe.took]
        if target.engines:
            values.append(float(_is_decode_stalled(target)))
        if (limit := self._max_num_seqs(target)) is not None:
            values.append(float(limit))
        return [*values, *self._memory.counters.values(target.name)]


def _is_ready(target: Target) -> bool:
    """Both of its ways to answer are good, or one is good and the other is not offered at all."""
    answers = [one for one in (target.scrape, target.health) if one is not None]
    well = [one.ok for one in answers]
    return len(answers) == 2 and any(well) and all(one.ok or one.is_not_offered for one in answers)


def _has_tried(target: Target) -> bool:
    """One token has been asked for, and what came says something of the engine."""
    probe = target.probe
    return probe is not None and not (probe.unauthorised or probe.unsupported)


def _is_decode_stalled(target: Target) -> bool:
    prefills_only = _PRODUCER in "".join(target.container.argv)
    return not prefills_only and any(p.is_decode_stalled for p in target.engines.values())


def _is_beginning(target: Target) -> bool:
    """Starting, and asked: one that was up long before us has only not been asked yet."""
    return target.standing.state in _BEGINNING and target.scrape is not None


def _failed_to_start(target: Target) -> bool:
    """Its last start ended in failure before it was ready; one under way proves nothing yet."""
    launch = target.launch
    if target.start_failed and target.standing.state is State.RESTARTING:
        return True  # perhaps with another container
    if launch is None or launch.ready_at is not None:
        return False
    if launch.ending is not None:
        return launch.ending.is_failure
    ending = target.previous_ending
    return ending is not None and ending.is_failure and not target.previous_was_ready


def _failed_at(target: Target, now: datetime) -> datetime:
    """When it ended, if that is why it fails: the same after a restart of the daemon."""
    ending = (target.launch.ending if target.launch else None) or target.previous_ending
    if target.standing.state is State.HUNG or ending is None or ending.at is None:
        return now
    return ending.at if ending.is_failure else now
