"""Prometheus's API where no old Prometheus can be the judge, and where Sentinel is its own."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.api.prometheus import desk
from sentinel.api.prometheus.copies import Description, Judged, Scraped
from sentinel.core.alerting.advance import ActiveAlert
from sentinel.core.alerting.rule import AlertRule, RecordingRule, RuleGroup
from sentinel.core.model.errors import Permanent, Transient
from sentinel.core.promql import compile_expression
from tests.api.exchange import exchange, over_unix
from tests.api.fake_house import FakeHouse, served, wait_until
from tests.api.library import T0, Client, Library

AT = datetime(2030, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
def library() -> Library:
    made = Library()
    made.fill(
        {
            T0 + 5 * k: [
                ("up", {"target": "a"}, 1.0),
                ("up", {"target": "b"}, 0.0),
                ("q.size", {"a/b": "x"}, float(k)),
            ]
            for k in range(10)
        }
    )
    return made


@pytest.fixture(scope="module")
def house_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeHouse, Path]]:
    """One server for all: starting one takes longer than a test."""
    house, path = FakeHouse(), tmp_path_factory.mktemp("api") / "s.sock"
    with served(house, path):
        yield house, path


@pytest.fixture
def client(library: Library, house_of_all: tuple[FakeHouse, Path]) -> Client:
    house, path = house_of_all
    house.library = library
    return Client(path)


NOW = {"time": str(T0 + 45)}
SPAN = {"start": str(T0), "end": str(T0 + 45), "step": "5"}


@pytest.mark.parametrize(
    ("where", "parameters", "count"),
    [
        ("query", {"query": "up", **NOW}, 2),
        ("query", {"query": "up[20s]", **NOW}, 2),
        ("query_range", {"query": "up", **SPAN}, 2),
        ("series", {"match[]": "up"}, 2),
        ("labels", {}, 3),
        ("label/target/values", {}, 2),
    ],
)
def test_a_limit_truncates_with_a_warning(
    client: Client, where: str, parameters: dict[str, str], count: int
) -> None:
    def asked(limit: int) -> tuple[int, Any]:
        status, answer = client.get(where, **parameters, limit=str(limit))
        assert status == 200
        data = answer["data"]
        return len(data["result"] if isinstance(data, dict) else data), answer.get("warnings")

    assert asked(0) == asked(count) == (count, None)
    assert asked(1) == (1, ["results truncated due to limit"])


@pytest.mark.parametrize("where", ["query", "query_range", "series", "labels", "label/a/values"])
@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ("x", 'strconv.Atoi: parsing "x": invalid syntax'),
        ("1.5", 'strconv.Atoi: parsing "1.5": invalid syntax'),
        ("-1", "limit must be non-negative"),
    ],
)
def test_a_wrong_limit_is_refused(client: Client, where: str, limit: str, why: str) -> None:
    parameters = {"query": "up", "match[]": "up", **SPAN, "limit": limit}

    assert client.get(where, **parameters) == (
        400,
        {"status": "error", "errorType": "bad_data", "error": f'invalid parameter "limit": {why}'},
    )


@pytest.mark.parametrize(
    ("where", "values"),
    [
        ("label/U__a_2f_b/values", ["x"]),
        ("label/U__target/values", ["a", "b"]),
        ("label/a_b/values", []),
        ("label/U__a_b/values", []),
        ("label/U__a_d800_/values", []),
        ("label/U__a_ffffff_/values", []),
        ("label/U___5f__5f_name_5f__5f_/values", ["q.size", "up"]),
        ("label/U______name____/values", ["q.size", "up"]),
    ],
)
def test_a_label_may_have_any_name(client: Client, where: str, values: list[str]) -> None:
    assert client.data(where) == values


def test_a_metric_may_have_any_name(client: Client) -> None:
    found = client.data("query", query='{"q.size", "a/b"="x"}', **NOW)

    assert [row["metric"] for row in found["result"]] == [{"__name__": "q.size", "a/b": "x"}]


@pytest.mark.parametrize(
    ("delta", "found"), [("10s", 2), ("4.9", 0), ("5.1", 2), ("", 2), ("0", 2)]
)
def test_the_lookback_can_be_given(client: Client, delta: str, found: int) -> None:
    data = client.data("query", query="up", time=str(T0 + 50), lookback_delta=delta)

    assert len(data["result"]) == found


def test_a_wrong_lookback_is_refused(client: Client) -> None:
    status, answer = client.get("query", query="up", lookback_delta="x")

    assert status == 400
    why = 'error parsing lookback delta duration: cannot parse "x" to a valid duration'
    assert answer["error"] == why


def test_only_what_a_query_reads_is_copied(client: Client, library: Library) -> None:
    client.data("query", query="1 + 1")
    assert library.cuts == []

    client.data("query", query="rate(up[1m]) / on() group_left sum(down offset 1h)", **NOW)
    [(names, since_ms)] = library.cuts
    assert names == {"up", "down"}
    assert T0 * 1000 - 4_500_000 <= since_ms <= (T0 + 45 - 3600 - 300) * 1000

    client.data("query_range", query='{target="a"}', **SPAN)
    assert library.cuts[1][0] is None


@pytest.mark.parametrize("time", [str(T0 + 7200), str(T0 + 10_000_000)])
def test_a_fixed_time_in_a_query_is_found_however_far_away(client: Client, time: str) -> None:
    data = client.data("query", query=f"up @ {T0 + 10}", time=time)

    assert [row["value"][1] for row in data["result"]] == ["1", "0"]


def test_what_is_not_kept_is_said(client: Client) -> None:
    _, answer = client.get("query", query="unkept_total + up", **NOW)

    assert answer["data"]["result"] == []
    [info] = answer["infos"]
    assert "unkept_total is not kept" in info
    assert "infos" not in client.get("query", query="up", **NOW)[1]


@pytest.mark.parametrize("time", ["Inf", "-Inf", "1e15", "-1e11", "0"])
@pytest.mark.parametrize(
    "expr",
    ["hour()", "year()", "days_in_month(vector(1e300))", "up offset 99y", "up[99y]", "up @ 1e9",
     "rate(up[5m] offset -1h)", "sum_over_time(up[99y:50y])", "vector(time()) ^ 1000"],
)  # fmt: skip
def test_no_instant_is_too_odd(client: Client, expr: str, time: str) -> None:
    assert client.get("query", query=expr, time=time)[0] == 200


# what a query may cost


def test_a_query_ends_at_its_timeout(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk, "WORK_AT_ONCE", 1 << 60)
    slow = "sum_over_time(sum_over_time(up[5m:100ms])[5m:100ms])"
    began = time.monotonic()

    status, answer = client.get("query", query=slow, timeout="0.1", **NOW)

    assert time.monotonic() - began < 5
    assert (status, answer["status"], answer["errorType"]) == (503, "error", "timeout")
    assert answer["error"] == "query timed out in expression evaluation"


@pytest.mark.parametrize("timeout", ["0", "-1s"])
def test_no_time_is_no_answer(client: Client, timeout: str) -> None:
    status, answer = client.get("query", query="1", timeout="0")

    assert (status, answer["errorType"]) == (503, "timeout")


def test_a_query_that_would_do_too_much_is_refused(client: Client) -> None:
    status, answer = client.get("query", query="sum_over_time(up[10y:1s])", **NOW)

    assert (status, answer["errorType"]) == (422, "execution")
    assert answer["error"] == desk.TOO_MANY


def test_an_instant_may_not_fill_the_memory(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit for each instant of a query over time, and not only for all together."""
    monkeypatch.setattr(desk, "WORK_AT_ONCE", 1_000)

    assert client.get("query_range", query="up", **SPAN)[0] == 200
    assert client.get("query", query="sum_over_time(up[1m:1s])", **NOW)[0] == 422


def test_an_answer_is_not_larger_than_the_daemon_can_bear(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "MOST_SAMPLES", 15)

    assert client.get("query_range", query="up", **SPAN)[0] == 422
    assert client.get("query", query="up[1m]", **NOW)[0] == 422
    assert client.get("query", query="up[30s]", **NOW)[0] == 200


class Held(Library):
    """A library whose copies are slow to come."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.asked = 0

    def cut(self, *given: Any) -> Any:
        self.asked += 1
        assert self.go.wait(10)
        return super().cut(*given)


def test_who_asks_while_all_seats_are_taken_waits_in_line(path: Path) -> None:
    held = Held()
    answers: list[tuple[int, Any]] = []

    def ask(**more: str) -> None:
        answers.append(Client(path).get("query", query="up", **more))

    with served(FakeHouse(library=held), path):
        crowd = [threading.Thread(target=ask) for _ in range(desk.AT_ONCE + 8)]
        for each in crowd:
            each.start()
        wait_until(lambda: held.asked == desk.AT_ONCE)
        status, late = Client(path).get("query", query="up", timeout="100ms")
        assert exchange(over_unix(path), "GET", "/metrics")[0] == 200  # others are not held up
        held.go.set()
        for each in crowd:
            each.join(10)

    assert (status, late["error"]) == (503, "query timed out in query queue")
    assert [status for status, _ in answers] == [200] * (desk.AT_ONCE + 8)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (Transient("the loop is busy"), 503, "unavailable"),
        (Permanent("too many samples"), 422, "execution"),
    ],
    ids=["busy", "too much"],
)
@pytest.mark.parametrize(
    "where", ["query", "series", "rules", "targets", "metadata", "status/tsdb"]
)
def test_every_failure_has_prometheuss_shape(
    client: Client, library: Library, where: str, error: Any, status: int, kind: str
) -> None:
    library.refuses = error

    assert client.get(where, query="up", **{"match[]": "up"}) == (
        status,
        {"status": "error", "errorType": kind, "error": error.message},
    )


def test_a_defect_is_told_without_its_details(client: Client, library: Library) -> None:
    library.refuses = ValueError("secret")  # type: ignore[assignment]

    status, answer = client.get("query", query="up")

    assert (status, answer["errorType"]) == (500, "internal")
    assert "secret" not in str(answer)


def test_before_the_loop_is_there_it_is_unavailable(path: Path) -> None:
    with served(FakeHouse(), path):
        assert Client(path).get("query", query="1") == (
            503,
            {
                "status": "error",
                "errorType": "unavailable",
                "error": "Sentinel is still starting",
            },
        )


def test_a_form_may_be_large_and_is_bounded(client: Client) -> None:
    many = [("match[]", f'up{{target="{k}"}}') for k in range(900)]

    assert client.post("series", *many)[0] == 200
    assert client.post("series", ("match[]", "x" * 2_000_000))[0] == 400
    assert client.post("series", *many, *many)[0] == 400


def test_what_the_form_says_goes_before_the_address(client: Client) -> None:
    kind = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
    url = "/api/v1/query?query=1&time=5"

    _, answer = exchange(over_unix(client.path), "POST", url, b"query=2", kind)

    assert answer["data"]["result"] == [5, "2"]


# rules and alerts

GROUP = RuleGroup(
    name="engines",
    file="rules/engine.yaml",
    limit=3,
    rules=(
        AlertRule(
            name="Down",
            expr=compile_expression("up == 0"),
            for_=timedelta(seconds=30),
            keep_firing_for=timedelta(minutes=1),
            labels={"severity": "critical", "team": "{{ $labels.team }}"},
            annotations={"summary": "{{ $labels.target }} is down"},
            group="engines",
            file="rules/engine.yaml",
        ),
        RecordingRule(
            name="job:up:sum",
            expr=compile_expression("\n  sum(up)\n"),
            labels={"severity": "none"},
            group="engines",
            file="rules/engine.yaml",
        ),
    ),
)
OTHER = RuleGroup(
    name="other",
    file="rules/other.yaml",
    interval=timedelta(seconds=90),
    rules=(AlertRule(name="Late", expr=compile_expression("vector(1)"), group="other"),),
)
EMPTY = RuleGroup(name="empty", file="rules/other.yaml")


def active(rule: str, name: str, state: Any, **more: Any) -> ActiveAlert:
    labels = {"alertname": name, "target": "b"}
    return ActiveAlert(
        key=f"{rule}{state}",
        alertname=name,
        labels=labels,
        annotations={"summary": "b is down"},
        state=state,
        value=0.0,
        active_at=AT,
        last_seen_at=AT,
        rule=rule,
        **more,
    )


@pytest.fixture
def judged(library: Library) -> Library:
    library.rules = Judged(
        groups=(GROUP, EMPTY, OTHER),
        active=(
            active("engines/Down", "Down", "pending"),
            active("engines/Down", "Down", "firing", keep_since=AT),
            active("engines/Down", "Down", "resolved"),
        ),
        failing={"other/Late": "it broke"},
        evaluated_at=AT,
        interval=timedelta(seconds=5),
    )
    return library


ALERT = {
    "labels": {"alertname": "Down", "target": "b"},
    "annotations": {"summary": "b is down"},
    "state": "pending",
    "activeAt": "2030-01-01T12:00:00.25Z",
    "value": "0e+00",
}
FIRING = {**ALERT, "state": "firing", "keepFiringSince": "2030-01-01T12:00:00.25Z"}


def test_alerts_are_those_that_stand(client: Client, judged: Library) -> None:
    assert client.data("alerts") == {"alerts": [ALERT, FIRING]}


def test_rules_are_told_as_prometheus_tells_them(client: Client, judged: Library) -> None:
    last = {"evaluationTime": 0, "lastEvaluation": "2030-01-01T12:00:00.25Z"}

    groups = client.data("rules")["groups"]

    assert [group["name"] for group in groups] == ["engines", "other"]
    assert groups[0] == {
        "name": "engines",
        "file": "rules/engine.yaml",
        "interval": 5,
        "limit": 3,
        **last,
        "rules": [
            {
                "type": "alerting",
                "state": "firing",
                "name": "Down",
                "query": "up == 0",
                "duration": 30,
                "keepFiringFor": 60,
                "labels": {"severity": "critical", "team": "{{ $labels.team }}"},
                "annotations": {"summary": "{{ $labels.target }} is down"},
                "alerts": [ALERT, FIRING],
                "health": "ok",
                **last,
            },
            {
                "type": "recording",
                "name": "job:up:sum",
                "query": "sum(up)",
                "labels": {"severity": "none"},
                "health": "ok",
                **last,
            },
        ],
    }
    assert groups[1]["interval"] == 90
    assert (
        groups[1]["rules"][0] | {"health": "err", "lastError": "it broke", "state": "inactive"}
        == (groups[1]["rules"][0])
    )


@pytest.mark.parametrize(
    ("pairs", "names"),
    [
        ([("type", "alert")], ["Down", "Late"]),
        ([("type", "RECORD")], ["job:up:sum"]),
        ([("rule_name[]", "Late"), ("rule_name[]", "Down")], ["Down", "Late"]),
        ([("rule_group[]", "other")], ["Late"]),
        ([("file[]", "rules/engine.yaml")], ["Down", "job:up:sum"]),
        ([("file[]", "nowhere")], []),
        ([("match[]", '{severity="critical"}')], ["Down"]),
        ([("match[]", '{severity=~"c.*|none"}')], ["Down", "job:up:sum"]),
        ([("match[]", '{team=~".+"}')], []),
        ([("group_limit", "1")], ["Down", "job:up:sum"]),
    ],
)
def test_rules_can_be_chosen(
    client: Client, judged: Library, pairs: list[tuple[str, str]], names: list[str]
) -> None:
    groups = client.data("rules", *pairs)["groups"]

    assert [rule["name"] for group in groups for rule in group["rules"]] == names
    assert all(group["rules"] for group in groups)


def test_rules_come_page_by_page(client: Client, judged: Library) -> None:
    first = client.data("rules", group_limit="1")
    second = client.data("rules", group_limit="1", group_next_token=first["groupNextToken"])

    assert [group["name"] for group in first["groups"] + second["groups"]] == ["engines", "other"]
    assert "groupNextToken" not in second


def test_alerts_may_be_left_out_of_rules(client: Client, judged: Library) -> None:
    for word in ("true", "1", "T"):
        assert client.data("rules", exclude_alerts=word)["groups"][0]["rules"][0]["alerts"] is None


@pytest.mark.parametrize(
    ("parameter", "given", "why"),
    [
        ("exclude_alerts", "maybe", "error converting exclude_alerts: "),
        ("group_limit", "0", "group_limit needs to be greater than 0"),
        ("group_limit", "x", "group_limit needs to be a valid number: "),
        ("group_next_token", "x", "group_limit needs to be present in order to paginate"),
    ],
)
def test_a_wrong_choice_of_rules_is_refused(
    client: Client, parameter: str, given: str, why: str
) -> None:
    status, answer = client.get("rules", (parameter, given))

    assert status == 400
    assert answer["error"].startswith(f'invalid parameter "{parameter}": {why}')


def test_a_page_that_is_no_more_is_refused(client: Client, judged: Library) -> None:
    status, answer = client.get("rules", group_limit="1", group_next_token="gone")

    assert status == 400
    assert "invalid group_next_token 'gone'. were rule groups changed?" in answer["error"]


# targets and what they say

COUNTER = Description("counter", "Requests.")


@pytest.fixture
def scraped(library: Library) -> Library:
    library.targets = [
        Scraped(
            labels={"job": "vllm", "target": name, "host": "gpu1", "instance": f"127.0.0.1:{port}"},
            discovered={"__address__": f"127.0.0.1:{port}"},
            url=f"http://127.0.0.1:{port}/metrics",
            health=health,  # type: ignore[arg-type]  # one of the three
            last_error=error,
            at=at,
            took=0.25,
            descriptions=descriptions,
        )
        for name, port, health, error, at, descriptions in (
            ("a", 8000, "up", "", AT, {"reqs": COUNTER, "size": Description("gauge")}),
            ("b", 8001, "down", "refused", AT, {"reqs": Description("counter", "Other.")}),
            ("c", 8002, "unknown", "", None, {}),
        )
    ]
    return library


def test_targets_are_told_as_prometheus_tells_them(client: Client, scraped: Library) -> None:
    data = client.data("targets")

    assert data["droppedTargets"] == []
    assert data["activeTargets"][0] == {
        "discoveredLabels": {"__address__": "127.0.0.1:8000"},
        "labels": scraped.targets[0].labels,
        "scrapePool": "vllm",
        "scrapeUrl": "http://127.0.0.1:8000/metrics",
        "globalUrl": "http://gpu1:8000/metrics",
        "lastError": "",
        "lastScrape": "2030-01-01T12:00:00.25Z",
        "lastScrapeDuration": 0.25,
        "health": "up",
        "scrapeInterval": "5s",
        "scrapeTimeout": "3s",
    }
    others = [(t["health"], t["lastError"], t["lastScrape"]) for t in data["activeTargets"][1:]]
    assert others == [
        ("down", "refused", "2030-01-01T12:00:00.25Z"),
        ("unknown", "", "0001-01-01T00:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("parameters", "count"),
    [
        ({}, 3),
        ({"state": "any"}, 3),
        ({"state": "Active"}, 3),
        ({"state": "dropped"}, 0),
        ({"scrapePool": "vllm"}, 3),
        ({"scrapePool": "other"}, 0),
    ],
)
def test_targets_can_be_chosen(
    client: Client, scraped: Library, parameters: dict[str, str], count: int
) -> None:
    assert len(client.data("targets", **parameters)["activeTargets"]) == count


def test_metadata_gathers_what_targets_say(client: Client, scraped: Library) -> None:
    data = client.data("metadata")

    assert data["reqs"] == [
        {"type": "counter", "help": "Requests.", "unit": ""},
        {"type": "counter", "help": "Other.", "unit": ""},
    ]
    assert data["size"] == [{"type": "gauge", "help": "", "unit": ""}]
    assert data["sentinel_target_up"][0]["type"] == "gauge"
    assert list(client.data("metadata", metric="reqs")) == ["reqs"]
    assert client.data("metadata", metric="nothing") == {}
    assert len(client.data("metadata", limit="2")) == 2
    assert client.data("metadata", limit="0") == {}
    assert len(client.data("metadata", limit_per_metric="1")["reqs"]) == 1


def test_metadata_of_targets(client: Client, scraped: Library) -> None:
    everything = client.data("targets/metadata")
    of_b = client.data("targets/metadata", match_target='{target="b"}', metric="reqs")

    assert [(one["target"]["target"], one["metric"]) for one in everything] == [
        ("a", "reqs"),
        ("a", "size"),
        ("b", "reqs"),
    ]
    labels = scraped.targets[1].labels
    assert of_b == [{"target": labels, "type": "counter", "help": "Other.", "unit": ""}]
    assert client.get("targets/metadata", match_target="up{")[0] == 400


# what it says of itself


def test_a_client_sees_a_prometheus_it_can_speak_to(client: Client) -> None:
    build = client.data("status/buildinfo")

    major, minor, _ = build["version"].split(".")
    assert (int(major), int(minor) >= 0) == (3, True)
    assert build["sentinel"]
    assert client.data("status/flags")["storage.tsdb.retention.time"] == "1h"
    assert client.data("status/runtimeinfo")["storageRetention"] == "1h"
    assert "evaluation_interval: 1m" in client.data("status/config")["yaml"]
    assert client.data("alertmanagers") == {"activeAlertmanagers": [], "droppedAlertmanagers": []}


def test_the_store_is_counted(client: Client) -> None:
    data = client.data("status/tsdb", limit="1")

    assert data["headStats"]["numSeries"] == 3
    assert (data["headStats"]["minTime"], data["headStats"]["maxTime"]) == (
        T0 * 1000,
        (T0 + 45) * 1000,
    )
    assert data["seriesCountByMetricName"] == [{"name": "up", "value": 2}]


def test_an_expression_is_laid_out(client: Client) -> None:
    assert client.data("format_query", query="sum(up)by(a)/2") == "sum by (a) (up) / 2"
    status, answer = client.post("format_query", query="sum(")
    assert (status, answer["errorType"]) == (400, "bad_data")
    assert (
        answer["error"] == 'invalid parameter "query": 1:4: parse error: unclosed left parenthesis'
    )


@pytest.mark.parametrize("where", ["nothing", "read", "write", "admin/tsdb/snapshot"])
def test_what_is_not_offered_is_not_there(client: Client, where: str) -> None:
    assert exchange(over_unix(client.path), "GET", f"/api/v1/{where}")[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_only_reading_is_offered(client: Client, method: str) -> None:
    assert exchange(over_unix(client.path), method, "/api/v1/series")[0] == 405
