"""Alertmanager's API over a house that a test has filled: what is told, taken and refused."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from sentinel.core.dispatch.board import Gathering, Standing
from sentinel.core.dispatch.silence import Silence
from sentinel.core.model.command import ExpireSilence, PostAlerts, PostedAlert, SetSilence
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient
from sentinel.core.model.labels import Matcher
from tests.api.exchange import exchange, over_unix
from tests.api.fake_board import a_board, an_alert_of
from tests.api.fake_house import NOW, FakeHouse, served

V2 = "/api/v2"
SILENCE = "35360c0f-3945-4cfd-ae5a-fdf2a1bb6a61"
OTHER = "04edef73-743f-4636-b8aa-cd5cf5af79cf"

Ask = Callable[..., tuple[int, Any]]

LOUD = Standing(
    alert=an_alert_of("GPUHot", target="t1-a", incident="i-000007"), receivers=("oncall", "log")
)
SILENCED = Standing(
    alert=an_alert_of("Slow", target="t1-b"), receivers=("oncall",), silenced_by=(SILENCE,)
)
INHIBITED = Standing(
    alert=replace(an_alert_of("Slow", target="t1-c"), generator_url="http://p.example.org/graph"),
    receivers=("log",),
    inhibited_by=(LOUD.alert.fingerprint,),
)


def a_silence(id: str = SILENCE, **more: Any) -> Silence:  # noqa: A002 - the field's name
    return Silence(
        **{
            "id": id,
            "matchers": (Matcher("target", "=", "t1-b"),),
            "starts_at": NOW - timedelta(hours=1),
            "ends_at": NOW + timedelta(hours=1),
            "updated_at": NOW - timedelta(hours=1),
            "created_by": "alice",
            "comment": "换显卡",
            **more,
        }
    )


BOARD = a_board(
    LOUD,
    SILENCED,
    INHIBITED,
    groups=(
        Gathering(labels={"target": "t1-b"}, receiver="oncall", alerts=(SILENCED,)),
        Gathering(labels={"incident": "i-000007"}, receiver="oncall", alerts=(LOUD,)),
        Gathering(
            labels={"alertname": "Slow"}, receiver="log", alerts=(INHIBITED,), muted_by=("nights",)
        ),
    ),
    silences=(a_silence(),),
    config="route: {receiver: oncall}\n",
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeHouse, Path]]:
    house, path = FakeHouse(), tmp_path_factory.mktemp("api") / "s.sock"
    with served(house, path):
        yield house, path


@pytest.fixture
def house(serving: tuple[FakeHouse, Path]) -> FakeHouse:
    serving[0].__dict__.update(FakeHouse(standing=BOARD).__dict__)
    return serving[0]


@pytest.fixture
def ask(serving: tuple[FakeHouse, Path], house: FakeHouse) -> Ask:
    """(method, path, body, parameters) → (status, answer)."""
    assert house is serving[0]

    def asked(method: str, url: str, body: Any = None, **given: Any) -> tuple[int, Any]:
        query = f"?{urlencode(given, doseq=True)}" if given else ""
        return exchange(over_unix(serving[1]), method, f"{V2}/{url}{query}", body)

    return asked


def names(found: list[dict[str, Any]]) -> list[str]:
    return sorted(alert["labels"]["target"] for alert in found)


def test_an_alert_is_shown_as_alertmanager_shows_it(ask: Ask) -> None:
    status, [shown] = ask("GET", "alerts", filter='target="t1-c"')

    assert status == 200
    assert shown == {
        "annotations": {"summary": "Slow of t1-c"},
        "endsAt": "2030-01-01T12:04:00.000Z",
        "fingerprint": INHIBITED.alert.fingerprint,
        "receivers": [{"name": "log"}],
        "startsAt": "2030-01-01T11:55:00.000Z",
        "status": {
            "inhibitedBy": [LOUD.alert.fingerprint],
            "mutedBy": [],
            "silencedBy": [],
            "state": "suppressed",
        },
        "updatedAt": "2030-01-01T12:00:00.000Z",
        "generatorURL": "http://p.example.org/graph",
        "labels": {"alertname": "Slow", "severity": "warning", "target": "t1-c"},
        "sentinel": {"incident": None},
    }


def test_an_alert_with_an_end_keeps_it(ask: Ask, house: FakeHouse) -> None:
    ends = NOW + timedelta(minutes=1)
    house.standing = a_board(replace(LOUD, alert=replace(LOUD.alert, ends_at=ends)))

    [shown] = ask("GET", "alerts")[1]

    assert shown["endsAt"] == "2030-01-01T12:01:00.000Z"
    assert shown["sentinel"] == {"incident": "i-000007"}
    assert "incident" not in shown["labels"]
    assert "generatorURL" not in shown


ALL = ["t1-a", "t1-b", "t1-c"]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param({}, ALL, id="all by default"),
        pytest.param({"active": "false"}, ["t1-b", "t1-c"], id="not those that are told"),
        pytest.param({"silenced": "false"}, ["t1-a", "t1-c"], id="not the silenced"),
        pytest.param({"inhibited": "false"}, ["t1-a", "t1-b"], id="not the inhibited"),
        pytest.param({"unprocessed": "false"}, ALL, id="none is unprocessed"),
        pytest.param({"active": "1", "silenced": "T", "inhibited": ""}, ALL, id="ways to say yes"),
        pytest.param({"active": "maybe"}, ["t1-b", "t1-c"], id="all else is no"),
        pytest.param({"filter": 'alertname="Slow"'}, ["t1-b", "t1-c"], id="one matcher"),
        pytest.param({"filter": ["alertname=Slow", "target!=t1-b"]}, ["t1-c"], id="two matchers"),
        pytest.param({"filter": 'target=~"t1-[ab]"'}, ["t1-a", "t1-b"], id="a pattern, anchored"),
        pytest.param({"filter": 'target=~"t1"'}, [], id="half a value is no match"),
        pytest.param({"filter": '"target"!~"t1-(a|b)"'}, ["t1-c"], id="a name in quotes"),
        pytest.param({"filter": "incident=i-000007"}, ["t1-a"], id="by incident"),
        pytest.param({"filter": 'nothing=""'}, ALL, id="an absent label is empty"),
        pytest.param({"receiver": "log"}, ["t1-a", "t1-c"], id="by receiver"),
        pytest.param({"receiver": "on.*"}, ["t1-a", "t1-b"], id="by pattern of receivers"),
        pytest.param({"receiver": "on"}, [], id="half a receiver is none"),
    ],
)
def test_alerts_are_filtered(ask: Ask, given: dict[str, str], found: list[str]) -> None:
    status, shown = ask("GET", "alerts", **given)

    assert status == 200
    assert names(shown) == found
    assert [a["fingerprint"] for a in shown] == sorted(a["fingerprint"] for a in shown)


@pytest.mark.parametrize("url", ["alerts", "alerts/groups", "silences"])
@pytest.mark.parametrize("given", ["nonsense", 'a=~"("', '{a="b"}', "a=b\x00{", '="x"', ""])
def test_a_filter_that_is_no_matcher_is_refused(ask: Ask, url: str, given: str) -> None:
    status, says = ask("GET", url, filter=given)

    assert status == 400
    assert says.startswith("bad matcher format: ")


@pytest.mark.parametrize("url", ["alerts", "alerts/groups"])
def test_a_receiver_that_is_no_pattern_is_refused(ask: Ask, url: str) -> None:
    status, says = ask("GET", url, receiver="(")

    assert status == 400
    assert says.startswith("failed to parse receiver param: ")


def test_groups_are_shown_as_alertmanager_shows_them(ask: Ask) -> None:
    status, groups = ask("GET", "alerts/groups")

    assert status == 200
    assert [(g["labels"], g["receiver"]["name"], names(g["alerts"])) for g in groups] == [
        ({"alertname": "Slow"}, "log", ["t1-c"]),
        ({"incident": "i-000007"}, "oncall", ["t1-a"]),
        ({"target": "t1-b"}, "oncall", ["t1-b"]),
    ]
    muted = groups[0]["alerts"][0]["status"]
    assert muted["mutedBy"] == ["nights"]
    assert muted["state"] == "suppressed"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        pytest.param({"muted": "false"}, ["t1-a", "t1-b"], id="not the muted"),
        pytest.param({"receiver": "log"}, ["t1-c"], id="by receiver"),
        pytest.param({"silenced": "false", "inhibited": "false"}, ["t1-a"], id="no empty group"),
        pytest.param({"filter": 'incident=~".+"'}, ["t1-a"], id="by matcher"),
    ],
)
def test_groups_are_filtered(ask: Ask, given: dict[str, str], found: list[str]) -> None:
    groups = ask("GET", "alerts/groups", **given)[1]

    assert sorted(names([alert for group in groups for alert in group["alerts"]])) == found


def test_receivers_and_status_are_alertmanagers(ask: Ask) -> None:
    assert ask("GET", "receivers") == (200, [{"name": "oncall"}, {"name": "log"}])

    status, told = ask("GET", "status")

    assert status == 200
    assert told["cluster"] == {"peers": [], "status": "disabled"}
    assert told["config"] == {"original": "route: {receiver: oncall}\n"}
    assert told["uptime"] == "2029-12-29T12:00:00.000Z"
    assert set(told["versionInfo"]) >= {"version", "revision", "branch", "buildUser", "buildDate", "goVersion"}  # fmt: skip


def test_a_silence_is_shown_as_alertmanager_shows_it(ask: Ask) -> None:
    shown = {
        "id": SILENCE,
        "status": {"state": "active"},
        "updatedAt": "2030-01-01T11:00:00.000Z",
        "comment": "换显卡",
        "createdBy": "alice",
        "endsAt": "2030-01-01T13:00:00.000Z",
        "matchers": [{"isEqual": True, "isRegex": False, "name": "target", "value": "t1-b"}],
        "startsAt": "2030-01-01T11:00:00.000Z",
    }

    assert ask("GET", "silences") == (200, [shown])
    assert ask("GET", f"silence/{SILENCE}") == (200, shown)
    assert ask("GET", f"silence/{OTHER}") == (404, "silence not found")


def test_silences_stand_in_the_order_of_their_urgency(ask: Ask, house: FakeHouse) -> None:
    def at(hours: int) -> datetime:
        return NOW + timedelta(hours=hours)

    house.standing = a_board(
        silences=(
            a_silence("over-first", starts_at=at(-9), ends_at=at(-8)),
            a_silence("over-last", starts_at=at(-9), ends_at=NOW),
            a_silence("later", starts_at=at(2), ends_at=at(3)),
            a_silence("soon", starts_at=at(1), ends_at=at(9)),
            a_silence("ends-last", ends_at=at(2)),
            a_silence("ends-first", ends_at=at(1)),
        )
    )

    found = ask("GET", "silences")[1]

    assert [silence["id"] for silence in found] == [
        "ends-first", "ends-last", "soon", "later", "over-last", "over-first",
    ]  # fmt: skip
    states = [silence["status"]["state"] for silence in found]
    assert states == ["active", "active", "pending", "pending", "expired", "expired"]


@pytest.mark.parametrize(
    ("given", "count"),
    [
        pytest.param('target="t1-b"', 1, id="the same matcher"),
        pytest.param('target=~"t1-b"', 0, id="another operator"),
        pytest.param('target="t1-a"', 0, id="another value"),
    ],
)
def test_silences_are_filtered_by_their_own_matchers(ask: Ask, given: str, count: int) -> None:
    assert len(ask("GET", "silences", filter=given)[1]) == count


POSTED = {
    "labels": {"alertname": "X", "empty": "", "null": None, "中": "\ud800"},
    "annotations": {"summary": "s"},
    "startsAt": "2030-01-01T19:59:00.123456789+08:00",
    "endsAt": "0001-01-01T00:00:00.000Z",
    "generatorURL": "http://p.example.org/graph?g0.expr=up%20",
    "somethingNew": {"x": 1},
}


def test_posted_alerts_are_handed_on(ask: Ask, house: FakeHouse) -> None:
    status, says = ask("POST", "alerts", [POSTED, {"labels": {"alertname": "Y"}, "startsAt": ""}])

    assert (status, says) == (200, "")
    [asked] = house.asked
    assert isinstance(asked, PostAlerts)
    assert asked.by
    assert asked.alerts == (
        PostedAlert(
            labels={"alertname": "X", "中": "\ufffd"},
            annotations={"summary": "s"},
            starts_at=datetime(2030, 1, 1, 11, 59, 0, 123456, tzinfo=UTC),
            generator_url="http://p.example.org/graph?g0.expr=up%20",
        ),
        PostedAlert(labels={"alertname": "Y"}),
    )


def test_what_an_alertmanagers_webhook_posts_is_taken(ask: Ask, house: FakeHouse) -> None:
    over = {**GOOD, "status": "resolved", "endsAt": "2030-01-01T11:00:00Z", "fingerprint": "1"}
    firing = {**GOOD, "status": "firing", "endsAt": "0001-01-01T00:00:00Z"}

    webhook = {"version": "4", "groupKey": "{}:{}", "status": "firing", "alerts": [over, firing]}
    assert ask("POST", "alerts", webhook) == (200, "")

    [asked] = house.asked
    assert isinstance(asked, PostAlerts)
    assert [alert.ends_at for alert in asked.alerts] == [NOW - timedelta(hours=1), None]


@pytest.mark.parametrize("body", [b"[]", b"null"])
def test_no_alert_is_nothing_to_ask_for(ask: Ask, house: FakeHouse, body: bytes) -> None:
    assert ask("POST", "alerts", body) == (200, "")
    assert house.asked == []


GOOD = {"labels": {"alertname": "good"}}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        pytest.param({"labels": {}}, "at least one label pair required", id="no label"),
        pytest.param({"labels": {"a": ""}}, "at least one label pair required", id="an empty one"),
        pytest.param({"labels": {"": "x"}}, 'invalid label set: invalid name ""', id="no name"),
        pytest.param(
            {**GOOD, "annotations": {"": "x"}},
            'invalid annotations: invalid name ""',
            id="nor here",
        ),
        pytest.param(
            {**GOOD, "startsAt": "2030-01-01T00:00:00Z", "endsAt": "2029-01-01 00:00:00"},
            "start time must be before end time",
            id="runs backwards",
        ),
    ],
)
def test_one_bad_alert_does_not_cost_the_others(
    ask: Ask, house: FakeHouse, bad: dict[str, Any], says: str
) -> None:
    assert ask("POST", "alerts", [bad, GOOD]) == (400, says)
    [asked] = house.asked
    assert isinstance(asked, PostAlerts)
    assert [alert.labels for alert in asked.alerts] == [{"alertname": "good"}]

    assert ask("POST", "alerts", [bad, bad]) == (400, f"{says}; {says}")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        pytest.param("", 422, 602, id="nothing"),
        pytest.param("x", 400, 400, id="no JSON"),
        pytest.param("[" * 100_000, 400, 400, id="too deep"),
        pytest.param("[NaN]", 400, 400, id="no number"),
        pytest.param("9" * 5000, 400, 400, id="too long a number"),
        pytest.param("{}", 400, 400, id="no list"),
        pytest.param("[1]", 400, 400, id="a number"),
        pytest.param("[null]", 400, 400, id="a null"),
        pytest.param("[{}]", 422, 602, id="without labels"),
        pytest.param('[{"labels": null}]', 422, 602, id="null labels"),
        pytest.param('[{"labels": []}]', 400, 400, id="a list of labels"),
        pytest.param('[{"labels": {"a": 1}}]', 400, 400, id="a number as value"),
        pytest.param('[{"labels": {"a": "b"}, "annotations": 1}]', 400, 400, id="annotations"),
        pytest.param('[{"labels": {"a": "b"}, "startsAt": 5}]', 400, 400, id="a number as time"),
        pytest.param('[{"labels": {"a": "b"}, "startsAt": "now"}]', 400, 400, id="no time"),
        pytest.param(
            '[{"labels": {"a": "b"}, "endsAt": "2030-02-30T00:00:00Z"}]', 400, 400, id="no day"
        ),
        pytest.param(
            '[{"labels": {"a": "b"}, "endsAt": "0001-01-01T00:00:00+08:00"}]', 400, 400, id="before"
        ),
        pytest.param('[{"labels": {"a": "b"}, "generatorURL": "a %%"}]', 422, 601, id="no address"),
    ],
)
def test_a_body_that_breaks_the_schema_is_refused_whole(
    ask: Ask, house: FakeHouse, body: str, status: int, code: int
) -> None:
    got, told = ask("POST", "alerts", body.encode())

    assert got == status
    assert told["code"] == code
    assert told["message"]
    assert house.asked == []


def test_thousands_of_alerts_are_taken_at_once(ask: Ask, house: FakeHouse) -> None:
    many = [{"labels": {"alertname": "X", "n": str(n)}} for n in range(5000)]

    assert ask("POST", "alerts", many) == (200, "")
    [asked] = house.asked
    assert isinstance(asked, PostAlerts)
    assert len(asked.alerts) == 5000


def test_too_much_is_refused(ask: Ask, house: FakeHouse) -> None:
    status, says = ask("POST", "alerts", b"[" + b'{"labels":{}},' * 10_000 + b'{"labels":{}}]')

    assert (status, says) == (413, "more than 10000 alerts in one request")
    assert house.asked == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("9999-12-31T23:59:59.999Z", datetime(9000, 1, 1, tzinfo=UTC), id="far ahead"),
        pytest.param("2030-01-01T12:00:01", NOW + timedelta(seconds=1), id="no zone is UTC"),
    ],
)
def test_a_time_leaves_room_to_reckon_with(
    ask: Ask, house: FakeHouse, given: str, told: datetime
) -> None:
    assert ask("POST", "alerts", [{**GOOD, "endsAt": given}])[0] == 200
    [asked] = house.asked
    assert isinstance(asked, PostAlerts)
    assert asked.alerts[0].ends_at == told


@pytest.mark.parametrize(
    ("refusal", "status"),
    [
        pytest.param(Transient("not now", hint="Wait"), 503, id="not taken"),
        pytest.param(Ambiguous("no answer"), 504, id="perhaps taken"),
        pytest.param(Permanent("the disk is full", status=500), 400, id="refused"),
    ],
)
def test_what_the_loop_does_not_take_is_not_answered_200(
    ask: Ask, house: FakeHouse, refusal: SentinelError, status: int
) -> None:
    house.refuses = refusal

    got, says = ask("POST", "alerts", [GOOD])

    assert got == status
    assert says.startswith(refusal.message)


def test_a_bug_is_one_answer_and_not_the_end(ask: Ask, house: FakeHouse) -> None:
    house.refuses = RuntimeError("a bug")

    assert ask("POST", "alerts", [GOOD])[0] == 500
    assert ask("GET", "alerts")[0] == 200


def a_post(**more: Any) -> dict[str, Any]:
    return {
        "matchers": [{"name": "target", "value": "t1-a", "isRegex": False}],
        "startsAt": "2030-01-01T11:00:00Z",
        "endsAt": "2030-01-01T14:00:00Z",
        "createdBy": "alice",
        "comment": "c",
        **more,
    }


def test_a_silence_is_handed_on_and_its_id_comes_back(ask: Ask, house: FakeHouse) -> None:
    house.answers = {"silenceID": SILENCE}
    matchers = [
        {"name": "a", "value": "b", "isRegex": False},
        {"name": "c", "value": "d.*", "isRegex": True, "isEqual": True},
        {"name": "e", "value": "", "isRegex": False, "isEqual": False},
        {"name": "f-é", "value": "g|h", "isRegex": True, "isEqual": False},
    ]

    assert ask("POST", "silences", a_post(matchers=matchers)) == (200, {"silenceID": SILENCE})
    [asked] = house.asked
    assert isinstance(asked, SetSilence)
    assert asked.id is None
    assert [(m.name, m.op, m.value) for m in asked.matchers] == [
        ("a", "=", "b"), ("c", "=~", "d.*"), ("e", "!=", ""), ("f-é", "!~", "g|h"),
    ]  # fmt: skip
    assert asked.starts_at == NOW - timedelta(hours=1)
    assert asked.ends_at == NOW + timedelta(hours=2)
    assert (asked.created_by, asked.comment) == ("alice", "c")


def test_a_silence_can_be_changed(ask: Ask, house: FakeHouse) -> None:
    assert ask("POST", "silences", a_post(id=SILENCE))[0] == 200
    [asked] = house.asked
    assert isinstance(asked, SetSilence)
    assert asked.id == SILENCE

    house.refuses = Permanent("silence not found", status=404)
    assert ask("POST", "silences", a_post(id=OTHER)) == (404, "silence not found")


A, RE = {"name": "a", "value": "b", "isRegex": False}, {"name": "a", "isRegex": True}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        pytest.param({}, 422, "comment in body is required", id="nothing"),
        pytest.param(a_post(comment=None), 422, "comment in body is required", id="no comment"),
        pytest.param(a_post(endsAt=None), 422, "endsAt in body is required", id="no end"),
        pytest.param(a_post(matchers=[]), 422, "at least 1 items", id="no matcher"),
        pytest.param(a_post(matchers=[{"name": "a"}]), 422, "matchers.0.isRegex in", id="a name"),
        pytest.param(a_post(matchers=[None]), 400, "null is not an object", id="a null"),
        pytest.param(a_post(matchers="a=b"), 400, "a string is not a list", id="text"),
        pytest.param(a_post(matchers=[{**A, "isRegex": "no"}]), 400, "isRegex: a str", id="a flag"),
        pytest.param(a_post(matchers=[{**A, "name": ""}]), 400, "label name", id="a nameless one"),
        pytest.param(a_post(matchers=[{**RE, "value": "("}]), 400, "matcher 0: bad re", id="a pat"),
        pytest.param(a_post(matchers=[{**A, "value": ""}]), 400, "the empty string", id="empty"),
        pytest.param(a_post(matchers=[{**RE, "value": ".*"}]), 400, "the empty string", id="all"),
        pytest.param(
            a_post(endsAt="2030-01-01T11:00:00Z"), 400, "before end time", id="ends as it starts"
        ),
        pytest.param(a_post(endsAt="2030-01-01T11:30:00Z"), 400, "in the past", id="over"),
        pytest.param(a_post(startsAt="x"), 400, "no RFC 3339 time", id="no time"),
        pytest.param([], 400, "a list is not an object", id="a list"),
        pytest.param(b"", 422, "silence in body is required", id="empty body"),
        pytest.param(a_post(comment=1), 400, "comment: a number is not a string", id="a number"),
    ],
)
def test_a_silence_that_is_none_is_refused(
    ask: Ask, house: FakeHouse, body: Any, status: int, says: str
) -> None:
    got, told = ask("POST", "silences", body)

    assert got == status
    assert says in (told if isinstance(told, str) else told["message"])
    assert house.asked == []


def test_a_silence_is_expired_by_its_id(ask: Ask, house: FakeHouse) -> None:
    assert ask("DELETE", f"silence/{SILENCE}") == (200, "")
    [asked] = house.asked
    assert isinstance(asked, ExpireSilence)
    assert asked.id == SILENCE

    house.refuses = Permanent("silence not found", status=404)
    assert ask("DELETE", f"silence/{OTHER}") == (404, "silence not found")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_what_is_no_uuid_is_no_silence(ask: Ask, house: FakeHouse, method: str) -> None:
    status, told = ask(method, "silence/nonsense")

    assert status == 422
    assert told == {"code": 601, "message": 'silenceID in path must be of type uuid: "nonsense"'}
    assert house.asked == []


@pytest.mark.parametrize(
    "url", ["alerts", "alerts/groups", "silences", f"silence/{SILENCE}", "receivers", "status"]
)
def test_while_it_starts_there_is_nothing_to_tell(ask: Ask, house: FakeHouse, url: str) -> None:
    house.standing = None

    assert ask("GET", url) == (503, "Sentinel is still starting")


def test_another_method_or_path_is_none(ask: Ask) -> None:
    assert ask("PUT", "alerts")[0] == 405
    assert ask("GET", "nonsense")[0] == 404


@pytest.mark.parametrize(
    ("method", "url"), [("POST", "alerts"), ("POST", "silences"), ("DELETE", f"silence/{SILENCE}")]
)
def test_over_tcp_a_change_needs_the_token(tmp_path: Path, method: str, url: str) -> None:
    house = FakeHouse(standing=BOARD, answers={"silenceID": SILENCE})
    with served(house, tmp_path / "s.sock", listen="127.0.0.1:0", token=lambda: "secret") as server:
        [address] = server.addresses

        def over_tcp(method: str, url: str, token: str | None) -> int:
            connection = HTTPConnection(address, timeout=10)
            headers = {"authorization": f"Bearer {token}"} if token else {}
            body = json.dumps([GOOD] if url == "alerts" else a_post()).encode()
            return exchange(connection, method, f"{V2}/{url}", body, headers)[0]

        assert over_tcp(method, url, None) == 401
        assert over_tcp(method, url, "wrong") == 401
        assert house.asked == []
        assert over_tcp(method, url, "secret") == 200
        assert over_tcp("GET", "alerts", None) == 200
