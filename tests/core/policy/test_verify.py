"""Whether a restart has worked, failed, or is too early to judge."""

from datetime import UTC, datetime, timedelta

import pytest

from sentinel.core.model.container import Container, Status
from sentinel.core.model.intent import Action, Intent, Mode, Outcome, Wish
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.model.target import Completion, Served
from sentinel.core.policy.verify import verify_restart

SAW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER, EARLIER = SAW + timedelta(minutes=1), SAW - timedelta(hours=1)


def intent(verify_by: datetime | None = LATER) -> Intent:
    wish = Wish(
        target="t1-a",
        action=Action.RESTART,
        mode=Mode.ACT,
        because="x",
        by="sentinel",
        container_id="c",
        saw_started_at=SAW,
    )
    return Intent(number=1, wish=wish, reserved_at=SAW, verify_by=verify_by)


def container(
    started_at: datetime = LATER, status: Status = Status.RUNNING, container_id: str = "c"
) -> Container:
    return Container(
        id=container_id,
        name="t1-a",
        image="vllm",
        image_id="sha256:1",
        argv=(),
        status=status,
        started_at=started_at,
    )


def launch(kind: EndedAs | None = None, *, ready: bool = False) -> Launch:
    ending = kind and Ending(kind=kind, because="it ended", cause="unknown", at=None, exit_code=1)
    return Launch(
        target="t1-a",
        container_id="c",
        started_at=LATER,
        by=By.SENTINEL,
        ready_at=LATER if ready else None,
        ending=ending or None,
    )


GOOD = Completion(at=LATER, took=0.1, ok=True, model="m")
BAD = Completion(at=LATER, took=0.1, ok=False, says="nobody listens")


@pytest.mark.parametrize(
    ("seen", "ended", "probe", "overdue", "outcome"),
    [
        pytest.param(container(), None, GOOD, False, Outcome.VERIFIED, id="a completion"),
        pytest.param(container(), None, GOOD, True, Outcome.VERIFIED, id="better late"),
        pytest.param(
            container(EARLIER), None, GOOD, False, Outcome.VERIFIED, id="the clock was set back"
        ),
        pytest.param(container(SAW), None, GOOD, False, None, id="the old launch proves nothing"),
        pytest.param(container(), None, None, False, None, id="nothing asked yet"),
        pytest.param(container(), None, BAD, False, None, id="too early"),
        pytest.param(container(), None, BAD, True, Outcome.FAILED, id="too late"),
        pytest.param(None, None, GOOD, False, Outcome.FAILED, id="gone"),
        pytest.param(container(container_id="d"), None, GOOD, False, Outcome.FAILED, id="replaced"),
        pytest.param(
            container(status=Status.EXITED),
            EndedAs.CRASH,
            None,
            False,
            Outcome.FAILED,
            id="died again",
        ),
        pytest.param(
            container(status=Status.EXITED),
            EndedAs.PERSON,
            None,
            False,
            Outcome.REFUSED,
            id="a person stopped it: not ours to judge",
        ),
    ],
)
def test_verify_restart(
    seen: Container | None,
    ended: EndedAs | None,
    probe: Completion | None,
    overdue: bool,
    outcome: Outcome | None,
) -> None:
    verdict = verify_restart(intent(), seen, launch(ended), probe, overdue=overdue)

    assert verdict.outcome is outcome
    assert verdict.because
    assert "None" not in verdict.because


def test_the_deadline_is_said_in_utc_and_may_be_missing() -> None:
    said = verify_restart(intent(), container(), launch(), BAD, overdue=True).because
    assert said == "not serving by 12:01:00 UTC: nobody listens"
    said = verify_restart(intent(None), container(), launch(), None, overdue=True).because
    assert said == "not serving in time"


NO_KEY = Completion(at=LATER, took=0.1, ok=False, unauthorised=True, says="HTTP 401")
NO_API = Completion(at=LATER, took=0.1, ok=False, unsupported=True, says="HTTP 404")


@pytest.mark.parametrize(
    ("probe", "ready", "outcome"),
    [
        pytest.param(NO_KEY, True, Outcome.VERIFIED, id="no key: it answers"),
        pytest.param(NO_API, True, Outcome.VERIFIED, id="no such API: it answers"),
        pytest.param(NO_KEY, False, None, id="a refusal alone is no answer"),
        pytest.param(BAD, True, None, id="a token may come yet"),
        pytest.param(None, True, None, id="nothing was tried yet"),
    ],
)
def test_where_no_token_can_be_asked_for_its_answers_must_do(
    probe: Completion | None, ready: bool, outcome: Outcome | None
) -> None:
    verdict = verify_restart(intent(), container(), launch(ready=ready), probe, overdue=False)

    assert verdict.outcome is outcome
    if outcome is not None and probe is not None:
        assert verdict.because == f"it answers again; no token can be asked for: {probe.says}"


LATE = Completion(at=LATER, took=8.0, ok=False, says="no answer", timed_out=True)
QUEUE = Served(completed=7, waiting=34, model="m")


@pytest.mark.parametrize(
    ("started_at", "probe", "served", "outcome"),
    [
        pytest.param(LATER, LATE, QUEUE, Outcome.VERIFIED, id="ours waits, theirs are completed"),
        pytest.param(LATER, LATE, None, None, id="nobody was served"),
        pytest.param(LATER, BAD, QUEUE, None, id="ours was not taken at all"),
        pytest.param(LATER, None, QUEUE, None, id="ours comes first"),
        pytest.param(SAW, LATE, QUEUE, None, id="the old launch proves nothing"),
    ],
)
def test_where_ours_waits_its_turn_a_completion_for_others_is_proof(
    started_at: datetime, probe: Completion | None, served: Served | None, outcome: Outcome | None
) -> None:
    seen = container(started_at)
    verdict = verify_restart(intent(), seen, launch(), probe, overdue=False, served=served)

    assert verdict.outcome is outcome
    if outcome is Outcome.VERIFIED:
        assert "7 requests of others were completed by m" in verdict.because


def test_the_old_launch_answers_for_nothing() -> None:
    verdict = verify_restart(intent(), container(SAW), launch(ready=True), NO_KEY, overdue=False)

    assert verdict.outcome is None
