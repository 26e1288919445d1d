"""An outside Prometheus, and everything else that may answer in its place."""

import asyncio
import base64
import json
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sentinel.adapters.clock import MachineClock
from sentinel.adapters.prometheus_source import PrometheusSource
from sentinel.config.evaluation import PrometheusSource as Setting
from sentinel.core.alerting.outside import Answer, Answers, Question
from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.promql import Sample
from tests.contract import rude_server as rude
from tests.contract.rude_server import Manner, Request, RudeServer

AT = datetime(2030, 1, 1, tzinfo=UTC)
UP = Question("up == 0", AT)
WAITING = Question("vllm:num_requests_waiting > 5", AT)


def vector(*elements: tuple[dict[str, str], str], **more: Any) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1893456000, value]} for labels, value in elements]
    data = {"resultType": "vector", "result": result}
    return {"status": "success", "data": data, **more}


ONE = vector(({"__name__": "up", "target": "t1-a"}, "0"))


def error(kind: str, text: str) -> dict[str, str]:
    return {"status": "error", "errorType": kind, "error": text}


def ask(
    *manners: Manner,
    questions: tuple[Question, ...] = (UP,),
    within: float = 5.0,
    path: str = "",
    **http: Any,
) -> tuple[Answers, list[Request]]:
    async def main() -> tuple[Answers, list[Request]]:
        server = RudeServer(list(manners))
        async with server.running():
            setting = Setting.model_validate(
                {"url": f"http://127.0.0.1:{server.port}{path}", "http_config": http}
            )
            source = PrometheusSource(setting, {}, MachineClock())
            span = timedelta(seconds=within)
            found = await asyncio.to_thread(source.ask, questions, within=span)
            return found, server.requests

    return asyncio.run(main())


def broken(*manners: Manner, **more: Any) -> SentinelError:
    found, _ = ask(*manners, **more)
    assert found.outcomes == {}
    assert found.broken is not None
    return found.broken


def outcome(*manners: Manner, **more: Any) -> Answer | SentinelError:
    found, _ = ask(*manners, **more)
    assert found.broken is None
    return found.outcomes[UP]


def test_an_expression_is_asked_at_its_instant_and_its_vector_comes_back() -> None:
    found, [request] = ask(rude.says(ONE), path="/prometheus/")

    assert found.outcomes == {UP: Answer((Sample((("__name__", "up"), ("target", "t1-a")), 0.0),))}
    assert request.path.startswith("/prometheus/api/v1/query?")
    asked = parse_qs(urlsplit(request.path).query)
    assert (asked["query"], asked["time"]) == (["up == 0"], [f"{AT.timestamp():.3f}"])
    assert 0 < int(asked["timeout"][0].removesuffix("ms")) <= 2500  # no fraction: it is refused


@pytest.mark.parametrize(
    ("told", "values"),
    [
        pytest.param(vector(), [], id="nothing"),
        pytest.param(vector(({}, "1e3"), ({"a": "b"}, "+Inf")), [1000.0, float("inf")], id="many"),
        pytest.param(
            {"status": "success", "data": {"resultType": "scalar", "result": [1893456000.5, "3"]}},
            [3.0],
            id="a scalar",
        ),
    ],
)
def test_what_a_rule_may_return_is_read(told: object, values: list[float]) -> None:
    found = outcome(rude.says(told))

    assert isinstance(found, Answer)
    assert [sample.value for sample in found.vector] == values


def test_an_empty_label_is_no_label() -> None:
    found = outcome(rude.says(vector(({"a": "", "b": "c"}, "1"))))

    assert found == Answer((Sample((("b", "c"),), 1.0),))


@pytest.mark.parametrize(
    ("warning", "partial"),
    [
        ("remote_read: store unreachable", True),
        ("PromQL info: metric might not be a counter", False),
    ],
)
def test_warnings_are_kept_and_say_whether_series_may_be_missing(
    warning: str, partial: bool
) -> None:
    found = outcome(rude.says(vector(warnings=[warning])))

    assert found == Answer((), (warning,))
    assert isinstance(found, Answer)
    assert found.is_partial is partial


@pytest.mark.parametrize(
    ("status", "told", "kind", "says"),
    [
        (400, error("bad_data", "parse error"), Permanent, "parse error"),
        (422, error("execution", "many-to-many"), Permanent, "many-to-many"),
        (503, error("timeout", "query timed out"), Transient, "timed out"),
        (500, error("internal", "x\ny\x1b[1m" * 999), Transient, "Prometheus: x y [1m"),
        (200, error("execution", "said with 200"), Permanent, "said with 200"),
    ],
)
def test_what_prometheus_says_against_one_expression_is_that_ones_outcome(
    status: int, told: object, kind: type[SentinelError], says: str
) -> None:
    found, requests = ask(rude.says(told, status), rude.says(ONE), questions=(UP, WAITING))

    assert found.broken is None
    refused, answered = found.outcomes[UP], found.outcomes[WAITING]
    assert isinstance(refused, kind)
    assert says in refused.message
    assert len(refused.message) < 400
    assert isinstance(answered, Answer)
    assert len(requests) == 2


@pytest.mark.parametrize(
    "result",
    [
        pytest.param([{"metric": {}, "histogram": [1, {"count": "1"}]}], id="a histogram"),
        pytest.param([{"metric": {}, "values": [[1, "1"]]}], id="a matrix"),
        pytest.param([{"metric": {"a": 1}, "value": [1, "1"]}], id="a label that is no text"),
        pytest.param([{"metric": {}, "value": [1, "many"]}], id="a value that is no number"),
        pytest.param([{"metric": {}, "value": [1, 1]}], id="a value that is not as it should be"),
        pytest.param([{"metric": [], "value": [1, "1"]}], id="labels that are none"),
        pytest.param([None], id="null in it"),
        pytest.param(None, id="null"),
        pytest.param({}, id="a map"),
        pytest.param("text", id="text"),
        pytest.param(7, id="a number"),
    ],
)
def test_a_result_that_is_no_vector_is_never_an_empty_one(result: object) -> None:
    found = outcome(rude.says({"status": "success", "data": {"result": result}}))

    assert isinstance(found, Permanent)


def test_data_without_a_result_is_never_an_empty_vector() -> None:
    nothings: list[object] = [{}, None, [], "x"]
    for data in nothings:
        assert isinstance(outcome(rude.says({"status": "success", "data": data})), Permanent)


@pytest.mark.parametrize(
    ("manner", "kind", "says"),
    [
        pytest.param(rude.page, Permanent, "no Prometheus", id="a login page"),
        pytest.param(rude.answers(200), Permanent, "no Prometheus", id="nothing"),
        pytest.param(rude.says([1]), Permanent, "no Prometheus", id="other JSON"),
        pytest.param(rude.says({"status": "ok"}), Permanent, "no Prometheus", id="another service"),
        pytest.param(rude.answers(200, b"[" * 99_999), Permanent, "no Prometheus", id="deep JSON"),
        pytest.param(rude.answers(200, b"\xff\xfe{"), Permanent, "no Prometheus", id="no text"),
        pytest.param(rude.answers(401, b"who?"), Permanent, "answers 401", id="401"),
        pytest.param(rude.answers(404, b"404 page not found"), Permanent, "answers 404", id="404"),
        pytest.param(rude.answers(429), Transient, "answers 429", id="429"),
        pytest.param(rude.answers(503, b"Service Unavailable"), Transient, "503", id="starting"),
        pytest.param(rude.answers(502, b"<html>"), Transient, "answers 502", id="a proxy alone"),
        pytest.param(rude.answers(302), Permanent, "answers 302", id="to nowhere"),
        pytest.param(rude.redirects(307), Permanent, "answers 307", id="in circles"),
        pytest.param(
            rude.answers(302, Location="ftp://127.0.0.1/x"), Permanent, "302", id="not to HTTP"
        ),
        pytest.param(rude.answers(302, Location="http://["), Permanent, "302", id="to nonsense"),
        pytest.param(rude.talks_garbage, Transient, "broken off", id="garbage"),
        pytest.param(rude.closes, Transient, "broken off", id="closed"),
        pytest.param(rude.resets, Transient, "reset", id="reset"),
        pytest.param(rude.never_ends, Permanent, "8 MiB", id="without end"),
    ],
)
def test_what_anybody_else_says_ends_the_batch(
    manner: Manner, kind: type[SentinelError], says: str
) -> None:
    found, _ = ask(manner, questions=(UP, WAITING))

    assert found.outcomes == {}
    assert isinstance(found.broken, kind)
    assert says in found.broken.message
    assert (found.broken.__cause__, found.broken.__context__) == (None, None)


@pytest.mark.parametrize("manner", [rude.hangs, rude.dribbles], ids=["silent", "dribbling"])
def test_an_answer_that_does_not_come_ends_in_time(manner: Manner) -> None:
    begun = time.monotonic()

    found = broken(manner, within=0.3)

    assert isinstance(found, Transient)
    assert "in time" in found.message
    assert time.monotonic() - begun < 1.5


def test_what_was_answered_before_the_end_counts() -> None:
    found, _ = ask(rude.says(ONE), rude.hangs, questions=(UP, WAITING), within=0.3)

    assert set(found.outcomes) == {UP}
    assert isinstance(found.broken, Transient)


def test_nobody_there_is_transient() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    setting = Setting(url=f"http://127.0.0.1:{port}")

    found = PrometheusSource(setting, {}, MachineClock()).ask([UP], within=timedelta(seconds=1))

    assert isinstance(found.broken, Transient)
    assert "refused" in found.broken.message


def test_after_a_failure_the_same_source_asks_anew() -> None:
    async def main() -> tuple[Answers, Answers]:
        server = RudeServer([rude.resets, rude.says(ONE)])
        async with server.running():
            setting = Setting(url=f"http://127.0.0.1:{server.port}")
            source = PrometheusSource(setting, {}, MachineClock())
            span = timedelta(seconds=2)
            return (
                await asyncio.to_thread(source.ask, [UP], within=span),
                await asyncio.to_thread(source.ask, [UP], within=span),
            )

    first, second = asyncio.run(main())
    assert first.broken is not None
    assert isinstance(second.outcomes[UP], Answer)


def test_one_request_is_made_for_each_question_and_none_is_repeated() -> None:
    _, requests = ask(rude.answers(503), questions=(UP, WAITING))

    assert len(requests) == 1


async def moved(request: Request, writer: asyncio.StreamWriter) -> None:
    manner = rude.says(ONE) if request.path == "/there" else rude.answers(302, Location="/there")
    await manner(request, writer)


def test_redirects_are_followed_if_they_may_be() -> None:
    assert isinstance(outcome(moved), Answer)
    assert "answers 302" in broken(moved, follow_redirects=False).message


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("t0psecret\n")
    file.chmod(0o600)
    return file


def test_it_signs_in_as_configured(token: Path) -> None:
    basic = {"username": "sentinel", "password": "pässword"}
    ways: list[tuple[dict[str, Any], str | None]] = [
        ({"bearer_token_file": token}, "Bearer t0psecret"),
        ({"authorization": {"type": "Token", "credentials_file": token}}, "Token t0psecret"),
        ({"basic_auth": basic}, f"Basic {base64.b64encode('sentinel:pässword'.encode()).decode()}"),
        ({}, None),
    ]
    for http, expected in ways:
        _, [request] = ask(rude.says(ONE), **http)
        assert request.headers.get("authorization") == expected


def test_further_headers_are_sent(token: Path) -> None:
    headers = {"X-Scope-OrgID": {"values": ["gpu"]}, "X-Key": {"files": [token]}}

    _, [request] = ask(rude.says(ONE), http_headers=headers)

    assert request.headers["x-scope-orgid"] == "gpu"
    assert request.headers["x-key"] == "t0psecret"


def test_a_proxy_is_used_when_given() -> None:
    async def main() -> str:
        proxy = RudeServer([rude.says(ONE)])
        async with proxy.running():
            setting = Setting.model_validate(
                {
                    "url": "http://prometheus.example:9090",
                    "http_config": {"proxy_url": f"http://u:p@127.0.0.1:{proxy.port}"},
                }
            )
            source = PrometheusSource(setting, {}, MachineClock())
            await asyncio.to_thread(source.ask, [UP], within=timedelta(seconds=2))
            return proxy.requests[0].path

    assert asyncio.run(main()).startswith("http://prometheus.example:9090/api/v1/query?")


def test_no_failure_tells_a_secret(token: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_text("t0psecret\nagain")
    bad.chmod(0o600)
    cases: list[tuple[Manner, dict[str, Any]]] = [
        (rude.echoes, {"bearer_token_file": token}),
        (rude.resets, {"basic_auth": {"username": "u", "password": "t0psecret"}}),
        (rude.says(ONE), {"bearer_token_file": bad}),
        (rude.says(ONE), {"proxy_url": "http://u:t0psecret@127.0.0.1:1"}),
    ]
    for manner, http in cases:
        found, _ = ask(manner, **http)
        assert found.broken is not None, http
        assert "t0psecret" not in f"{found.broken!r} {found.broken.hint} {found.broken.facts}"
        assert found.broken.__context__ is None


@pytest.mark.parametrize(
    "http",
    [
        {"oauth2": {"client_id": "a", "client_secret": "b", "token_url": "https://a.example"}},
        {"tls_config": {"ca": "no certificate"}},
        {"tls_config": {"ca_file": "/nowhere/ca.pem"}},
        {"bearer_token_file": "/nowhere/token"},
    ],
)
def test_what_cannot_be_done_as_configured_is_said(http: dict[str, Any]) -> None:
    assert isinstance(broken(rude.says(ONE), **http), Permanent)


def test_a_daemon_without_the_setting_never_imports_the_package() -> None:
    script = (
        "import sys, sentinel.adapters.prometheus_source;"
        "assert not [m for m in sys.modules if m.startswith('prometheus_api_client')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_that_the_package_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_api_client", None)

    found = broken(rude.says(ONE))

    assert isinstance(found, Permanent)
    assert "prometheus-api-client is not installed" in found.message
    assert "vllm-sentinel[prometheus]" in found.hint


def test_a_large_answer_of_the_allowed_size_is_read() -> None:
    many = vector(*(({"pod": f"p{n:05}"}, "1") for n in range(20_000)))
    assert len(json.dumps(many)) > 1 << 20

    found = outcome(rude.says(many))

    assert isinstance(found, Answer)
    assert len(found.vector) == 20_000
