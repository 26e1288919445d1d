import getpass
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.command import (
    Acknowledge,
    Approve,
    Command,
    Pause,
    Reject,
    Reload,
    Resume,
)
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient
from tests.api.exchange import exchange, over_unix
from tests.api.fake_house import (
    NOW,
    FakeHouse,
    a_target,
    an_alert,
    an_explanation,
    an_incident,
    served,
)

V1 = "/api/sentinel/v1"
ME = getpass.getuser()

Ask = Callable[..., tuple[int, Any]]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeHouse, Path]]:
    """One server for all tests here: starting and stopping one takes a fifth of a second."""
    house, path = FakeHouse(), tmp_path_factory.mktemp("api") / "s.sock"
    with served(house, path):
        yield house, path


@pytest.fixture
def house(serving: tuple[FakeHouse, Path]) -> FakeHouse:
    serving[0].__dict__.update(FakeHouse().__dict__)
    return serving[0]


@pytest.fixture
def ask(serving: tuple[FakeHouse, Path], house: FakeHouse) -> Ask:
    """Ask over the unix socket: (method, path, body) → (status, answer)."""
    assert house is serving[0]
    return lambda method, url, body=None: exchange(over_unix(serving[1]), method, url, body)


def test_status_is_the_contract_key_by_key(ask: Ask, house: FakeHouse) -> None:
    house.show(targets=[a_target(state="failed")], alerts=[an_alert()], problems=["Docker"])

    status, got = ask("GET", f"{V1}/status")

    assert status == 200
    assert set(got) >= {"at", "age_seconds", "ok", "daemon", "targets", "alerts", "approvals", "problems"}  # fmt: skip
    assert got["daemon"] == {
        "reachable": True,
        "version": "0.1.0",
        "mode": "act",
        "started_at": "2029-12-29T08:00:00Z",
        "paused_until": None,
    }
    assert got["at"] == "2030-01-01T12:00:00.000Z"
    assert got["ok"] is False
    assert got["targets"] == [a_target(state="failed")]
    assert got["alerts"] == [an_alert()]
    assert got["problems"] == ["Docker"]


def test_the_age_is_that_of_the_picture_not_of_the_answer(ask: Ask, house: FakeHouse) -> None:
    house.picture = replace(house.picture, at=NOW - timedelta(seconds=42))

    assert ask("GET", f"{V1}/status")[1]["age_seconds"] == 42.0


def test_a_number_that_is_none_is_null(ask: Ask, house: FakeHouse) -> None:
    house.show(alerts=[an_alert(value=float("nan")), an_alert(value=float("inf"))])

    assert [alert["value"] for alert in ask("GET", f"{V1}/status")[1]["alerts"]] == [None, None]


def test_broken_text_from_a_container_does_not_break_the_answer(ask: Ask, house: FakeHouse) -> None:
    house.show(problems=["log says \udc80 显存不足"])

    assert ask("GET", f"{V1}/status")[1]["problems"] == ["log says \udc80 显存不足"]


def test_before_the_first_look_status_is_503_with_a_way_out(ask: Ask, house: FakeHouse) -> None:
    house.picture = replace(house.picture, ready=False, status={})

    status, got = ask("GET", f"{V1}/status")

    assert status == 503
    assert got["error"]["code"] == "unavailable"
    assert got["error"]["hint"]


def test_a_daemon_that_is_not_ready_still_says_what_stops_it(ask: Ask, house: FakeHouse) -> None:
    house.show(targets=[], problems=["Docker does not answer"])
    house.picture = replace(house.picture, ready=False)

    assert ask("GET", f"{V1}/status")[1]["problems"] == ["Docker does not answer"]


def test_explain_gives_witnesses_their_age_now(ask: Ask) -> None:
    status, got = ask("GET", f"{V1}/explain/t1-a")

    assert status == 200
    assert got["witnesses"][0]["age_seconds"] == 2.0
    assert set(got) == set(an_explanation())


def test_explaining_what_is_not_there_names_what_is(ask: Ask) -> None:
    status, got = ask("GET", f"{V1}/explain/t1-z")

    assert status == 404
    assert "t1-a" in got["error"]["hint"]


def test_incidents_and_one_incident(ask: Ask, house: FakeHouse) -> None:
    assert ask("GET", f"{V1}/incidents?limit=5&status=open") == (
        200,
        {"incidents": [an_incident()]},
    )
    assert house.last_query == (5, "open")
    assert ask("GET", f"{V1}/incidents/i-000007") == (200, an_incident())
    assert ask("GET", f"{V1}/incidents/i-000008")[0] == 404
    assert set(ask("GET", f"{V1}/intents")[1]["intents"][0]) == set(an_incident()["intents"][0])


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=-1", "limit=%C2%B2", "status=shut"])
def test_a_bad_query_is_named(ask: Ask, query: str) -> None:
    status, got = ask("GET", f"{V1}/incidents?{query}")

    assert status == 400
    assert got["error"]["message"].startswith(query.split("=", maxsplit=1)[0])


@pytest.mark.parametrize(
    ("url", "body", "command"),
    [
        ("pause", None, Pause(by=ME)),
        ("pause", {}, Pause(by=ME)),
        ("pause", {"target": None, "for": None}, Pause(by=ME)),
        ("pause", {"target": "t1-a", "for": "1h30m"}, Pause(by=ME, target="t1-a", for_=timedelta(minutes=90))),
        ("resume", {"target": "t1-a"}, Resume(by=ME, target="t1-a")),
        ("resume", None, Resume(by=ME)),
        ("reload", None, Reload(by=ME)),
        ("intents/n-000012/approve", None, Approve(by=ME, intent="n-000012")),
        ("intents/n-000012/reject", {"because": "not now"}, Reject(by=ME, intent="n-000012", because="not now")),
        ("intents/n-000012/reject", None, Reject(by=ME, intent="n-000012")),
        ("incidents/i-000007/ack", None, Acknowledge(by=ME, incident="i-000007")),
    ],
)  # fmt: skip
def test_a_command_reaches_the_loop_with_who_asked(
    ask: Ask, house: FakeHouse, url: str, body: Any, command: Command
) -> None:
    assert ask("POST", f"{V1}/{url}", body) == (200, {"done": True})
    assert house.asked == [command]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param(b"{", 400, "not JSON", id="malformed"),
        pytest.param(b"\xff\xfe", 400, "not JSON", id="not text"),
        pytest.param(b"[" * 5000, 400, "not JSON", id="too deep"),
        pytest.param([], 400, "object", id="a list"),
        pytest.param({"until": "1h"}, 400, "until: unknown key", id="misspelt key"),
        pytest.param({"for": 3600}, 400, "for: must be a string", id="number without a unit"),
        pytest.param({"for": "soon"}, 400, "for: ", id="not a duration"),
        pytest.param({"for": "0"}, 400, "for: ", id="no time at all"),
        pytest.param({"target": "t1-z"}, 404, "t1-z", id="no such target"),
        pytest.param(b" " * 70_000, 413, "larger", id="too large"),
    ],
)
def test_a_bad_body_asks_for_nothing_and_says_why(
    ask: Ask, house: FakeHouse, body: Any, status: int, says: str
) -> None:
    got_status, got = ask("POST", f"{V1}/pause", body)

    assert got_status == status
    assert says in got["error"]["message"]
    assert house.asked == []


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Permanent("it is closed already"), 409, "conflict"),
        (Permanent("there is none", status=404), 404, "not_found"),
        (Transient("the loop is busy"), 503, "unavailable"),
        (Ambiguous("no answer in time"), 504, "ambiguous"),
        (SentinelError("broken"), 500, "internal"),
    ],
)
def test_each_kind_of_refusal_has_its_status(
    ask: Ask, house: FakeHouse, error: SentinelError, status: int, code: str
) -> None:
    house.refuses = error

    got_status, got = ask("POST", f"{V1}/intents/n-000012/approve")

    assert (got_status, got["error"]["code"]) == (status, code)
    assert got["error"]["message"] == error.message


def test_a_refused_configuration_is_422_and_for_prometheus_clients_500(
    ask: Ask, house: FakeHouse
) -> None:
    house.refuses = Permanent("sentinel.yaml:3:1: colour: unknown key")

    assert ask("POST", f"{V1}/reload")[0] == 422
    assert ask("POST", "/-/reload") == (
        500,
        "failed to reload config: sentinel.yaml:3:1: colour: unknown key\n",
    )


def test_one_request_that_breaks_is_a_500_and_the_next_is_answered(
    ask: Ask, house: FakeHouse
) -> None:
    house.refuses = RuntimeError("secret detail")

    status, got = ask("GET", f"{V1}/incidents")

    assert status == 500
    assert "secret" not in str(got)
    assert ask("GET", f"{V1}/status")[0] == 200


@pytest.mark.parametrize(
    ("method", "url", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", f"{V1}/status/", 404),
        ("POST", f"{V1}/status", 405),
        ("GET", f"{V1}/pause", 405),
        ("GET", "/api/v1/nowhere", 404),
        ("GET", "/api/v2/nowhere", 404),
    ],
)
def test_what_is_not_there_is_said_as_json(ask: Ask, method: str, url: str, status: int) -> None:
    got_status, got = ask(method, url)

    assert got_status == status
    assert set(got["error"]) == {"code", "message", "hint"}


def test_the_paths_of_prometheus(ask: Ask, house: FakeHouse) -> None:
    assert ask("GET", "/")[0] == 200
    assert ask("GET", "/-/healthy") == (200, "Sentinel is Healthy.\n")
    assert ask("GET", "/-/ready") == (200, "Sentinel is Ready.\n")
    assert ask("GET", "/metrics") == (200, "sentinel_build_info 1\n")
    assert ask("POST", "/-/reload") == (200, "")
    assert house.asked == [Reload(by=ME)]
    house.picture = replace(house.picture, ready=False)
    assert ask("GET", "/-/ready") == (503, "Service Unavailable\n")
    assert ask("GET", "/-/healthy")[0] == 200
