"""Asks a Prometheus elsewhere to evaluate rules: one batch at each slot, in a lane of its own.

An answer is judged once, as of the slot it was asked at, and only while that is recent. When
none comes, or one that is too old, the rules stand as they were and that is said: nothing
resolves because nobody could look. Must be told of each new plan (`use`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from sentinel.core.alerting.outside import (
    NOTHING,
    Answer,
    Answers,
    Division,
    FromOutside,
    Question,
    Reading,
    adopt,
    divide,
)
from sentinel.core.alerting.rule import RuleGroup
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.labels import value_of
from sentinel.ports import Clock, RuleSource
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.runtime.schedule import Slots
from sentinel.telemetry import events

_log = structlog.get_logger("sentinel.outside")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST = timedelta(seconds=30)
_GRACE = 1.0  # seconds; the source ends itself, this is for one that does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Whom to ask, and how targets are named there."""

    source: RuleSource
    url: str
    target_label: str


@dataclass(frozen=True, slots=True)
class _Batch:
    at: datetime
    questions: Mapping[str, Question]  # by rule id
    division: Division  # of the plan it was asked under


class OutsideRules:
    """Does nothing, and starts no thread, before `use` names a place."""

    def __init__(self, clock: Clock, inbox: Inbox, lane: Callable[[str], Lane] = Lane) -> None:
        self._clock, self._inbox, self._lane_of = clock, inbox, lane
        self._lane: Lane | None = None
        self._place: Place | None = None

    def use(self, place: Place | None, plan: Plan) -> None:
        """Ask there, about the rules of this plan, from now on. None: ask nobody."""
        self._place, self._host, self._interval = place, plan.host, plan.evaluation_interval
        self._division = divide(plan.rules)
        self._slots = [(group, Slots(self._every(group))) for group in self._division.asked]
        self._patience = {
            rule.id: 2 * self._every(group)
            for group in self._division.asked
            for rule in group.rules
        }
        self._readings: dict[str, Reading] = {}
        self._errors: dict[str, str] = {}
        self._proved_at: dict[str, datetime] = {}  # by rule: its last complete answer
        self._warnings: dict[str, str] = {}
        self._strangers: dict[str, frozenset[str]] = {}  # by rule: other hosts it answered for
        self._failing: tuple[datetime, str] | None = None

    def ask_if_due(self, now: datetime) -> None:
        if self._place is None or not self._slots:
            return
        lane = self._lane = self._lane or self._lane_of("outside-rules")
        monotonic = self._clock.monotonic()
        if lane.busy_since is not None:
            if lane.overdue(monotonic):
                self._fail("it has not answered in time", now)
            return
        at = _EPOCH + (now - _EPOCH) // self._interval * self._interval
        due = [group for group, slots in self._slots if slots.due(now)]
        if not due:
            return
        batch = _Batch(
            at,
            {
                rule.id: Question(rule.expr.text, at - group.query_offset)
                for group in due
                for rule in group.rules
            },
            self._division,
        )
        source, within = self._place.source, min(2 * self._interval, _LONGEST)
        questions = list(dict.fromkeys(batch.questions.values()))
        lane.submit(
            lambda: source.ask(questions, within=within),
            now=monotonic,
            deadline=within.total_seconds() + _GRACE,
            deliver=lambda answer: self._inbox.put(lambda: self._answered(batch, answer)),
        )

    def take(self, now: datetime) -> FromOutside:
        """What the evaluation of this turn is given. Each answer is given once."""
        if self._place is None:
            return NOTHING
        given: dict[str, Reading | str | None] = {}
        for rule in self._patience:
            reading = self._readings.pop(rule, None)
            recent = reading is not None and self._is_recent(reading.at, rule, now)
            given[rule] = reading if recent else self._errors.get(rule)
        unproven = {
            rule
            for rule, causes in self._division.causes.items()
            if not all(self._is_proved(cause, now) for cause in causes)
        }
        return FromOutside(given, unproven)

    def problems(self) -> list[str]:
        if self._place is None:
            return []
        found = list(self._division.kept)
        if self._failing is not None:
            since, because = self._failing
            found.append(
                f"Prometheus at {self._place.url} evaluates no rules since {since:%H:%M:%S} UTC: "
                f"{because}; they stand as they were"
            )
        found += [
            f"rule {rule}: its answer may lack series, so nothing resolves by it: {warning}"
            for rule, warning in self._warnings.items()
        ]
        strangers = sorted(frozenset().union(*self._strangers.values()))
        if strangers:
            found.append(
                f"what Prometheus says of other hosts is left out ({', '.join(strangers[:3])}); "
                "global.external_labels.host is what this one is called there"
            )
        return found

    def _answered(self, batch: _Batch, came: LaneAnswer[Answers]) -> None:
        if batch.division is not self._division:
            return  # asked under another plan
        now = self._clock.now()
        if came.value is None:
            error = came.error
            says = error.message if isinstance(error, SentinelError) else repr(error)
            self._fail(says, now)
            return
        for rule, question in batch.questions.items():
            outcome = came.value.outcomes.get(question)
            if isinstance(outcome, SentinelError):
                self._errors[rule] = outcome.message
            elif outcome is not None:
                self._read(rule, outcome, batch.at)
        if came.value.broken is not None:
            broken = came.value.broken
            hint = f" ({broken.hint.rstrip('.')})" if broken.hint else ""
            self._fail(broken.message + hint, now)
        elif not all(self._is_recent(batch.at, rule, now) for rule in batch.questions):
            self._fail("its answers come too late", now)
        else:
            self._failing = None

    def _read(self, rule: str, answer: Answer, at: datetime) -> None:
        assert self._place is not None
        label, host = self._place.target_label, self._host
        adopted = [adopt(sample, target_label=label, host=host) for sample in answer.vector]
        vector = [sample for sample in adopted if sample is not None]
        self._readings[rule] = Reading(vector, at, answer.is_partial)
        self._errors.pop(rule, None)
        self._strangers[rule] = frozenset(
            value_of(was.labels, "host")
            for was, sample in zip(answer.vector, adopted, strict=True)
            if sample is None
        )
        self._warnings.pop(rule, None)
        if answer.is_partial:
            self._warnings[rule] = answer.warnings[0]
        else:
            self._proved_at[rule] = at

    def _fail(self, because: str, now: datetime) -> None:
        """Say so once. Since when it has been failing stays."""
        since, said = self._failing or (now, None)
        if said != because:
            _log.warning(events.PROBLEM_SEEN, because=f"Prometheus evaluates no rules: {because}")
        self._failing = since, because

    def _every(self, group: RuleGroup) -> timedelta:
        return max(group.interval or self._interval, self._interval)

    def _is_recent(self, at: datetime, rule: str, now: datetime) -> bool:
        return now - at <= self._patience[rule]

    def _is_proved(self, rule: str, now: datetime) -> bool:
        at = self._proved_at.get(rule)
        return at is not None and self._is_recent(at, rule, now)
