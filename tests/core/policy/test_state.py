"""Witnesses against states: the tables are the specification."""

from dataclasses import replace
from datetime import timedelta

import pytest

from sentinel.core.model.container import Status
from sentinel.core.model.launch import EndedAs, Ending
from sentinel.core.model.target import State
from sentinel.core.policy.hang import Power
from sentinel.core.policy.state import is_crashed, judge
from sentinel.core.policy.witness import Load, Patience, Witnesses
from tests.core.policy.witnesses import (
    BUSY,
    DEAD,
    LATE,
    NO_API,
    NO_KEY,
    NO_TOKEN,
    NOT_THERE,
    NOW,
    REFUSED,
    TOKEN,
    ago,
    clients,
    container,
    engine,
    exited,
    launch,
    seen,
    stuck,
)

UNTOLD = {"load": Load(), "engines": {}}  # it shows no series of its work
DRAWS_LITTLE = Power(at=ago(1), drawn=20, least_at_work=45)

ENDED = [
    pytest.param(exited(EndedAs.CRASH), State.FAILED, id="crashed"),
    pytest.param(exited(EndedAs.OOM), State.FAILED, id="out of memory"),
    pytest.param(exited(EndedAs.UNWITNESSED), State.FAILED, id="nobody saw it stop"),
    pytest.param(exited(EndedAs.PERSON), State.STOPPED, id="a person stopped it"),
    pytest.param(
        exited(EndedAs.CRASH, policy="always", finished=1),
        State.RESTARTING,
        id="Docker's turn first",
    ),
    pytest.param(
        exited(EndedAs.CRASH, policy="always", finished=30),
        State.FAILED,
        id="Docker did not take its turn",
    ),
    pytest.param(
        exited(EndedAs.CRASH, policy="on-failure", finished=1),
        State.FAILED,
        id="on-failure does nothing about code 0",
    ),
    pytest.param(
        exited(EndedAs.ENGINE_SHUTDOWN, engine_back_at=ago(5)),
        State.UNKNOWN,
        id="Docker is just back",
    ),
    pytest.param(
        exited(EndedAs.ENGINE_SHUTDOWN, policy="always", engine_back_at=ago(60)),
        State.FAILED,
        id="Docker should have started it",
    ),
    pytest.param(
        exited(EndedAs.ENGINE_SHUTDOWN, engine_back_at=ago(60)),
        State.STOPPED,
        id="Docker went down, and the policy is no",
    ),
    pytest.param(
        exited(EndedAs.CRASH, own_step="start"), State.RESTARTING, id="we are starting it"
    ),
    pytest.param(
        exited(EndedAs.PERSON, engine_lost_at=ago(60)), State.STOPPED, id="stopped stays stopped"
    ),
    pytest.param(
        seen(container=container(Status.RESTARTING, exit_code=1)),
        State.RESTARTING,
        id="Docker waits before its next try",
    ),
    pytest.param(seen(container=container(Status.CREATED)), State.STOPPED, id="never started"),
    pytest.param(
        seen(container=container(Status.CREATED), own_step="start"),
        State.RESTARTING,
        id="made anew by us, and started next",
    ),
]
STARTING = [
    pytest.param(seen(launch=launch(ready=False)), State.STARTING, id="loading"),
    pytest.param(
        seen(launch=launch(ready=False), scrape=REFUSED, scrape_ok_at=None),
        State.STARTING,
        id="loading for an hour is still loading",
    ),
    pytest.param(
        seen(
            launch=launch(ready=False),
            scrape=REFUSED,
            scrape_ok_at=None,
            connections=clients(listening=False),
        ),
        State.STARTING,
        id="while it loads nothing listens, and that is no fault",
    ),
    pytest.param(
        stuck(300, launch=launch(ready=False), probe=NO_TOKEN),
        State.STARTING,
        id="before it is ready it cannot hang",
    ),
]
SUSPENDED = [
    pytest.param(seen(own_step="stop"), State.STOPPING, id="we are stopping it"),
    pytest.param(stuck(own_step="stop", probe=NO_TOKEN), State.STOPPING, id="also a hung one"),
    pytest.param(seen(container=container(Status.PAUSED)), State.PAUSED, id="paused"),
    pytest.param(
        stuck(container=container(Status.PAUSED), probe=NO_TOKEN),
        State.PAUSED,
        id="paused: nothing moves by design",
    ),
    pytest.param(seen(load=Load(running=0, asleep=True)), State.SLEEPING, id="asleep"),
    pytest.param(
        stuck(load=Load(running=8, asleep=True), probe=NO_TOKEN),
        State.SLEEPING,
        id="asleep: nothing moves by design",
    ),
    pytest.param(
        seen(scrape=REFUSED, health=REFUSED, scrape_ok_at=ago(6), told_to_stop_at=ago(7)),
        State.STOPPING,
        id="a person told it to stop, and it is at it",
    ),
    pytest.param(
        seen(told_to_stop_at=ago(7)), State.IDLE, id="a signal that stops nothing is no stop"
    ),
]
WORKING = [
    pytest.param(seen(), State.IDLE, id="answers, no work"),
    pytest.param(seen(load=BUSY, engines={"0": engine(8, 3)}), State.SERVING, id="works"),
    pytest.param(
        seen(
            load=Load(running=5, waiting=30, kv_usage=0.99),
            engines={"0": engine(5, 30, kv_usage=0.99)},
        ),
        State.SATURATED,
        id="full and moving is saturated",
    ),
    pytest.param(
        seen(load=Load(running=1, waiting=0), engines={"0": engine(1, own=1)}),
        State.IDLE,
        id="our own request is nobody's work",
    ),
]
DEAD_ENGINE = [
    pytest.param(
        seen(dead_since=ago(11), health=DEAD), State.FAILED, id="the server lives, its engine not"
    ),
    pytest.param(
        seen(dead_since=ago(11), health=DEAD, load=BUSY, engines={"0": engine(8, still=15)}),
        State.FAILED,
        id="its gauges count on what they last saw",
    ),
    pytest.param(
        seen(dead_since=ago(3), health=DEAD),
        State.IDLE,
        id="between the engine's death and the exit",
    ),
    pytest.param(
        seen(dead_since=ago(60), health=DEAD, load=BUSY, engines={"0": engine(8, 3)}),
        State.SERVING,
        id="one that works all the while is not dead",
    ),
]
UNREACHABLE = [
    pytest.param(
        seen(scrape=LATE, health=LATE, scrape_ok_at=ago(30)), State.IDLE, id="slow is busy"
    ),
    pytest.param(
        seen(scrape=LATE, health=LATE, scrape_ok_at=ago(90)), State.UNKNOWN, id="slow for too long"
    ),
    pytest.param(
        stuck(scrape=LATE, health=LATE, scrape_ok_at=ago(90), probe=NO_TOKEN),
        State.UNKNOWN,
        id="what was not seen for a minute is not known to hang",
    ),
    pytest.param(
        seen(scrape=REFUSED, health=REFUSED, scrape_ok_at=ago(90)),
        State.UNKNOWN,
        id="refused, and nobody can look inside",
    ),
    pytest.param(
        seen(
            scrape=REFUSED,
            health=REFUSED,
            scrape_ok_at=ago(90),
            connections=clients(listening=True),
        ),
        State.UNKNOWN,
        id="refused, though it listens: the way there is broken",
    ),
    pytest.param(
        seen(
            scrape=REFUSED,
            health=REFUSED,
            scrape_ok_at=ago(90),
            connections=clients(listening=False),
        ),
        State.FAILED,
        id="refused, and nothing listens in it",
    ),
    pytest.param(
        seen(
            scrape=REFUSED,
            health=REFUSED,
            scrape_ok_at=ago(8),
            connections=clients(listening=False),
        ),
        State.UNKNOWN,
        id="it may be about to exit",
    ),
    pytest.param(
        seen(
            container=container(stop_timeout=120),
            scrape=REFUSED,
            health=REFUSED,
            scrape_ok_at=ago(90),
            connections=clients(listening=False),
        ),
        State.UNKNOWN,
        id="it may be draining, for as long as its own stop may take",
    ),
    pytest.param(
        seen(
            scrape=REFUSED,
            health=REFUSED,
            scrape_ok_at=ago(90),
            connections=clients(listening=False, looked=60),
        ),
        State.UNKNOWN,
        id="an old look inside says nothing",
    ),
    pytest.param(seen(engine_lost_at=ago(60)), State.IDLE, id="Docker is lost, the target answers"),
    pytest.param(
        seen(engine_lost_at=ago(60), scrape=REFUSED, health=REFUSED, scrape_ok_at=ago(50)),
        State.UNKNOWN,
        id="neither answers",
    ),
    pytest.param(seen(container=None), State.UNKNOWN, id="not seen yet"),
]
WITHOUT_METRICS = [
    pytest.param(seen(**UNTOLD), State.UNKNOWN, id="no series: no data is not health"),
    pytest.param(seen(**UNTOLD, probe=TOKEN), State.SERVING, id="no series: a token shows it"),
    pytest.param(seen(**UNTOLD, probe=NO_TOKEN), State.UNKNOWN, id="no series, no token"),
    pytest.param(
        seen(**UNTOLD, probe=replace(TOKEN, at=ago(600))), State.UNKNOWN, id="a token long ago"
    ),
    pytest.param(
        seen(**UNTOLD, scrape=NOT_THERE, scrape_ok_at=None, probe=TOKEN),
        State.SERVING,
        id="no /metrics at all",
    ),
    pytest.param(
        seen(scrape=LATE, scrape_ok_at=ago(90)),
        State.UNKNOWN,
        id="/health alone is no sign of life",
    ),
    pytest.param(seen(health=NOT_THERE), State.IDLE, id="no /health at all is no fault"),
]
HUNG = [
    pytest.param(stuck(probe=NO_TOKEN), State.HUNG, id="nothing moves, no token"),
    pytest.param(
        stuck(load=BUSY, engines={"0": engine(0, 5, still=130)}, probe=NO_TOKEN),
        State.HUNG,
        id="some wait, none runs, nothing moves",
    ),
    pytest.param(
        stuck(
            load=Load(running=5, waiting=30, kv_usage=1.0),
            engines={"0": engine(5, 30, still=130, kv_usage=1.0)},
            probe=NO_TOKEN,
        ),
        State.HUNG,
        id="full, and nothing moves, is no saturation",
    ),
    pytest.param(
        seen(
            load=Load(running=20, waiting=0),
            engines={"0": engine(10), "1": engine(10, still=130), "2": engine(0)},
            probe=NO_TOKEN,
        ),
        State.HUNG,
        id="one of several engines, while the sum moves",
    ),
    pytest.param(
        seen(
            engines={"0": engine(still=3600)},
            connections=clients(5, waiting=130),
            probe=NO_TOKEN,
        ),
        State.HUNG,
        id="idle by its gauges, while clients wait",
    ),
    pytest.param(
        stuck(power=DRAWS_LITTLE, connections=clients(8)),
        State.HUNG,
        id="nothing moves, clients wait, and its GPUs rest",
    ),
    pytest.param(
        stuck(310, launch=launch(up_for=400), probe=NO_TOKEN), State.HUNG, id="also a young one"
    ),
]
NOT_HUNG = [
    pytest.param(stuck(), State.SERVING, id="still, and nothing confirms it"),
    pytest.param(stuck(100, probe=NO_TOKEN), State.SERVING, id="not long enough"),
    pytest.param(
        stuck(130, launch=launch(up_for=400), probe=NO_TOKEN),
        State.SERVING,
        id="the first shapes are being compiled",
    ),
    pytest.param(stuck(probe=NO_KEY), State.SERVING, id="a wrong key proves nothing"),
    pytest.param(stuck(probe=NO_API), State.SERVING, id="a missing API proves nothing"),
    pytest.param(stuck(probe=TOKEN), State.SERVING, id="stale gauges: a token came"),
    pytest.param(
        stuck(probe=replace(NO_TOKEN, at=ago(200))),
        State.SERVING,
        id="a request before the silence",
    ),
    pytest.param(
        stuck(probe=replace(NO_TOKEN, refused=True)), State.SERVING, id="a closed port is no hang"
    ),
    pytest.param(
        seen(engines={"0": engine(still=3600)}, probe=NO_TOKEN),
        State.IDLE,
        id="no work, no claim",
    ),
    pytest.param(
        seen(
            load=Load(running=1, waiting=0),
            engines={"0": engine(1, still=3600, own=1)},
            probe=NO_TOKEN,
        ),
        State.IDLE,
        id="only our own request waits",
    ),
    pytest.param(
        seen(engines={"0": engine(still=3600)}, connections=clients(5, waiting=60), probe=NO_TOKEN),
        State.IDLE,
        id="clients that have just come",
    ),
    pytest.param(
        seen(engines={"0": engine(still=3600)}, connections=clients(5, waiting=600), probe=TOKEN),
        State.IDLE,
        id="clients that ask nothing",
    ),
    pytest.param(
        stuck(
            engines={"0": engine(8, 3, still=130, seen=40)},
            scrape=LATE,
            health=LATE,
            scrape_ok_at=ago(40),
            probe=NO_TOKEN,
        ),
        State.SERVING,
        id="what nobody could see is no silence",
    ),
    pytest.param(
        stuck(power=DRAWS_LITTLE, connections=clients(0)),
        State.SERVING,
        id="stale gauges: nobody is connected, and its GPUs rest",
    ),
    pytest.param(
        stuck(power=Power(at=ago(1), drawn=44, least_at_work=45), connections=clients(8)),
        State.SERVING,
        id="its GPUs work",
    ),
    pytest.param(
        stuck(power=Power(at=ago(1), drawn=20, least_at_work=None), connections=clients(8)),
        State.SERVING,
        id="what its GPUs draw at work is not known",
    ),
]


@pytest.mark.parametrize(
    ("witnesses", "state"),
    [
        *ENDED,
        *STARTING,
        *SUSPENDED,
        *WORKING,
        *DEAD_ENGINE,
        *UNREACHABLE,
        *WITHOUT_METRICS,
        *HUNG,
        *NOT_HUNG,
    ],
)
def test_judge(witnesses: Witnesses, state: State) -> None:
    standing = judge(witnesses, NOW)

    assert standing.state is state, standing.because
    assert standing.because
    assert "None" not in standing.because


@pytest.mark.parametrize(
    ("witnesses", "because"),
    [
        pytest.param(
            stuck(probe=NO_TOKEN),
            "no progress for 2 min with 8 running and 3 waiting, and a one-token request failed: "
            "no answer in 20 s",
            id="hung",
        ),
        pytest.param(
            seen(
                load=Load(running=4, waiting=0),
                engines={"0": engine(2), "1": engine(2, still=130)},
                probe=NO_TOKEN,
            ),
            "no progress for 2 min with 2 running and 0 waiting in engine 1, and a one-token "
            "request failed: no answer in 20 s",
            id="which engine",
        ),
        pytest.param(
            seen(
                engines={"0": engine(still=900)},
                connections=clients(1, waiting=130),
                probe=NO_TOKEN,
            ),
            "no progress for 2 min with 1 client connected whose work nothing counts, and a "
            "one-token request failed: no answer in 20 s",
            id="clients",
        ),
        pytest.param(
            stuck(power=DRAWS_LITTLE, connections=clients(8)),
            "no progress for 2 min with 8 running and 3 waiting, and its GPUs draw 20 W, less than "
            "they ever did at work (45 W)",
            id="power",
        ),
        pytest.param(
            seen(
                scrape=REFUSED,
                health=REFUSED,
                scrape_ok_at=ago(90),
                connections=clients(listening=False),
            ),
            "its container runs, but nothing in it listens on port 8000 since 11:58:30 UTC",
            id="nothing listens",
        ),
        pytest.param(
            seen(scrape=REFUSED, health=REFUSED, scrape_ok_at=ago(90), connections=clients()),
            "connections to it are refused since 11:58:30 UTC, though its server listens on port "
            "8000 in its container: look at the port mapping, the firewall and Docker's proxy",
            id="the way there",
        ),
        pytest.param(
            seen(scrape=REFUSED, health=REFUSED, scrape_ok_at=ago(90)),
            "connections to it are refused since 11:58:30 UTC, and whether anything listens in its "
            "container cannot be seen",
            id="nobody can look",
        ),
        pytest.param(
            seen(
                launch=launch(ready=False),
                container=container(started_at=ago(400)),
                loading="shard 3 of 8",
                start_expected=timedelta(seconds=200),
            ),
            "loading for 6 min (shard 3 of 8), longer than the 3 min that its starts may take",
            id="how far a start has come",
        ),
        pytest.param(
            seen(**UNTOLD, probe=TOKEN),
            "shows no metrics of its work; a one-token request was answered at 11:59:55 UTC",
            id="no metrics",
        ),
    ],
)
def test_the_reason_is_one_sentence(witnesses: Witnesses, because: str) -> None:
    assert judge(witnesses, NOW).because == because


def test_a_hang_is_claimed_no_sooner_than_it_may_be() -> None:
    patience = Patience(hung_after=timedelta(seconds=30))

    def state(still: float) -> State:
        return judge(stuck(still, patience=patience, probe=NO_TOKEN), NOW).state

    assert state(30.5) is State.SERVING  # the last scrape was a second ago
    assert state(31) is State.HUNG


def test_a_crash_counts_until_it_serves_again() -> None:
    before = Ending(kind=EndedAs.CRASH, because="x", cause="unknown", at=ago(60), exit_code=0)
    loading = seen(launch=launch(ready=False), previous_ending=before)
    serving = seen(previous_ending=before)

    assert is_crashed(loading, judge(loading, NOW))
    assert not is_crashed(serving, judge(serving, NOW))


@pytest.mark.parametrize("ending", [EndedAs.PERSON, EndedAs.OWN, EndedAs.UNWITNESSED])
def test_other_endings_are_no_crash_while_it_loads(ending: EndedAs) -> None:
    before = Ending(kind=ending, because="x", cause="unknown", at=ago(60), exit_code=0)
    loading = seen(launch=launch(ready=False), previous_ending=before)

    assert not is_crashed(loading, judge(loading, NOW))


def test_a_clock_set_back_makes_nobody_hung() -> None:
    witnesses = stuck(-3600, probe=NO_TOKEN)

    assert judge(witnesses, NOW).state is State.SERVING
