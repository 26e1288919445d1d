"""Each guard alone, in a table; and that no sequence overspends the budget."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.model.intent import Action, Intent, Mode, Outcome, Wish
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.model.target import State
from sentinel.core.policy.change import Change
from sentinel.core.policy.guard import (
    BEFORE_A_STEP,
    BEFORE_THE_FIRST,
    CLEAR,
    GUARDS,
    NEVER_FORCED,
    Budget,
    PoolState,
    Situation,
    holds,
)
from sentinel.core.recreate.preflight import Refusal

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def intent(ago: timedelta, *, target: str = "t1-a", closed: bool = True) -> Intent:
    at = NOW - ago
    wish = Wish(
        target=target,
        action=Action.RESTART,
        mode=Mode.ACT,
        because="x",
        by="sentinel",
        container_id="c",
        saw_started_at=at - minutes(60),
    )
    return Intent(
        number=1,
        wish=wish,
        reserved_at=at,
        closed_at=at if closed else None,
        outcome=Outcome.VERIFIED if closed else None,
    )


def vain(ago: timedelta) -> Intent:
    return replace(intent(ago), outcome=Outcome.FAILED)


LOWER = Action.LOWER_MAX_NUM_SEQS
SERVING: dict[str, Any] = {"running": True, "ending": None, "state": State.SERVING}


def ended(kind: EndedAs, cause: str = "unknown") -> Ending:
    return Ending(kind=kind, because="it ended", cause=cause, at=NOW, exit_code=0)


def launch(ago: timedelta, by: By, restart_count: int = 0) -> Launch:
    return Launch(
        target="t1-a",
        container_id="c",
        started_at=NOW - ago,
        by=by,
        restart_count=restart_count,
    )


def failing(*ago: float) -> dict[str, datetime]:
    """t1-a, t1-b … fail since so many minutes ago."""
    return {f"t1-{'abcd'[at]}": NOW - minutes(count) for at, count in enumerate(ago)}


def situation(**changes: Any) -> Situation:
    plain: dict[str, Any] = {
        "now": NOW,
        "target": "t1-a",
        "action": Action.RESTART,
        "mode": Mode.ACT,
        "state": State.FAILED,
        "ending": ended(EndedAs.CRASH, "engine_died"),
    }
    return Situation(**{**plain, **changes})


def test_an_unexpected_exit_meets_no_guard() -> None:
    assert holds(situation()) == ()


@pytest.mark.parametrize(
    ("guard", "changes"),
    [
        pytest.param("mode", {"mode": Mode.WATCH}, id="watch"),
        pytest.param("mode", {"mode": Mode.APPROVE}, id="approve"),
        pytest.param("paused", {"paused_by": "ana"}, id="paused"),
        pytest.param("stop_file", {"stop_file": "/etc/sentinel/STOP"}, id="stop file"),
        pytest.param("human_stop", {"ending": ended(EndedAs.PERSON)}, id="a person stopped it"),
        pytest.param("unwitnessed_stop", {"ending": ended(EndedAs.UNWITNESSED)}, id="nobody saw"),
        pytest.param("starting", {"state": State.STARTING, "running": True}, id="loading"),
        pytest.param("crash_looping", {"state": State.RESTARTING}, id="Docker is at it"),
        pytest.param(
            "restart_cannot_help", {"ending": ended(EndedAs.CRASH, "port_in_use")}, id="hopeless"
        ),
        pytest.param("open_intent", {"open_intent": intent(minutes(1), closed=False)}, id="open"),
        pytest.param("cooldown", {"recent": [intent(minutes(14))]}, id="cooling down"),
        pytest.param(
            "cooldown", {"recent": [intent(minutes(-30))]}, id="clock set back: be patient"
        ),
        pytest.param(
            "budget_target",
            {"recent": [intent(minutes(20)), intent(minutes(50))]},
            id="two in an hour",
        ),
        pytest.param(
            "budget_target",
            {"launches": [launch(minutes(5), By.DOCKER), launch(minutes(6), By.DOCKER)]},
            id="Docker's own restarts count",
        ),
        pytest.param(
            "budget_target",
            {"recent": [intent(minutes(61 * n)) for n in range(2, 6)]},
            id="four in a day",
        ),
        pytest.param(
            "budget_host",
            {"recent": [intent(minutes(1), target="t1-b", closed=False)]},
            id="one at once",
        ),
        pytest.param(
            "budget_host",
            {"recent": [intent(minutes(9 * n), target=f"t{n}") for n in range(1, 7)]},
            id="six an hour on the host",
        ),
        pytest.param("cannot_recreate", {"container_gone": True}, id="--rm took it along"),
        pytest.param(
            "cannot_recreate", {**SERVING, "removed_once_stopped": True}, id="--rm would take it"
        ),
        pytest.param(
            "cannot_recreate",
            {
                "action": LOWER,
                "change": Change(ports=("8000/tcp",)),
                "pool": PoolState(name="p", healthy=["t1-b"], has_switch=True),
            },
            id="nobody would find it",
        ),
        pytest.param(
            "foreign_orchestrator", {"orchestrator": "a Docker Swarm service"}, id="Swarm's own"
        ),
        pytest.param("many_failing", {"failing": failing(0, 1, 2)}, id="three within two minutes"),
        pytest.param(
            "many_failing", {"failing": failing(90, 91, 92)}, id="for as long as they fail"
        ),
        pytest.param(
            "budget_target",
            {"launches": [launch(minutes(6), By.OTHER), launch(minutes(5), By.DOCKER, 3)]},
            id="those between two looks too",
        ),
        pytest.param(
            "journal_unreadable", {"journal_trouble": "disk is full"}, id="no memory, no hands"
        ),
        pytest.param("maintenance", {"maintenance": "nights"}, id="maintenance"),
        pytest.param("deploy_in_progress", {"deployed_at": NOW - minutes(2)}, id="just deployed"),
        pytest.param("deploy_in_progress", {"pulled_at": NOW - minutes(2)}, id="just pulled"),
        pytest.param(
            "deploy_in_progress",
            {"action": LOWER, "change": Change(deploys="compose is at it")},
            id="a deploy that can be seen",
        ),
        pytest.param("external_alert", {"only_posted": True}, id="asked for by others alone"),
        pytest.param(
            "unconfirmed",
            {"only_posted": True, "accept_external": True, "state": State.IDLE, "running": True},
            id="others say so, and nothing is seen",
        ),
        pytest.param(
            "unconfirmed",
            {**SERVING, "state": State.HUNG, "another_model": True},
            id="another's hang",
        ),
        *(
            pytest.param(
                guard,
                {"action": LOWER, "change": Change(refusals=(Refusal(guard=guard, because="x"),))},
                id=f"{guard} by preflight",
            )
            for guard in (
                "foreign_orchestrator",
                "others_depend",
                "cannot_recreate",
                "arguments_unclear",
                "changes_nothing",
                "other_owner",
            )
        ),
        pytest.param("beyond_container", {"gpu_fault": "Xid 79"}, id="the GPU's own fault"),
        pytest.param(
            "beyond_container", {"ending": ended(EndedAs.CRASH, "gpu_lost")}, id="GPU lost"
        ),
        pytest.param(
            "beyond_container",
            {"ending": ended(EndedAs.CRASH, "gpu_ecc"), "remedied": [intent(minutes(90))]},
            id="GPU again",
        ),
        pytest.param("gpu_start", {"gpu_starts": ["t1-b"]}, id="one start at a time"),
        pytest.param("last_healthy", {**SERVING, "pool": PoolState(name="p")}, id="the last one"),
        pytest.param(
            "no_headroom",
            {**SERVING, "pool": PoolState(name="p", healthy=["t1-b"], saturated=["t1-b"])},
            id="the others are full",
        ),
        pytest.param(
            "ineffective",
            {"remedied": [vain(minutes(90)), vain(minutes(50))]},
            id="twice in vain",
        ),
        pytest.param(
            "ineffective",
            {"remedied": [intent(timedelta(days=n)) for n in range(1, 6)]},
            id="five in a week",
        ),
    ],
)
def test_each_guard_holds_and_says_why(guard: str, changes: dict[str, Any]) -> None:
    held = holds(situation(**changes))

    assert guard in [h.guard for h in held]
    assert all(h.because for h in held)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"recent": [intent(minutes(15))]}, id="cooldown is half-open"),
        pytest.param({"recent": [intent(minutes(60)), intent(minutes(61))]}, id="an hour too"),
        pytest.param({"launches": [launch(minutes(5), By.OTHER)] * 3}, id="people's own restarts"),
        pytest.param({"failing": failing(0, 1)}, id="two are no crowd"),
        pytest.param({"failing": failing(0, 3, 4)}, id="the others failed before"),
        pytest.param({"failing": failing(0, 1, 2.5)}, id="not within two minutes"),
        pytest.param(
            {"launches": [launch(minutes(9), By.DOCKER, 5)]}, id="what was counted before we came"
        ),
        pytest.param(
            {"running": True, "ending": ended(EndedAs.PERSON), "state": State.HUNG},
            id="a stop of an earlier launch",
        ),
        pytest.param({"recent": [intent(minutes(30), target="t1-b")]}, id="another target's"),
        pytest.param(
            {"action": LOWER, "change": Change(ports=("8000/tcp",)), "pool": PoolState(name="p")},
            id="nothing has to find it",
        ),
        pytest.param({"action": Action.RESTORE, "maintenance": "nights"}, id="the time to restore"),
        pytest.param({"deployed_at": NOW - minutes(3)}, id="a deploy is over"),
        pytest.param({"pulled_at": NOW - minutes(3)}, id="a pull is long ago"),
        pytest.param({"only_posted": True, "accept_external": True}, id="others are right"),
        pytest.param({"another_model": True}, id="it has ended, whoever has its port"),
        pytest.param({"ending": ended(EndedAs.CRASH, "gpu_ecc")}, id="once is worth a try"),
        pytest.param({"pool": PoolState(name="p")}, id="the last one, and it has failed itself"),
        pytest.param(
            {**SERVING, "pool": PoolState(name="p", healthy=["b", "c"], saturated=["b"])},
            id="others have room",
        ),
        pytest.param(
            {"remedied": [vain(minutes(90)), intent(minutes(50))]}, id="the last one helped"
        ),
        pytest.param(
            {
                "action": LOWER,
                "state": State.STARTING,
                "running": True,
                "start_fails": True,
                "cause": "cuda_oom_sampler_warmup",
            },
            id="a start that fails until its limit is lowered",
        ),
    ],
)
def test_the_way_is_free(changes: dict[str, Any]) -> None:
    assert holds(situation(**changes)) == ()


def test_a_budget_says_when_it_is_free_again() -> None:
    (held,) = holds(situation(recent=[intent(minutes(20)), intent(minutes(50))]))

    assert held.until == NOW + minutes(10)


def test_the_guards_before_a_step_are_guards() -> None:
    assert set(GUARDS) >= BEFORE_THE_FIRST >= BEFORE_A_STEP
    assert set(GUARDS) >= NEVER_FORCED


def test_each_guard_has_a_sentence_while_it_does_not_hold() -> None:
    assert set(CLEAR) == set(GUARDS)
    assert all(CLEAR.values())


@given(st.lists(st.integers(1, 3600), max_size=60))
def test_no_sequence_of_failures_overspends_the_budget(gaps: list[int]) -> None:
    budget = Budget()
    done: list[Intent] = []
    now = NOW
    for gap in gaps:
        now += timedelta(seconds=gap)
        if not holds(situation(now=now, recent=tuple(done), cooldown=minutes(15))):
            done.append(_at(now))
    for last in done:
        assert last.reserved_at is not None
        assert _within(done, last.reserved_at, minutes(60)) <= budget.target_per_hour
        assert _within(done, last.reserved_at, timedelta(days=1)) <= budget.target_per_day


def _at(at: datetime) -> Intent:
    return intent(NOW - at)


def _within(done: list[Intent], until: datetime, span: timedelta) -> int:
    near: Callable[[Intent], bool] = lambda i: (  # noqa: E731
        i.reserved_at is not None and timedelta(0) <= until - i.reserved_at < span
    )
    return sum(near(i) for i in done)
