"""Asking a Prometheus elsewhere, slot by slot, with a source that does as a test says."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from sentinel.core.alerting.evaluate import Evaluation, Evaluator
from sentinel.core.alerting.outside import Answer, Answers, Question
from sentinel.core.alerting.rule import AlertRule, RecordingRule, Rule, RuleGroup
from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.labels import labels_of
from sentinel.core.model.series import Store
from sentinel.core.promql import Sample, compile_expression
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import LaneAnswer
from sentinel.runtime.outside import OutsideRules, Place
from sentinel.runtime.plan import Plan
from tests.fakes import FakeClock

URL = "http://127.0.0.1:9090"
TWO_SLOTS = 10.0  # seconds


class FakeSource:
    """Answers every expression with `vector`, unless a test has other ideas."""

    def __init__(self) -> None:
        self.vector: list[dict[str, str]] = [{"container": "t1-a"}]
        self.warnings: tuple[str, ...] = ()
        self.errors: dict[str, SentinelError] = {}
        self.broken: SentinelError | None = None
        self.asked: list[Sequence[Question]] = []

    def ask(self, questions: Sequence[Question], *, within: timedelta) -> Answers:
        self.asked.append(questions)
        if self.broken is not None:
            return Answers({}, self.broken)
        vector = tuple(Sample(labels_of(labels), 1.0) for labels in self.vector)
        answer = Answer(vector, self.warnings)
        return Answers({q: self.errors.get(q.expression, answer) for q in questions})


class SlowLane:
    """Gives an answer back when a test says so."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._end: Callable[[], None] | None = None
        self._deadline = 0.0
        self.busy_since: float | None = None
        self.takes = 0.0  # seconds; not before `end` if there is no end to it

    def submit(
        self, call: Callable[[], Any], *, now: float, deadline: float, deliver: Callable[..., Any]
    ) -> int:
        assert self.busy_since is None
        self.busy_since, self._deadline = now, deadline

        def end() -> None:
            self.busy_since, self._end = None, None
            deliver(LaneAnswer(lane="slow", token=1, value=call()))

        self._end = end
        return 1

    def overdue(self, now: float) -> bool:
        return self.busy_since is not None and now - self.busy_since >= self._deadline

    def end_if_due(self) -> None:
        if self._end is None or self.busy_since is None:
            return
        if self._clock.monotonic() - self.busy_since >= self.takes:
            self._end()


class House:
    """The few lines of the loop that matter here, wired by hand."""

    def __init__(self, *rules: Rule, **group: Any) -> None:
        self.clock = FakeClock()
        self.inbox = Inbox()
        self.lane = SlowLane(self.clock)
        self.source = FakeSource()
        self.outside = OutsideRules(self.clock, self.inbox, cast(Any, lambda _: self.lane))
        self.plan = Plan(host="gpu1", rules=(RuleGroup(name="g", rules=rules, **group),))
        self.outside.use(self.place, self.plan)
        self.evaluator = Evaluator(self.plan.rules, Store())
        self.kinds: list[str] = []
        self.last: Evaluation

    @property
    def place(self) -> Place:
        return Place(source=self.source, url=URL, target_label="container")

    def turn(self) -> None:
        now = self.clock.now()
        self.outside.ask_if_due(now)
        self.lane.end_if_due()
        for call, _ in self.inbox.wait(0.0):
            call()
        self.last = self.evaluator.evaluate(now, outside=self.outside.take(now))
        self.kinds += [transition.kind for transition in self.last.transitions]

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(seconds=1)
            self.turn()


def alert(name: str = "A", expr: str = "x > 1", **fields: Any) -> AlertRule:
    return AlertRule(name=name, expr=compile_expression(expr), group="g", **fields)


def test_each_slot_is_one_batch_of_distinct_questions_as_of_that_slot() -> None:
    house = House(alert("A"), alert("B"), alert("C", "y > 1"), query_offset=timedelta(minutes=1))

    house.run(11)

    start = datetime(2030, 1, 1, 11, 59, tzinfo=UTC)  # noon, less the group's offset
    assert house.source.asked == [
        [Question("x > 1", at), Question("y > 1", at)]
        for at in (start + timedelta(seconds=n) for n in (0, 5, 10))
    ]


def test_a_group_with_a_longer_interval_is_asked_less_often() -> None:
    house = House(alert(), interval=timedelta(minutes=1))

    house.run(59)

    assert len(house.source.asked) == 1


def test_an_alert_belongs_to_its_target_and_fires_and_resolves_with_the_answers() -> None:
    house = House(alert(for_=timedelta(seconds=10)))

    house.run(12)
    assert house.kinds == ["pending", "firing"]
    [active] = house.evaluator.active
    assert active.labels == {
        "alertname": "A",
        "container": "t1-a",
        "host": "gpu1",
        "target": "t1-a",
    }

    house.source.vector = []
    house.run(5)
    assert house.kinds == ["pending", "firing", "resolved"]
    assert house.outside.problems() == []


def test_while_prometheus_is_down_nothing_changes_and_that_is_said_once() -> None:
    house = House(alert())
    house.run(6)
    house.source.broken = Transient("connection refused")
    house.source.vector = []

    with capture_logs() as lines:
        house.run(3600)

    assert house.kinds == ["firing"]
    [problem] = house.outside.problems()
    assert problem.startswith(f"Prometheus at {URL} evaluates no rules since 12:00:10 UTC:")
    assert "connection refused" in problem
    assert [line["event"] for line in lines] == ["problem_seen"]

    house.source.broken = None
    house.run(5)
    assert house.kinds == ["firing", "resolved"]
    assert house.outside.problems() == []


def test_an_error_of_one_rule_is_that_rules_and_lasts_until_it_is_answered() -> None:
    house = House(alert("A", "x > 1"), alert("B", "y > 1"))
    house.source.errors["x > 1"] = Permanent("Prometheus: many-to-many")

    for _ in range(8):
        house.run(1)
        assert [(f.rule.name, f.because) for f in house.last.failures] == [
            ("A", "Prometheus: many-to-many")
        ]
    assert house.kinds == ["firing"]
    assert house.outside.problems() == []

    house.source.errors.clear()
    house.run(5)
    assert house.last.failures == ()


@pytest.mark.parametrize(("takes", "judged"), [(TWO_SLOTS - 1, True), (TWO_SLOTS + 1, False)])
def test_an_answer_counts_for_two_slots_and_no_longer(takes: float, judged: bool) -> None:
    house = House(alert())
    house.run(6)
    house.source.vector = []
    house.lane.takes = takes

    house.run(30)

    assert house.kinds == ["firing", *["resolved"] * judged]
    assert bool(house.outside.problems()) is not judged


def test_a_question_that_never_comes_back_is_said_and_none_is_put_behind_it() -> None:
    house = House(alert())
    house.run(4)
    house.lane.takes = float("inf")

    house.run(60)

    assert len(house.source.asked) == 1
    assert "has not answered in time" in house.outside.problems()[0]
    assert house.kinds == ["firing"]

    house.lane.takes = 0.0
    house.run(6)
    assert house.outside.problems() == []


def test_an_answer_under_another_plan_is_thrown_away() -> None:
    house = House(alert())
    house.lane.takes = 2.0
    house.run(2)

    house.outside.use(house.place, house.plan)
    house.run(1)

    assert house.kinds == []
    house.run(3)
    assert house.kinds == ["firing"]


def test_rules_over_what_is_recorded_there_wait_for_it_with_their_alerts() -> None:
    recorded = RecordingRule(name="r:x", expr=compile_expression("x * 2"), group="g")
    house = House(recorded, alert("A", "r:x > 0"))
    house.run(6)
    assert house.kinds == ["firing"]

    house.source.broken = Transient("connection refused")
    house.run(900)
    assert house.kinds == ["firing"]

    house.source.broken, house.source.vector = None, []
    house.run(6)
    assert house.kinds == ["firing", "resolved"]


def test_an_answer_that_may_lack_series_resolves_nothing_and_that_is_said() -> None:
    house = House(alert())
    house.run(5)
    house.source.vector, house.source.warnings = [], ("a store is down",)

    house.run(60)

    assert house.kinds == ["firing"]
    [problem] = house.outside.problems()
    assert "rule g/A" in problem
    assert "a store is down" in problem

    house.source.warnings = ("PromQL info: x might not be a counter",)
    house.run(5)
    assert house.kinds == ["firing", "resolved"]
    assert house.outside.problems() == []


def test_what_is_said_of_other_hosts_is_left_out_and_said() -> None:
    house = House(alert())
    house.source.vector = [
        {"container": "t1-a", "host": "gpu1"},
        {"container": "t1-a", "host": "gpu2"},
    ]

    house.run(6)

    [active] = house.evaluator.active
    assert active.labels["host"] == "gpu1"
    [problem] = house.outside.problems()
    assert "(gpu2)" in problem


def test_a_defect_of_the_source_is_a_problem_and_no_crash() -> None:
    house = House(alert())
    answer: LaneAnswer[Answers] = LaneAnswer(lane="x", token=1, error=ZeroDivisionError("x"))
    house.lane.submit = lambda *_, deliver, **__: deliver(answer)  # type: ignore[method-assign]

    house.run(1)

    assert "ZeroDivisionError" in house.outside.problems()[0]


def test_without_a_place_nobody_is_asked_and_every_rule_is_evaluated_here() -> None:
    house = House(alert("A", "vector(1)"))
    house.outside.use(None, house.plan)

    house.run(10)

    assert house.source.asked == []
    assert house.kinds == ["firing"]
