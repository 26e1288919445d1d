"""The same questions to a real Prometheus and to Sentinel: same status, same shape, same values.

Instants lie between samples, where the window edges of Prometheus 2 and 3 do not differ.
"""

import json
import math
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.fake_house import FakeHouse, served
from tests.api.library import STEP, T0, Client, Library
from tests.api.real_prometheus import ask, prometheus_holding

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")

ODD = [
    math.nan, math.inf, -math.inf, 1e21, 9.99e20, 1e-6, 9.9e-7, 0.1, -0.0, 0.0, 123456789.125,
    123456789012345680000.0, 5e-324, 1.7976931348623157e308, -1.5, 1e15, 1e16, 12345678901234567.0,
]  # fmt: skip
BUCKETS = {"0.1": 3, "0.5": 7, "1": 9, "+Inf": 10}
AT = str(T0 + 700.5)


def samples_at(place: int) -> list[tuple[str, dict[str, str], float]]:
    rows: list[tuple[str, dict[str, str], float]] = [
        ("odd", {"i": f"{i:02}"}, value) for i, value in enumerate(ODD)
    ]
    for host, pace in (("a", 3.0), ("b", 6.5)):
        labels = {"host": host, "code": "200"}
        rows.append(("reqs_total", labels, place * pace if place < 30 else (place - 30) * pace))
        rows.append(("up", {"host": host, "job": "vllm"}, float(host == "a")))
        for le, count in BUCKETS.items():
            rows.append(("ttft_bucket", {"host": host, "le": le}, count * pace * place))
    if place >= 40:
        rows.append(("late", {"text": 'é"\\\n<&>', "path": "a/b"}, float(place)))
    return rows


SAMPLES = {T0 + STEP * place: samples_at(place) for place in range(60)}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prometheus_holding(tmp_path_factory.mktemp("prometheus"), SAMPLES) as address:
        yield address


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    library = Library()
    library.fill(SAMPLES)
    path = tmp_path_factory.mktemp("sentinel") / "s.sock"
    with served(FakeHouse(library=library), path):
        yield Client(path)


def ordered(data: Any) -> Any:
    """Of an instant vector without `sort` the order means nothing."""
    if isinstance(data, dict) and data.get("resultType") == "vector":
        return {**data, "result": sorted(data["result"], key=json.dumps)}
    return data


INSTANT = [
    "odd", "reqs_total", "up == 1", "up == 7", "late", "1", "-1 / 0", "0/0", "1e21", "1e-7", '"text"',
    "time()", "vector(1)", "reqs_total[40s]", "odd[40s]", "nothing", "nothing[5m]",
    "rate(reqs_total[2m])", "increase(reqs_total[10m])", "sum by (host) (rate(reqs_total[1m]))",
    "histogram_quantile(0.9, sum by (le) (rate(ttft_bucket[5m])))", "sort_desc(odd > 0)",
    "topk(3, odd)", "count(odd)", "absent(nothing)", 'absent(nothing{a="b"})', "reqs_total offset 5m",
    f"reqs_total @ {T0 + 100.5}", "max_over_time(reqs_total[5m:15s])", "sum(odd)", "avg(up)",
    'label_replace(up, "x", "$1", "host", "(.*)")', "up and on(host) reqs_total",
    "reqs_total / on(host) group_left up", '{__name__=~"up|late"}', "scalar(up{host='a'})",
    "up{host!='a'}", "day_of_week()", "changes(reqs_total[10m])", "resets(reqs_total[14m])",
    "stddev_over_time(reqs_total[5m])", "quantile(0.5, odd > 0)", "last_over_time(late[5m])",
]  # fmt: skip
EXECUTION = ["odd + on() odd", "reqs_total * on(code) up"]
BAD = ["", "up{", "1+", "sum(", "{}", "rate(up)", "foo bar", "unknown(x)", '{__name__=~".*"}']


@pytest.mark.parametrize("expr", INSTANT)
def test_an_instant_query_is_answered_alike(theirs: str, ours: Client, expr: str) -> None:
    status, answer = ask(theirs, "GET", "query", [("query", expr), ("time", AT)])
    assert status == 200

    expected = ordered(answer["data"])
    assert ordered(ours.data("query", query=expr, time=AT)) == expected
    posted = ours.post("query", query=expr, time=AT)
    assert (posted[0], ordered(posted[1]["data"])) == (200, expected)


@pytest.mark.parametrize("expr", EXECUTION)
def test_an_expression_without_an_answer_is_refused_alike(
    theirs: str, ours: Client, expr: str
) -> None:
    status, answer = ask(theirs, "GET", "query", [("query", expr), ("time", AT)])
    found, refusal = ours.get("query", query=expr, time=AT)

    assert (found, refusal["errorType"]) == (status, answer["errorType"]) == (422, "execution")


@pytest.mark.parametrize("path", ["query", "query_range"])
@pytest.mark.parametrize("expr", BAD)
def test_a_wrong_expression_is_refused_alike(
    theirs: str, ours: Client, path: str, expr: str
) -> None:
    pairs = [("query", expr), ("start", "0"), ("end", "1"), ("step", "1")]
    status, answer = ask(theirs, "GET", path, pairs)
    found, refusal = ours.get(path, *pairs)

    assert (found, refusal["errorType"]) == (status, answer["errorType"]) == (400, "bad_data")
    assert refusal["error"].startswith('invalid parameter "query": ')
    assert "parse error: " in refusal["error"]
    assert refusal.keys() == answer.keys()


@pytest.mark.parametrize(
    ("expr", "start", "end", "step"),
    [
        ("reqs_total", "0.5", "600", "15"),
        ("reqs_total", "-400.5", "1600", "7.5"),
        ("rate(reqs_total[1m])", "60.5", "800", "30s"),
        ("sum by (host) (rate(reqs_total[1m]))", "60.5", "800", "1m30s"),
        ("time()", "0.1", "1", "0.3333"),
        ("1", "0.5", "10", "3"),
        ("odd", "0.5", "100", "60"),
        ("late", "0.5", "899", "60"),
        ("nothing", "0.5", "899", "60"),
        ("up == 1", "0.5", "899", "300"),
        ("histogram_quantile(0.5, rate(ttft_bucket[5m]))", "0.5", "1200", "45"),
        ("max_over_time(reqs_total[2m:30s])", "0.5", "899", "50"),
        ("reqs_total @ end()", "0.5", "899.5", "300"),
        ("reqs_total - (reqs_total @ start())", "100.5", "899.5", "300"),
        ("topk(1, reqs_total)", "0.5", "899.5", "300"),
    ],
)
def test_a_range_query_is_answered_alike(
    theirs: str, ours: Client, expr: str, start: str, end: str, step: str
) -> None:
    pairs = [
        ("query", expr),
        ("start", str(T0 + float(start))),
        ("end", str(T0 + float(end))),
        ("step", step),
    ]
    _, answer = ask(theirs, "POST", "query_range", pairs)

    assert ours.data("query_range", *pairs) == answer["data"]
    assert ours.post("query_range", *pairs)[1] == answer


PARAMETERS: list[tuple[str, list[tuple[str, str]]]] = [
    ("query", [("query", "up"), ("time", "x")]),
    ("query", [("query", "up"), ("time", "0x10")]),
    ("query", [("query", "up"), ("time", "2023-13-01T00:00:00Z")]),
    ("query", [("query", "up"), ("timeout", "x")]),
    ("query", [("query", "up"), ("timeout", "1.5m")]),
    ("query_range", [("query", "up"), ("start", "1"), ("end", "0"), ("step", "1")]),
    ("query_range", [("query", "up"), ("start", "0"), ("end", "1")]),
    ("query_range", [("query", "up"), ("end", "1"), ("step", "1")]),
    ("query_range", [("query", "up"), ("start", "0"), ("end", "1"), ("step", "0")]),
    ("query_range", [("query", "up"), ("start", "0"), ("end", "1"), ("step", "-5m")]),
    ("query_range", [("query", "up"), ("start", "0"), ("end", "1"), ("step", "1e300")]),
    ("query_range", [("query", "up"), ("start", "0"), ("end", "100000"), ("step", "1")]),
    ("series", []),
    ("series", [("match[]", "{}")]),
    ("series", [("match[]", '{a=""}')]),
    ("series", [("match[]", "up"), ("start", "x")]),
    ("labels", [("match[]", "{}")]),
    ("labels", [("end", "x")]),
    ("label/host/values", [("match[]", '{a=~".*"}')]),
    ("rules", [("type", "x")]),
    ("metadata", [("limit", "x")]),
    ("targets/metadata", [("limit", "1.5")]),
]


@pytest.mark.parametrize(("path", "pairs"), PARAMETERS)
def test_a_wrong_parameter_is_refused_in_the_same_words(
    theirs: str, ours: Client, path: str, pairs: list[tuple[str, str]]
) -> None:
    status, answer = ask(theirs, "GET", path, pairs)
    assert status == 400

    assert ours.get(path, *pairs) == (status, answer)


@pytest.mark.parametrize(
    "time",
    [
        "1700000700", "1700000700.123", "1700000700.0004", "1700000700.9996", "1e9", "-1", "-1.5",
        ".5", "+5", "2023-11-14T22:25:00Z", "2023-11-14T22:25:00.123456Z", "1970-01-01T00:00:00Z",
        "2023-11-14T22:25:00+01:00", "2023-11-14T22:25:00.5-07:30",
    ],
)  # fmt: skip
def test_a_time_is_read_alike(theirs: str, ours: Client, time: str) -> None:
    _, answer = ask(theirs, "GET", "query", [("query", "time()"), ("time", time)])

    assert ours.data("query", query="time()", time=time) == answer["data"]


EVER = [("start", "-292273086-05-16T16:47:06Z"), ("end", "292277025-08-18T07:12:54.999999999Z")]


@pytest.mark.parametrize(
    ("path", "pairs"),
    [
        ("labels", []),
        ("labels", EVER),
        ("labels", [("match[]", "up")]),
        ("labels", [("match[]", "up"), ("match[]", "late")]),
        ("labels", [("match[]", "nothing")]),
        ("labels", [("start", str(T0)), ("end", str(T0 + 600))]),
        ("labels", [("start", str(T0 - 600)), ("end", str(T0 - 1))]),
        ("label/host/values", []),
        ("label/host/values", [("match[]", 'up{host="a"}')]),
        ("label/host/values", [("match[]", 'up{host="a"}'), ("match[]", '{host=~"b"}')]),
        ("label/__name__/values", []),
        ("label/__name__/values", [("match[]", '{host!=""}')]),
        ("label/nothing/values", []),
        ("label/le/values", EVER),
        ("series", [("match[]", "up"), *EVER]),
        ("series", [("match[]", "up"), ("match[]", '{__name__=~"u.|late"}'), *EVER]),
        ("series", [("match[]", 'reqs_total{host!="a"}')]),
        ("series", [("match[]", "up"), ("start", str(T0 - 600)), ("end", str(T0 - 1))]),
        ("series", [("match[]", "late"), ("start", str(T0)), ("end", str(T0 + 500))]),
        ("series", [("match[]", "late"), ("start", str(T0)), ("end", str(T0 + 700))]),
        ("rules", []),
        ("alerts", []),
        ("query_exemplars", [("query", "up")]),
        ("format_query", [("query", "sum  (rate(up[5m]) ) by (host) / 2")]),
    ],
)
def test_what_is_there_is_listed_alike(
    theirs: str, ours: Client, path: str, pairs: list[tuple[str, str]]
) -> None:
    status, answer = ask(theirs, "GET", path, pairs)
    assert status == 200

    assert ours.get(path, *pairs) == (status, answer)
