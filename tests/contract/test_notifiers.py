"""What every receiver owes its caller. A new one joins by adding one row to KINDS."""

import asyncio
import json
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from sentinel.adapters.audit import AuditNotifier
from sentinel.adapters.log_receiver import LogNotifier
from sentinel.adapters.slack import SlackNotifier
from sentinel.adapters.webhook import WebhookNotifier
from sentinel.adapters.wecom import Mentions, WeComNotifier
from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.message import AlertFacts, DecisionFacts, Notice
from sentinel.outbound import Secret
from sentinel.ports import Notifier
from tests.contract.rude_server import (
    Manner,
    RudeServer,
    answers,
    closes,
    dribbles,
    echoes,
    hangs,
    never_ends,
    page,
    redirects,
    resets,
    says,
    talks_garbage,
)

SECRET = "s3cr3t-0f-this-channel"
SHORT = timedelta(milliseconds=300)

ALERT = AlertFacts(
    status="firing",
    labels={
        "alertname": "VllmContainerExited",
        "severity": "critical",
        "target": "t1-a",
        "host": "gpu-7",
    },
    annotations={"summary": "t1-a is down", "description": "It exited with code 0."},
    starts_at="2030-01-01T03:00:00Z",
    fingerprint="00c0ffee00c0ffee",
    generator_url="http://gpu-7/graph",
)
NOTICE = Notice(
    kind="alert",
    group_key='{}:{incident="i-000007"}',
    group_labels={"incident": "i-000007"},
    alerts=(ALERT,),
    incident={"id": "i-000007", "severity": "critical", "timeline": [{"event": "x"}]},
    decision=DecisionFacts(
        action="restart", would=True, guard="mode", because="mode is watch: nothing is done"
    ),
    headline="exited with code 0 and nobody stopped it",
    facts={"target": "t1-a", "model": "qwen"},
    line={"event": "step_done", "target": "t1-a"},
)

Make = Callable[[Secret, aiohttp.ClientSession], Notifier]


@dataclass(frozen=True)
class Kind:
    make: Make
    taken: Manner
    page: type[SentinelError] | None = Transient  # what a login page with 200 means


KINDS = {
    "audit": Kind(
        lambda url, http: AuditNotifier(url, http, timeout=SHORT), answers(200), page=None
    ),
    "webhook": Kind(
        lambda url, http: WebhookNotifier(url, http, receiver="test", timeout=SHORT),
        answers(200),
        page=None,
    ),
    "slack": Kind(lambda url, http: SlackNotifier(url, http, timeout=SHORT), answers(200, b"ok")),
    "wecom": Kind(
        lambda url, http: WeComNotifier(url, http, timeout=SHORT),
        says({"errcode": 0, "errmsg": "ok"}),
    ),
}


async def _send(make: Make, server: RudeServer, notice: Notice = NOTICE) -> None:
    async with (
        server.running(),
        aiohttp.ClientSession() as http,
        asyncio.timeout(5),  # no receiver may hold its caller up, whatever the server does
    ):
        url = f"http://127.0.0.1:{server.port}/hook/{SECRET}?key={SECRET}"
        await make(lambda: f" {url}\n", http).send(notice)  # a file ends with a newline


def send(make: Make, *manners: Manner, notice: Notice = NOTICE) -> RudeServer:
    server = RudeServer(list(manners))
    asyncio.run(_send(make, server, notice))
    return server


def fail(make: Make, *manners: Manner) -> SentinelError:
    with pytest.raises(SentinelError) as caught:
        send(make, *manners)
    return caught.value


RUDE = {
    "404": (answers(404), Permanent),
    "403": (answers(403), Permanent),
    "410": (answers(410), Permanent),
    "400": (answers(400), Permanent),
    "408": (answers(408), Transient),
    "429": (answers(429), Transient),
    "429 in half an hour": (answers(429, Retry_After="1800"), Transient),
    "500": (answers(500), Transient),
    "502 with a page": (answers(502, b"<html>Bad Gateway</html>"), Transient),
    "503": (answers(503, Retry_After="7"), Transient),
    "echoes the request": (echoes, Permanent),
    "hangs": (hangs, Transient),
    "dribbles": (dribbles, Transient),
    "resets": (resets, Transient),
    "closes": (closes, Transient),
    "talks garbage": (talks_garbage, Transient),
    "moved for good": (redirects(308), Permanent),
    "login page by redirect": (redirects(302), Transient),
}
rude = pytest.mark.parametrize(("manner", "error"), RUDE.values(), ids=RUDE)
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@every_kind
def test_what_is_taken_is_sent_once(kind: Kind) -> None:
    server = send(kind.make, kind.taken)

    assert [request.method for request in server.requests] == ["POST"]
    assert server.requests[0].headers["content-type"].startswith("application/json")
    assert "t1-a" in server.requests[0].body.decode()


@rude
@every_kind
def test_failures_are_sorted(kind: Kind, manner: Manner, error: type[SentinelError]) -> None:
    assert type(fail(kind.make, manner)) is error


@pytest.mark.parametrize("manner", [manner for manner, _ in RUDE.values()], ids=RUDE)
@every_kind
def test_no_failure_tells_the_secret(kind: Kind, manner: Manner) -> None:
    failure = fail(kind.make, manner)

    seen = "".join(traceback.format_exception(failure))
    told = f"{failure!r} {failure.message} {failure.hint} {failure.facts} {seen}"
    assert SECRET not in told
    assert failure.__cause__ is None
    assert failure.__context__ is None


@every_kind
def test_no_notifier_tells_its_secret(kind: Kind) -> None:
    async def shown() -> str:
        async with aiohttp.ClientSession() as http:
            return repr(kind.make(lambda: SECRET, http))

    assert SECRET not in asyncio.run(shown())


@every_kind
def test_nobody_listening_is_transient_and_silent_about_the_address(kind: Kind) -> None:
    async def knock() -> None:
        async with RudeServer([closes]).running() as server:
            port = server.port
        async with aiohttp.ClientSession() as http:
            await kind.make(lambda: f"http://127.0.0.1:{port}/{SECRET}", http).send(NOTICE)

    with pytest.raises(Transient) as caught:
        asyncio.run(knock())
    assert SECRET not in repr(caught.value)
    assert str(caught.value).endswith("no connection could be made")


@pytest.mark.parametrize("status", [429, 503])
@every_kind
def test_retry_after_is_passed_on(kind: Kind, status: int) -> None:
    assert fail(kind.make, answers(status, Retry_After="30")).facts["retry_after"] == 30


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        pytest.param("Tue, 01 Jan 2030 00:02:00 GMT", 120, id="a date, by the server's own clock"),
        pytest.param("Mon, 31 Dec 2029 00:00:00 GMT", 0, id="a date gone by"),
        pytest.param("soon", None, id="nonsense"),
        pytest.param("-5", None, id="negative"),
        pytest.param("٣", None, id="digits of another script"),
        pytest.param("9" * 400, 999999999, id="for ever"),
    ],
)
def test_retry_after_is_read_as_http_writes_it(said: str, seconds: float | None) -> None:
    date = "Tue, 01 Jan 2030 00:00:00 GMT"
    failure = fail(KINDS["webhook"].make, answers(429, Date=date, Retry_After=said))

    assert failure.facts.get("retry_after") == seconds


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@every_kind
def test_a_redirect_is_not_followed(kind: Kind, status: int) -> None:
    server = RudeServer([redirects(status), kind.taken])
    with pytest.raises(SentinelError):
        asyncio.run(_send(kind.make, server))

    assert len(server.requests) == 1


@every_kind
def test_a_login_page_is_success_only_where_any_2xx_is(kind: Kind) -> None:
    if kind.page is None:
        send(kind.make, page)
    else:
        assert type(fail(kind.make, page)) is kind.page


@every_kind
def test_an_endless_answer_is_not_read_to_its_end(kind: Kind) -> None:
    if kind.page is None:
        send(kind.make, never_ends)
    else:
        assert type(fail(kind.make, never_ends)) is kind.page


@pytest.mark.parametrize("url", ["", "not a url", "ftp://h/x", "http://", "http://[::1", "//h/x"])
@every_kind
def test_an_address_that_is_none_is_permanent(kind: Kind, url: str) -> None:
    async def knock() -> None:
        async with aiohttp.ClientSession() as http:
            await kind.make(lambda: url, http).send(NOTICE)

    with pytest.raises(Permanent) as caught:
        asyncio.run(knock())
    assert caught.value.facts["receiver_refused"]
    assert caught.value.hint


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError(2, "No such file"), "(FileNotFoundError)"),
        (UnicodeDecodeError("utf-8", b"", 0, 1, SECRET), "(UnicodeDecodeError)"),
        (Permanent("key may be read by everybody", hint="chmod it"), "by everybody chmod it"),
    ],
)
@every_kind
def test_a_secret_that_cannot_be_read_fails_for_now_and_says_why(
    kind: Kind, error: Exception, told: str
) -> None:
    def missing() -> str:
        raise error

    async def knock() -> None:
        async with aiohttp.ClientSession() as http:
            await kind.make(missing, http).send(NOTICE)

    with pytest.raises(Transient) as caught:
        asyncio.run(knock())
    assert caught.value.message.endswith(told)
    assert SECRET not in repr(caught.value)


@every_kind
def test_a_rotated_secret_is_taken_up_at_the_next_send(kind: Kind) -> None:
    async def rotate() -> list[str]:
        server = RudeServer([kind.taken])
        paths = iter(["old", "new"])
        async with server.running(), aiohttp.ClientSession() as http:
            notifier = kind.make(lambda: f"http://127.0.0.1:{server.port}/{next(paths)}", http)
            await notifier.send(NOTICE)
            await notifier.send(NOTICE)
        return [request.path for request in server.requests]

    assert asyncio.run(rotate()) == ["/old", "/new"]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
@every_kind
def test_a_refused_receiver_is_told_from_a_refused_message(kind: Kind, status: int) -> None:
    assert fail(kind.make, answers(status)).facts.get("receiver_refused")


@pytest.mark.parametrize(
    "text",
    ["\ud800 half a character", "\x00\x1b[31mred", "\u202edrow", "很" * 5000, "&<>" * 5000],
    ids=["surrogate", "control", "direction", "long Chinese", "long markup"],
)
@every_kind
def test_any_text_can_be_sent(kind: Kind, text: str) -> None:
    alert = replace(ALERT, labels={"alertname": text, "target": text}, annotations={"x": text})
    facts = {"target": text, text: text}
    notice = replace(NOTICE, alerts=(alert,), headline=text, facts=facts, line={"facts": facts})

    assert send(kind.make, kind.taken, notice=notice).requests[0].json


# Webhook


def test_the_webhook_says_what_alertmanager_says_and_one_key_more() -> None:
    body = send(KINDS["webhook"].make, answers(200)).requests[0].json

    assert body == {
        "version": "4",
        "groupKey": '{}:{incident="i-000007"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "test",
        "groupLabels": {"incident": "i-000007"},
        "commonLabels": ALERT.labels,
        "commonAnnotations": ALERT.annotations,
        "externalURL": "",
        "alerts": [
            {
                "status": "firing",
                "labels": ALERT.labels,
                "annotations": ALERT.annotations,
                "startsAt": "2030-01-01T03:00:00Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "http://gpu-7/graph",
                "fingerprint": "00c0ffee00c0ffee",
            }
        ],
        "sentinel": {
            "incident": {"id": "i-000007", "severity": "critical"},
            "kind": "alert",
            "decision": {
                "action": "restart",
                "would": True,
                "guard": "mode",
                "because": "mode is watch: nothing is done",
            },
        },
    }


def hook(notice: Notice, **settings: Any) -> dict[str, Any]:
    async def made() -> dict[str, Any]:
        async with aiohttp.ClientSession() as http:
            return WebhookNotifier(lambda: "", http, receiver="r", **settings).payload(notice)

    return asyncio.run(made())


def test_the_group_fires_while_any_alert_does_also_one_left_out() -> None:
    over = replace(ALERT, status="resolved", labels={"alertname": "VllmDown", "target": "t1-a"})
    body = hook(replace(NOTICE, alerts=(over, ALERT)), max_alerts=1)

    assert body["status"] == "firing"
    assert [alert["status"] for alert in body["alerts"]] == ["resolved"]
    assert body["truncatedAlerts"] == 1
    assert hook(replace(NOTICE, alerts=(over,)))["status"] == "resolved"


def test_common_labels_are_those_all_alerts_agree_on() -> None:
    other = replace(ALERT, labels={"alertname": "VllmDown", "target": "t1-a"}, annotations={})
    body = hook(replace(NOTICE, alerts=(ALERT, other)))

    assert body["commonLabels"] == {"target": "t1-a"}
    assert body["commonAnnotations"] == {}


def test_a_notice_without_alerts_or_incident_is_still_a_webhook() -> None:
    bare = Notice(kind="test", group_key="", group_labels={}, alerts=(), incident=None)
    body = hook(bare)

    assert (body["alerts"], body["commonLabels"], body["status"]) == ([], {}, "resolved")
    assert body["sentinel"] == {"incident": None, "kind": "test", "decision": None}


# Slack


def slack(notice: Notice, **settings: Any) -> dict[str, Any]:
    async def made() -> dict[str, Any]:
        async with aiohttp.ClientSession() as http:
            return SlackNotifier(lambda: "", http, **settings).payload(notice)

    return asyncio.run(made())


def test_slack_wakes_nobody_whom_a_name_asks_for() -> None:
    text = slack(replace(NOTICE, headline="<!channel> & <@U1> says ```hi```"))["text"]

    assert "&lt;!channel&gt; &amp; &lt;@U1&gt; says ```hi```" in text
    assert "<" not in text


def test_slack_is_cut_before_it_is_escaped() -> None:
    for pad in range(6):
        text = slack(replace(NOTICE, facts={"log": "x" * pad + "&" * 3000}))["text"]
        assert len(text) <= 3000
        assert text.endswith("…")
        assert "&" not in text.replace("&amp;", "")


def test_slack_mentions_when_somebody_is_wanted_and_not_when_it_is_over() -> None:
    over = replace(ALERT, status="resolved")
    mention = ["U123", "S456"]

    assert slack(NOTICE, mention=mention)["text"].startswith("<@U123> <!subteam^S456>\n")
    resolved = replace(NOTICE, kind="resolved", alerts=(over,))
    assert "U123" not in slack(resolved, mention=mention)["text"]


def test_slack_unfurls_nothing() -> None:
    payload = slack(NOTICE)

    assert (payload["unfurl_links"], payload["unfurl_media"]) == (False, False)


@pytest.mark.parametrize(
    ("status", "said", "receiver"),
    [
        (404, b"no_service", True),
        (403, b"action_prohibited", True),
        (410, b"channel_is_archived", True),
        (400, b"invalid_payload", False),
        (400, b"user_not_found", True),
    ],
)
def test_slack_says_why_for_good(status: int, said: bytes, receiver: bool) -> None:
    failure = fail(KINDS["slack"].make, answers(status, said))

    assert type(failure) is Permanent
    assert said.decode() in failure.message
    assert bool(failure.facts.get("receiver_refused")) is receiver


@pytest.mark.parametrize("body", [b"", b"no", b"okay", b'{"ok": false}', b"null"])
def test_slack_took_it_only_if_it_says_so(body: bytes) -> None:
    assert type(fail(KINDS["slack"].make, answers(200, body))) is Transient


# WeCom


def wecom(notice: Notice, **settings: Any) -> dict[str, Any]:
    server = send(
        lambda url, http: WeComNotifier(url, http, **settings), KINDS["wecom"].taken, notice=notice
    )
    found: dict[str, Any] = server.requests[0].json
    return found


@pytest.mark.parametrize(
    ("code", "error", "facts"),
    [
        (93000, Permanent, {"receiver_refused": True}),
        (45009, Transient, {"retry_after": 60.0}),
        (-1, Transient, {"at_most": 8}),
        (40008, Transient, {"at_most": 8}),
        (40058, Permanent, {}),
    ],
)
def test_wecom_fails_by_its_errcode_although_http_says_200(
    code: int, error: type[SentinelError], facts: dict[str, object]
) -> None:
    told = {"errcode": code, "errmsg": f"invalid webhook url {SECRET}, from ip: 1.2.3.4"}
    failure = fail(KINDS["wecom"].make, says(told))

    assert type(failure) is error
    assert facts.items() <= failure.facts.items()
    assert failure.facts["errcode"] == code
    assert SECRET not in f"{failure} {failure.facts} {failure.hint}"


@pytest.mark.parametrize(
    "told",
    [{}, [], "ok", None, {"errcode": None}, {"errcode": "0"}, {"errcode": False}, {"ok": True}],
)
def test_wecom_took_it_only_if_errcode_is_zero(told: object) -> None:
    assert type(fail(KINDS["wecom"].make, says(told))) is Transient


def test_wecom_survives_deeply_nested_json() -> None:
    assert type(fail(KINDS["wecom"].make, answers(200, b"[" * 60_000))) is Transient


def test_wecom_shortens_once_what_is_too_long() -> None:
    notice = replace(NOTICE, facts={"log": "很" * 5000})
    server = send(
        KINDS["wecom"].make, says({"errcode": 40058}), says({"errcode": 0}), notice=notice
    )

    first, second = (len(r.json["markdown"]["content"].encode()) for r in server.requests)
    assert 4090 < first <= 4096
    assert 2040 < second <= 2048


def test_wecom_gives_up_when_the_shortened_one_is_too_long_too() -> None:
    server = RudeServer([says({"errcode": 40058})])
    with pytest.raises(Permanent):
        asyncio.run(_send(KINDS["wecom"].make, server))

    assert len(server.requests) == 2


@pytest.mark.parametrize(("kind", "most"), [("markdown", 4096), ("text", 2048)])
def test_wecom_counts_bytes_and_cuts_between_characters(kind: str, most: int) -> None:
    for pad in range(4):
        notice = replace(NOTICE, facts={"log": "x" * pad + "很😀" * 3000})
        body = wecom(notice, message_type=kind)
        content = body[kind]["content"]
        assert body["msgtype"] == kind
        assert most - 8 < len(content.encode()) <= most
        assert content.endswith("…")


@pytest.mark.parametrize("evil", ["<@all>", "<font color='warning'>", "</font>", "[x](http://y)"])
@pytest.mark.parametrize("kind", ["markdown", "text"])
def test_wecom_takes_no_orders_from_a_name(kind: str, evil: str) -> None:
    content = wecom(replace(NOTICE, headline=evil, facts={"t": evil}), message_type=kind)[kind][
        "content"
    ]

    assert evil not in content
    assert content.count(evil.replace("<", "<\u200b").replace("](", "]\u200b(")) == 2


def test_wecom_leaves_a_comparison_as_it_is() -> None:
    because = "KV cache usage 0.91 < 0.95 and waiting <= 3"
    decision = DecisionFacts(action="restart", would=True, guard="unconfirmed", because=because)

    assert because in wecom(replace(NOTICE, decision=decision))["markdown"]["content"]


@pytest.mark.parametrize(
    ("mentions", "kind"),
    [
        pytest.param(Mentions(users=("bo", "li")), "markdown", id="users: markdown can"),
        pytest.param(Mentions(users=("bo", "@all")), "text", id="everybody: only text can"),
        pytest.param(Mentions(mobiles=("13800000000",)), "text", id="mobiles: only text can"),
    ],
)
def test_wecom_mentions_by_the_message_that_can(mentions: Mentions, kind: str) -> None:
    body = wecom(NOTICE, mentions=mentions)

    assert body["msgtype"] == kind
    if kind == "markdown":
        assert body[kind]["content"].startswith("<@bo><@li>\n")
    else:
        assert body[kind].get("mentioned_list", []) == list(mentions.users)
        assert body[kind].get("mentioned_mobile_list", []) == list(mentions.mobiles)


def test_wecom_mentions_nobody_when_it_is_over() -> None:
    notice = replace(NOTICE, kind="resolved", alerts=(replace(ALERT, status="resolved"),))
    body = wecom(notice, message_type="text", mentions=Mentions(users=("@all",)))

    assert "@all" not in json.dumps(body)


# Log


def test_the_log_receiver_writes_one_line_with_the_reason() -> None:
    with capture_logs() as lines:
        asyncio.run(LogNotifier().send(NOTICE))

    (line,) = lines
    assert line["log_level"] == "warning"
    assert (line["kind"], line["guard"], line["incident"]) == ("alert", "mode", "i-000007")
    assert line["because"] == "mode is watch: nothing is done"
    assert "t1-a" in line["title"]
