"""What became of trouble that nothing was done about."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sentinel.core.model.intent import Action, Intent, Mode, Wish
from sentinel.core.model.launch import By, EndedAs, Ending, Launch
from sentinel.core.policy.hindsight import Hindsight, Verdict, judge

AT = datetime(2030, 1, 1, 12, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def intent(by: str, *, asked: bool = False, action: Action = Action.RESTART) -> Intent:
    wish = Wish(
        target="t1-a",
        action=action,
        mode=Mode.ACT,
        because="x",
        by=by,
        container_id="c",
        saw_started_at=AT,
    )
    return Intent(
        number=1, wish=wish, proposed_at=AT if asked else None, reserved_at=AT + minutes(5)
    )


def launch(after: float, by: By = By.OTHER, limit: int = 256, **facts: Any) -> Launch:
    return Launch(
        target="t1-a",
        container_id="c",
        started_at=AT + minutes(after),
        by=by,
        argv=("vllm", "serve", "m", "--max-num-seqs", str(limit)),
        **facts,
    )


def stopped(after: float, kind: EndedAs = EndedAs.PERSON) -> Ending:
    at = AT + minutes(after)
    return Ending(kind=kind, because="x", cause="external_stop", at=at, exit_code=1)


@pytest.mark.parametrize(
    ("facts", "later", "verdict"),
    [
        pytest.param({}, 30, None, id="too early to say"),
        pytest.param({}, 60, Verdict.WENT_ON, id="nothing came of it"),
        pytest.param(
            {"resolved_at": AT + minutes(10)}, 11, Verdict.HEALED, id="by itself, in time"
        ),
        pytest.param({"resolved_at": AT + minutes(20)}, 60, Verdict.WENT_ON, id="healed too late"),
        pytest.param({"launches": [launch(20)]}, 21, Verdict.PERSON, id="a person started it"),
        pytest.param({"launches": [launch(61)]}, 62, Verdict.WENT_ON, id="long after"),
        pytest.param({"launches": [launch(5, By.DOCKER)]}, 6, None, id="Docker did"),
        pytest.param({"intents": [intent("ada")]}, 6, Verdict.PERSON, id="a person ordered it"),
        pytest.param(
            {"intents": [intent("sentinel", asked=True)]}, 6, Verdict.PERSON, id="a person agreed"
        ),
        pytest.param(
            {"intents": [intent("sentinel")]}, 6, Verdict.DONE, id="it was done after all"
        ),
        pytest.param(
            {"intents": [intent("sentinel", action=Action.RESTORE)]}, 6, None, id="another action"
        ),
    ],
)
def test_what_became_of_a_restart(
    facts: dict[str, Any], later: float, verdict: Verdict | None
) -> None:
    seen = Hindsight(at=AT, deadline=AT + minutes(15), action="restart", **facts)

    assert judge(seen, AT + minutes(later)) is verdict


@pytest.mark.parametrize(
    ("action", "facts", "verdict"),
    [
        pytest.param(
            "lower_max_num_seqs", {"launches": [launch(20)]}, None, id="a restart lowers nothing"
        ),
        pytest.param(
            "lower_max_num_seqs", {"launches": [launch(20, limit=64)]}, Verdict.PERSON, id="lowered"
        ),
        pytest.param(
            "stop_loop", {"launches": [launch(20)]}, None, id="a start does not end a loop"
        ),
        pytest.param(
            "stop_loop",
            {"launches": [launch(5, By.DOCKER, ending=stopped(6))]},
            Verdict.PERSON,
            id="a person ended it",
        ),
        pytest.param(
            "stop_loop",
            {"launches": [launch(5, By.DOCKER, ending=stopped(6, EndedAs.CRASH))]},
            None,
            id="it went on",
        ),
    ],
)
def test_the_same_is_the_same_deed(
    action: str, facts: dict[str, Any], verdict: Verdict | None
) -> None:
    seen = Hindsight(
        at=AT, deadline=AT + minutes(15), action=action, under_way=launch(-60), **facts
    )

    assert judge(seen, AT + minutes(30)) is verdict
