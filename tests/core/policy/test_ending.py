"""Who stopped it: tables of what was heard, recorded and logged, against the verdict."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sentinel.core.diagnosis.log import LogReading
from sentinel.core.model.container import Container, EngineEvent, Status
from sentinel.core.model.launch import EndedAs, Ending
from sentinel.core.policy.ending import Clues, explain_ending

STARTED = datetime(2030, 1, 1, 12, tzinfo=UTC)
ENDED = STARTED + timedelta(hours=1)
CRASHED = LogReading(cause="engine_died", line=3, text="engine core exited unexpectedly", died=True)
TOLD = LogReading(told_to_stop=True, was_ready=True)


def heard(*actions: str) -> Sequence[EngineEvent]:
    """Events a tenth of a second apart; `kill:9` carries a signal, `die:1` an exit code."""
    events = []
    for at, text in enumerate(actions):
        action, _, detail = text.partition(":")
        when = ENDED + timedelta(seconds=at / 10)
        events.append(
            EngineEvent(
                at=when,
                at_ns=round(when.timestamp() * 1e9),
                action=action,
                container_id="c",
                name="t1-a",
                signal=detail if action == "kill" else "",
                exit_code=int(detail) if action == "die" else None,
            )
        )
    return events


def earlier(events: Sequence[EngineEvent], by: timedelta) -> Sequence[EngineEvent]:
    ns = round(by.total_seconds() * 1e9)
    return [replace(event, at=event.at - by, at_ns=event.at_ns - ns) for event in events]


def ending(
    events: Sequence[EngineEvent] = (),
    *,
    log: LogReading | None = None,
    own_stop: bool = False,
    engine_down_at: datetime | None = None,
    watched: bool = False,
    restarted: bool = False,
    **facts: Any,
) -> Ending:
    container = Container(
        id="c",
        name="t1-a",
        image="vllm",
        image_id="sha256:1",
        argv=("vllm", "serve"),
        status=Status.EXITED,
        **{"exit_code": 0, "started_at": STARTED, "finished_at": ENDED, **facts},
    )
    return explain_ending(
        Clues(
            container=container,
            events=events,
            own_stop=own_stop,
            log=log,
            engine_down_at=engine_down_at,
            watched=watched,
            restarted=restarted,
        )
    )


@pytest.mark.parametrize(
    ("found", "kind", "cause"),
    [
        pytest.param(
            ending(heard("die:0")), EndedAs.CRASH, "engine_died", id="exit 0 is no excuse"
        ),
        pytest.param(
            ending(heard("die:0"), log=CRASHED), EndedAs.CRASH, "engine_died", id="the log agrees"
        ),
        pytest.param(ending(heard("kill:15", "die:0", "stop")), EndedAs.PERSON, None, id="stop"),
        pytest.param(
            ending(heard("kill:15", "stop", "die:0")), EndedAs.PERSON, None, id="stop, newer order"
        ),
        pytest.param(
            ending(heard("kill:15", "kill:9", "die:137"), exit_code=137),
            EndedAs.PERSON,
            None,
            id="a stop that timed out is no OOM",
        ),
        pytest.param(
            ending(heard("kill:9", "die:137"), exit_code=137),
            EndedAs.PERSON,
            None,
            id="docker kill",
        ),
        pytest.param(
            ending(heard("kill:12", "die:0")), EndedAs.CRASH, None, id="a signal that stops nothing"
        ),
        pytest.param(
            ending(heard("kill:15", "die:0"), own_stop=True, manually_stopped=True),
            EndedAs.OWN,
            "clean_stop",
            id="our own stop",
        ),
        pytest.param(ending(manually_stopped=True), EndedAs.PERSON, None, id="Docker's own record"),
        pytest.param(ending(log=TOLD), EndedAs.PERSON, None, id="only the log tells of a stop"),
        pytest.param(
            ending(manually_stopped=True, log=CRASHED),
            EndedAs.CRASH,
            "engine_died",
            id="it died, and then somebody stopped what was left",
        ),
        pytest.param(ending(heard("oom", "die:0")), EndedAs.OOM, "cgroup_oom", id="OOM, exit 0"),
        pytest.param(
            ending(oom_killed=True, exit_code=137), EndedAs.OOM, "cgroup_oom", id="OOMKilled"
        ),
        pytest.param(
            ending(heard("die:137"), exit_code=137),
            EndedAs.CRASH,
            "sigkill_unknown",
            id="137 alone is no OOM",
        ),
        pytest.param(ending(log=CRASHED), EndedAs.CRASH, "engine_died", id="unseen, but logged"),
        pytest.param(ending(), EndedAs.UNWITNESSED, "unknown", id="nobody saw, nothing says"),
        pytest.param(
            ending(manually_stopped=False),
            EndedAs.UNWITNESSED,
            "unknown",
            id="Docker says not by a person, and code 0 says nothing",
        ),
        pytest.param(
            ending(manually_stopped=False, exit_code=1), EndedAs.CRASH, None, id="unseen, code 1"
        ),
        pytest.param(
            ending(exit_code=255), EndedAs.UNWITNESSED, "unknown", id="died while Docker was down"
        ),
        pytest.param(
            ending(heard("kill:15", "die:0"), manually_stopped=False),
            EndedAs.ENGINE_SHUTDOWN,
            None,
            id="Docker going down is no person",
        ),
        pytest.param(
            ending(heard("die:0"), log=TOLD), EndedAs.PERSON, None, id="a kill from the host"
        ),
        pytest.param(
            ending(log=TOLD, engine_down_at=ENDED, manually_stopped=False),
            EndedAs.ENGINE_SHUTDOWN,
            None,
            id="told to stop by Docker going down",
        ),
        pytest.param(
            ending(heard("kill:10", "die:137"), exit_code=137, manually_stopped=True),
            EndedAs.CRASH,
            "sigkill_unknown",
            id="Docker records a harmless signal as a stop, too",
        ),
        pytest.param(
            ending(
                [*earlier(heard("kill:1"), timedelta(minutes=30)), *heard("die:1")],
                exit_code=1,
                manually_stopped=True,
            ),
            EndedAs.CRASH,
            None,
            id="a signal it ignored half an hour before",
        ),
        pytest.param(
            ending(
                [*earlier(heard("kill:15"), timedelta(minutes=30)), *heard("die:0", "stop")],
            ),
            EndedAs.PERSON,
            None,
            id="a docker stop that let it drain for half an hour",
        ),
        pytest.param(
            ending(heard("die:255"), exit_code=255), EndedAs.CRASH, None, id="255 seen is its own"
        ),
        pytest.param(
            ending(watched=True, manually_stopped=False, exit_code=137),
            EndedAs.CRASH,
            "sigkill_unknown",
            id="the event was lost, but we were there and Docker names nobody",
        ),
        pytest.param(
            ending(watched=True, exit_code=137),
            EndedAs.UNWITNESSED,
            None,
            id="the event was lost, and so is Docker's record",
        ),
        pytest.param(
            ending(restarted=True, exit_code=None),
            EndedAs.CRASH,
            None,
            id="Docker starts again only what nobody stopped",
        ),
        pytest.param(
            ending(
                heard("die:1"),
                exit_code=1,
                log=CRASHED,
                manually_stopped=True,
                restart_policy="always",
            ),
            EndedAs.PERSON,
            "engine_died",
            id="it died, and a person kept Docker from starting it again",
        ),
        pytest.param(
            ending(heard("die:0"), engine_down_at=ENDED - timedelta(seconds=1)),
            EndedAs.UNWITNESSED,
            None,
            id="a death while Docker goes down is not blamed on vLLM",
        ),
    ],
)
def test_who_stopped_it(found: Ending, kind: EndedAs, cause: str | None) -> None:
    assert found.kind is kind
    assert cause in (None, found.cause)
    assert found.because
    assert "None" not in found.because


@pytest.mark.parametrize(
    ("events", "how"),
    [
        (heard("kill:15", "die:0", "stop"), "docker stop"),
        (heard("kill:15", "die:0", "stop", "start", "restart"), "docker restart"),
        (heard("kill:9", "die:137"), "docker kill"),
    ],
    ids=["stop", "restart", "kill"],
)
def test_it_names_what_the_person_did_and_when(events: Sequence[EngineEvent], how: str) -> None:
    assert ending(events).because == f"stopped by a person ({how} at 13:00:00 UTC)"


def test_no_log_line_is_in_the_sentence() -> None:
    found = ending(heard("die:0"), log=CRASHED)

    assert CRASHED.text not in found.because
    assert found.log_line == CRASHED.text
