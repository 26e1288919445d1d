"""The sentence: look, remember, judge, decide, write down, act, look again, tell.

One thread says it. Everything that can wait arrives through the inbox; nothing in here ever
waits for the outside. What a turn changes is committed as one, and only then done: the daemon
may be killed between any two words.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Protocol

import structlog

from sentinel.api.snapshot import Snapshot
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.model.moment import millis
from sentinel.runtime.act import Settled
from sentinel.runtime.casebook import Case
from sentinel.runtime.channels import Book
from sentinel.runtime.deliver import Delivery
from sentinel.runtime.deliver import Settled as Sent
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.parts import Parts
from sentinel.runtime.plan import Plan
from sentinel.runtime.problems import problems_of
from sentinel.runtime.resume import Past, evaluator_of
from sentinel.runtime.rhythm import Rhythm
from sentinel.runtime.upkeep import Upkeep
from sentinel.telemetry import events

_log = structlog.get_logger("sentinel.loop")
_LONGEST_WAIT = 1.0  # seconds; so that a clock that jumps is noticed


class Shown(Protocol):
    """Where the picture of each turn goes, and the sign that the loop is alive."""

    def show(self, snapshot: Snapshot, samples: Sequence[WrittenSample], now: datetime) -> None: ...

    def beat(self, now: datetime) -> None: ...

    def problems(self) -> Sequence[str]:
        """What keeps it from being shown, in sentences."""
        ...


class Loop:
    def __init__(self, parts: Parts, plan: Plan, shown: Shown) -> None:
        self.parts, self.plan = parts, plan
        self._shown = shown
        self._rhythm = Rhythm(plan)
        self._stopping = False
        self._failing: dict[str, str] = {}
        self._broken = ""  # how the last turn failed
        self._unproved: frozenset[str] = frozenset()
        self._upkeep = Upkeep(parts.memory, parts.clock, parts.tally)
        self._alerts: tuple[ActiveAlert, ...] = ()

    def run(self) -> None:
        """Say the sentence until told to stop."""
        while not self._stopping:
            self.step(self._wait_for(self.parts.clock.now()))

    def stop(self) -> None:
        self._stopping = True

    def step(self, wait: float) -> None:
        """Take what has arrived within `wait` seconds, then do all that is due."""
        arrived = self.parts.inbox.wait(wait)
        for call, _ in arrived:
            self._guarded("inbox", call)
        now = self.parts.clock.now()
        if self.parts.actor.has_touched():
            self.parts.watch.look_again()
        if self.parts.watch.has_news():
            self._rhythm.wake()
        self._rhythm.wake_for([urgent for _, urgent in arrived if urgent is not None], now)
        self._guarded("look", lambda: self.parts.watch.look_if_due(now))
        if self._rhythm.is_time_to_scrape(now):
            targets = self.parts.watch.targets
            self._guarded("scrape", lambda: self.parts.scraper.ask_all(targets, now))
            self._guarded("sockets", lambda: self.parts.connections.look_if_due(targets, now))
            self._guarded("gpus", lambda: self.parts.gpus.ask_if_due(targets, now))
            self._guarded("host", lambda: self.parts.hostwatch.ask_if_due(targets, now))
        self._guarded("rules elsewhere", lambda: self.parts.elsewhere.ask_if_due(now))
        awaits = any(target.is_awaited for target in self.parts.watch.targets.values())
        if self._rhythm.is_time_for_a_turn(now, awaits=awaits):
            self._turn_or_recover(now)
            took = (self.parts.clock.now() - now).total_seconds()
            self.parts.tally.turn(took, self._rhythm.missed)
        self._guarded("notices", lambda: self._flush_if_due(now))
        self._guarded("upkeep", lambda: self._upkeep.keep_up(now, self.plan.history_for))
        self._shown.beat(now)

    def use(self, plan: Plan, book: Book) -> None:
        """Go on under another plan: after a reload, between two turns."""
        parts, now = self.parts, self.parts.clock.now()
        self.plan = plan
        parts.watch.plan = parts.scraper.plan = parts.decider.plan = plan
        parts.gpus.plan = parts.hostwatch.plan = plan
        parts.casebook.plan = parts.announcer.plan = plan
        with parts.memory.together():
            parts.dispatch.use(plan, book.addresses, now)
            parts.dispatch.write()
        parts.announcer.use(book.addresses)
        parts.history.audit.use(plan, book.channels)
        parts.deliver.use(book.channels, fallback=book.fallback)
        self._rhythm.use(plan)
        parts.watch.look_again()

    @property
    def failing(self) -> Mapping[str, str]:
        """The rules that could not be evaluated last, by id, and why."""
        return self._failing

    def problems(self) -> list[str]:
        """What is wrong with Sentinel itself or with what it needs, in sentences."""
        found = problems_of(self.parts, self._failing, self._broken)
        return [*self.plan.problems, *found, *self._shown.problems()]

    def report(self, deliveries: list[Delivery], now: datetime) -> None:
        """Log, record and count what became of messages."""
        self.parts.tally.messages(deliveries)
        for delivery in deliveries:
            self.parts.history.write(
                delivery.event,
                delivery.because,
                at=now,
                incident=delivery.incident,
                channel=delivery.channel,
                message=delivery.number,
            )

    def delivered(self, done: Sent) -> None:
        """A send has ended: write down what came of it."""
        now = self.parts.clock.now()
        with self.parts.memory.together():
            self.report(self.parts.deliver.settled(done.number, done.error, now), now)

    @property
    def _has_seen_nothing(self) -> bool:
        """Before the first look nothing is judged, and nothing that stood is said to be over."""
        return not self.parts.watch.reconciled and self.parts.watch.lost_at is None

    def _turn(self, now: datetime) -> None:
        parts = self.parts
        if self._has_seen_nothing:
            return
        with parts.memory.together():
            self._judge_and_decide(now)
        parts.actor.go()
        with parts.memory.together():
            self.report(parts.deliver.pump(now), now)
        parts.store.trim(millis(now))
        if parts.series is not None:
            parts.series.save_if_due(parts.store, now)
        if parts.watch.finder is not None:
            parts.watch.finder.ask_if_due(now)
        targets = parts.watch.targets
        for name, target in targets.items():
            proving = parts.actor.proving(target)
            parts.prober.ask_if_needed(target, proving, now, unproved=name in self._unproved)
        parts.follower.follow(targets, now)
        self._show(now)

    def _show(self, now: datetime) -> None:
        parts = self.parts
        picture = parts.painter.paint(
            self.plan, parts.watch.targets, self._alerts, self.problems(), now
        )
        sources = (parts.mirror, parts.judge, parts.sight, parts.gpus, parts.hostwatch)
        published = chain.from_iterable(source.published for source in sources)
        self._shown.show(picture, list(published), now)

    def _flush_if_due(self, now: datetime) -> None:
        """What has its time between two turns: a group that waited, a message to repeat."""
        parts = self.parts
        due_at = parts.dispatch.due_at()
        if due_at is None or due_at > now or self._has_seen_nothing:
            return
        with parts.memory.together():
            parts.announcer.tell(parts.dispatch.flush(now), (), (), parts.watch.targets, now)
        with parts.memory.together():
            self.report(parts.deliver.pump(now), now)

    def _turn_or_recover(self, now: datetime) -> None:
        """What a turn that failed had decided was not written down: it is decided anew."""
        failed = self._guarded("turn", lambda: self._turn(now))
        if failed and not self._broken:
            self._rhythm.wake()  # once more at once; then at the next slot
        self._broken = failed
        if not failed:
            return
        parts = self.parts
        parts.actor.forget_prepared()
        parts.decider.resolutions.forget_told()
        self._guarded("recovery", lambda: self._resume(now))
        self._guarded("picture", lambda: self._show(now))

    def _resume(self, now: datetime) -> None:
        parts = self.parts
        parts.casebook.read(now)
        parts.dispatch.read(now)
        past = Past(watched_until=now, fed_since=parts.fed_since, has_looked=True)
        parts.evaluator = evaluator_of(self.plan, parts.store, parts.memory, now, past)

    def _judge_and_decide(self, now: datetime) -> None:
        parts, plan, targets = self.parts, self.plan, self.parts.watch.targets
        parts.follower.take(targets, now)
        parts.vitals.read(targets, now)
        parts.sight.look(targets, plan, now)
        parts.judge.judge(parts.watch, plan, now)
        parts.mirror.look(plan, now)
        due = self._rhythm.groups_due(parts.evaluator.groups, now)
        evaluation = parts.evaluator.evaluate(now, due, outside=parts.elsewhere.take(now))
        self._alerts = evaluation.active
        self._note_failures({f.rule.id: f.because for f in evaluation.failures})
        transitions = [*evaluation.transitions, *parts.dispatch.lapsed(now)]
        changes = parts.casebook.take(transitions, targets, now)
        parts.casebook.refresh(evaluation.active)
        parts.dispatch.follow(evaluation.active, now)
        parts.diagnoser.diagnose(targets, now)
        lost = parts.watch.lost_at is not None
        settled = parts.actor.advance(plan, targets, now, engine_lost=lost)
        decisions = parts.decider.decide(targets, now)
        parts.maintenance.look(targets, now)
        parts.lookback.look_if_due(now)
        settled += parts.actor.advance(plan, targets, now, engine_lost=lost)  # the new ones
        self._unproved = parts.decider.unproved(targets)
        busy = self._unproved | {i.wish.target for i in parts.memory.journal.open()}
        told = [(s, case) for s in settled if (case := self._case_of(s)) is not None]
        parts.tally.actions(settled)
        parts.tally.guards(targets.values())
        parts.tally.flaps(changes.flaps)
        parts.casebook.close_quiet(busy, now, changes)
        dues = parts.dispatch.flush(now, changes.resolved)
        parts.announcer.tell(dues, decisions, told, targets, now)

    def _case_of(self, settled: Settled) -> Case | None:
        number = settled.intent.wish.incident
        return self.parts.casebook.cases.get(number) if number is not None else None

    def _note_failures(self, failing: dict[str, str]) -> None:
        self.parts.tally.rules(failing)
        for rule, because in failing.items():
            if self._failing.get(rule) != because:
                _log.warning(events.RULE_FAILED, rule=rule, because=because)
        self._failing = failing

    def _wait_for(self, now: datetime) -> float:
        moments = [*self._rhythm.moments(), self.parts.watch.due_at]
        moments += [self.parts.deliver.wake_at(now), self.parts.dispatch.due_at()]
        soonest = min((at for at in moments if at is not None), default=now)
        return min(max((soonest - now).total_seconds(), 0.0), _LONGEST_WAIT)

    def _guarded(self, where: str, call: Callable[[], None]) -> str:
        """One of the places that catch everything: what breaks here is one turn, not all.

        Says what broke. A state file that fails is left, and all goes on without it.
        """
        try:
            call()
        except sqlite3.Error as error:
            self._upkeep.state_file_failed(error)
            return str(error)
        except Exception as error:  # noqa: BLE001 - becomes an event
            _log.exception(events.TURN_FAILED, where=where, because=repr(error))
            return repr(error)
        return ""
