"""What each alert asks for, what a cause changes in that, and which rung comes next."""

from datetime import UTC, datetime, timedelta

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.rule import AlertRule
from sentinel.core.model.intent import Action, Intent, Mode, Outcome, Wish
from sentinel.core.model.labels import Matcher
from sentinel.core.policy.remedy import (
    SHIPPED,
    Remedy,
    Rung,
    Trial,
    cause_for,
    next_rung,
    remedy_for,
)
from sentinel.runtime.configure import shipped_rules

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
RESTART, LOWER, PAGE = Action.RESTART, Action.LOWER_MAX_NUM_SEQS, Action.PAGE
ALERTS = {
    rule.name: rule.labels.get("severity", "")
    for group in load_rule_files(shipped_rules())
    for rule in group.rules
    if isinstance(rule, AlertRule)
}
ALONE = {"VllmContainerExited", "VllmEngineHung"}


def intent(action: Action, outcome: Outcome | None, ago: timedelta = timedelta(0)) -> Intent:
    wish = Wish(
        target="t1-a",
        action=action,
        mode=Mode.ACT,
        because="x",
        by="sentinel",
        container_id="c",
        saw_started_at=NOW,
    )
    closed_at = None if outcome is None else NOW - ago
    return Intent(number=1, wish=wish, reserved_at=NOW, outcome=outcome, closed_at=closed_at)


def ladder_of(alertname: str, cause: str = "") -> list[Action]:
    remedy = remedy_for({"alertname": alertname}, (), cause_for(alertname, cause))
    return [rung.action for rung in remedy.ladder] if remedy else []


@pytest.mark.parametrize(
    ("alertname", "cause", "ladder"),
    [
        ("VllmContainerExited", "engine_died", [RESTART, PAGE]),
        ("VllmContainerExited", "", [RESTART, PAGE]),
        ("VllmContainerExited", "cuda_oom_sampler_warmup", [LOWER, PAGE]),
        ("VllmStartupFailed", "mamba_cache_too_small", [LOWER, PAGE]),
        ("VllmStartupFailed", "bad_arguments", [PAGE]),
        ("VllmEngineHung", "engine_hung", [RESTART, PAGE]),
        ("VllmPreemptionStorm", "", [LOWER, PAGE]),
        ("VllmCrashLoop", "bad_arguments", [Action.STOP_LOOP, PAGE]),
        ("VllmCrashLoop", "cuda_oom_sampler_warmup", [LOWER, PAGE]),
        ("VllmOOM", "host_oom", []),
        ("VllmKVCacheUsageHigh", "", []),
        ("GPUXid", "", [PAGE]),
        ("VllmTTFTP99High", "", []),
    ],
)
def test_the_shipped_ladders(alertname: str, cause: str, ladder: list[Action]) -> None:
    assert ladder_of(alertname, cause) == ladder


@pytest.mark.parametrize("alertname", sorted(set(ALERTS) - ALONE))
def test_nothing_else_is_done_unasked(alertname: str) -> None:
    for remedy in SHIPPED:
        if remedy.matches({"alertname": alertname}, "cuda_oom_sampler_warmup"):
            acting = [rung for rung in remedy.ladder if rung.action is not PAGE]
            assert all(rung.mode is Mode.APPROVE for rung in acting)


def test_every_name_in_a_shipped_remedy_is_a_shipped_alert() -> None:
    named = {n for remedy in SHIPPED for m in remedy.match for n in m.value.split("|")}

    assert named <= set(ALERTS)


@pytest.mark.parametrize(
    "alertname", [n for n, severity in ALERTS.items() if severity == "critical"]
)
def test_a_critical_alert_ends_with_a_person_or_is_told_with_its_exit(alertname: str) -> None:
    assert ladder_of(alertname)[-1:] == [PAGE] or alertname == "VllmOOM"


@pytest.mark.parametrize(("loops", "following"), [(True, Action.STOP_LOOP), (False, PAGE)])
def test_only_what_loops_is_stopped(loops: bool, following: Action) -> None:
    remedy = remedy_for({"alertname": "VllmCrashLoop"}, ())
    assert remedy is not None
    rung = next_rung(remedy, Trial(loops=loops))

    assert rung is not None
    assert rung.action is following


def a_ladder(*rungs: Rung) -> Remedy:
    return Remedy(match=(Matcher(name="alertname", op="=", value="X"),), ladder=rungs)


@pytest.mark.parametrize(
    ("tried", "following"),
    [
        ([], RESTART),
        ([Outcome.FAILED], PAGE),
        ([Outcome.ROLLED_BACK], PAGE),
        ([Outcome.REJECTED], PAGE),
        ([Outcome.EXPIRED], PAGE),
        ([Outcome.VERIFIED], RESTART),
        ([Outcome.REFUSED], RESTART),
    ],
)
def test_a_rung_is_spent_once_it_was_in_vain(tried: list[Outcome], following: Action) -> None:
    remedy = a_ladder(Rung(action=RESTART), Rung(action=PAGE))
    rung = next_rung(remedy, Trial(tried=[intent(RESTART, outcome) for outcome in tried]))

    assert rung is not None
    assert rung.action is following


@pytest.mark.parametrize(
    ("cause", "recurred", "following"),
    [
        ("preemption_storm", False, LOWER),
        ("cuda_oom_runtime", True, LOWER),
        ("cuda_oom_runtime", False, PAGE),
        ("engine_died", False, PAGE),
        ("kv_cache_too_small", True, PAGE),
        ("", False, PAGE),
    ],
)
def test_a_limit_is_lowered_only_for_what_that_cures(
    cause: str, recurred: bool, following: Action
) -> None:
    remedy = a_ladder(Rung(action=LOWER), Rung(action=PAGE))
    rung = next_rung(remedy, Trial(cause=cause, has_recurred=recurred))

    assert rung is not None
    assert rung.action is following


def test_a_number_of_the_operators_own_is_believed_but_not_against_what_is_known() -> None:
    remedy = a_ladder(Rung(action=LOWER, settings={"to": 16}), Rung(action=PAGE))

    assert (next_rung(remedy, Trial(cause="")) or remedy.ladder[1]).action is LOWER
    assert (next_rung(remedy, Trial(cause="host_oom")) or remedy.ladder[0]).action is PAGE


def test_a_step_waits_for_as_long_as_it_is_told() -> None:
    wait = {"wait": timedelta(minutes=5)}
    remedy = a_ladder(Rung(action=RESTART, settings=wait), Rung(action=PAGE, settings=wait))
    fresh = Trial(fired_at=NOW - timedelta(minutes=4), now=NOW)
    old = Trial(fired_at=NOW - timedelta(minutes=5), now=NOW)

    assert next_rung(remedy, fresh) is None
    assert next_rung(remedy, old) is remedy.ladder[0]


def test_what_worked_and_did_not_end_the_alert_gives_way_after_the_wait() -> None:
    wait = {"wait": timedelta(minutes=5)}
    remedy = a_ladder(Rung(action=LOWER), Rung(action=PAGE, settings=wait))
    for ago, following in ((4, LOWER), (5, PAGE)):
        done = intent(LOWER, Outcome.VERIFIED, timedelta(minutes=ago))
        trial = Trial(tried=[done], cause="preemption_storm", now=NOW)
        rung = next_rung(remedy, trial)
        assert rung is not None
        assert rung.action is following


def test_the_operators_remedies_come_first() -> None:
    own = Remedy(
        match=(Matcher(name="alertname", op="=", value="VllmContainerExited"),),
        ladder=(Rung(action=PAGE),),
    )

    assert remedy_for({"alertname": "VllmContainerExited"}, [own], "engine_died") is own
