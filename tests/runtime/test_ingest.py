"""Exposition text to series: what is taken, what is refused, what is remembered."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import NAME, value_of, without
from sentinel.core.model.series import Store
from sentinel.core.promql import RangeSample, Sample, compile_expression
from sentinel.runtime.ingest import Exposition, read_line

IDENTITY = {"target": "llm", "host": "h"}

BODY = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a model, with {braces} and \\"quotes\\""} 8.0
# TYPE ttft histogram
ttft_bucket{le="0.5"} 3
ttft_bucket{le="+Inf"} 4
ttft_sum 1.5e-3
ttft_count 4

plain 1.796061514e+09
nothing NaN
endless{a="",b="x"} +Inf
"""


def seen(store: Store, at: int) -> dict[tuple[tuple[str, str], ...], float]:
    value = compile_expression('{__name__!=""}').at(store, at)
    assert isinstance(value, list)
    return {without(s.labels, *IDENTITY): s.value for s in value if isinstance(s, Sample)}


def exposition(**kept: bool) -> tuple[Store, Exposition]:
    store = Store(keep=(lambda name: kept.get(name, False)) if kept else None)
    return store, Exposition(store.source("llm", IDENTITY))


def oracle(text: str) -> dict[tuple[tuple[str, str], ...], float]:
    return {
        tuple(sorted([(NAME, s.name), *((k, v) for k, v in s.labels.items() if v)])): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def same(a: object, b: object) -> bool:
    return repr(sorted(a.items())) == repr(sorted(b.items()))  # type: ignore[attr-defined]


def test_the_first_scrape_and_the_remembered_ones_say_what_the_oracle_says() -> None:
    store, target = exposition()
    expected = {key: float(value) for key, value in oracle(BODY).items()}

    for at in (1000, 2000, 3000):
        assert target.take(BODY.encode(), at) == 8
        assert same(seen(store, at), expected)


def test_values_follow_the_scrapes() -> None:
    store, target = exposition()
    for n in range(5):
        target.take(f'a{{x="y z"}} {n}\nb {n * 2}\n'.encode(), n * 1000)

    assert list(seen(store, 4000).values()) == [4, 8]
    value = compile_expression("a[10s]").at(store, 4000)
    assert isinstance(value, list)
    assert isinstance(value[0], RangeSample)
    assert [v for _, v in value[0].points] == [0, 1, 2, 3, 4]


def test_what_is_absent_from_a_scrape_has_vanished_and_may_return() -> None:
    store, target = exposition()
    target.take(b"a 1\nb 1\n", 1000)
    target.take(b"b 2\n", 2000)
    assert [value_of(labels, NAME) for labels in seen(store, 2000)] == ["b"]
    target.take(b"b 3\na 3\n", 3000)
    assert sorted(seen(store, 3000).values()) == [3, 3]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\n\n# HELP a b\n# EOF\n", id="only comments"),
        pytest.param(b"a 1\nb \xff\xfe 2\n", id="not UTF-8"),
        pytest.param(b"<html><body>502 Bad Gateway</body></html>", id="html"),
        pytest.param(b'{"detail": "Not Found"}', id="json"),
        pytest.param(b"a 1\nb", id="cut within a name"),
        pytest.param(b"a 1\nb{c=", id="cut within labels"),
        pytest.param(b'a 1\nb{c="d"} ', id="cut before a value"),
        pytest.param(b"a 1\nb x\n", id="a value that is none"),
        pytest.param(b"a 1_000\n", id="a number only Python reads"),
        pytest.param(b"a 1 2 3\n", id="three numbers"),
        pytest.param(b"a 1 soon\n", id="a time that is none"),
        pytest.param(b"a 1 99999999999999999999\n", id="a time beyond all bounds"),
        pytest.param(b'a{b="1",b="2"} 3\n', id="a label twice"),
        pytest.param(b"a{b=c} 3\n", id="a value without quotes"),
        pytest.param(b"1a 3\n", id="no name"),
        pytest.param(b"\x00" * 100, id="zeros"),
    ],
)
def test_what_is_no_exposition_is_refused_and_nothing_is_recorded(body: bytes) -> None:
    store, target = exposition()
    target.take(b'a 1\nb{c="d"} 1\n', 1000)

    with pytest.raises(Permanent):
        target.take(body, 2000)

    assert list(seen(store, 2000).values()) == [1, 1]


def test_a_known_line_with_a_bad_value_is_refused_too() -> None:
    store, target = exposition()
    target.take(b"a 1\nb 1\n", 1000)

    with pytest.raises(Permanent):
        target.take(b"a 2\nb x\n", 2000)

    assert list(seen(store, 2000).values()) == [1, 1]


def test_unwanted_series_are_counted_but_not_kept() -> None:
    store, target = exposition(a=True)

    assert [target.take(b"a 1\nb 1\nc 1\n", at) for at in (1000, 2000)] == [3, 3]
    assert list(store.names()) == ["a"]


def test_a_changed_wish_is_followed_from_the_next_scrape_on() -> None:
    store, target = exposition(a=True)
    target.take(b"a 1\nb 1\n", 1000)
    store.keep = lambda name: name == "b"
    target.take(b"a 2\nb 2\n", 2000)

    assert [value_of(labels, NAME) for labels in seen(store, 2000)] == ["b"]


def test_lines_with_a_time_keep_it_and_are_not_remembered() -> None:
    store, target = exposition()
    for n in range(1, 200):
        target.take(f'a{{b="c"}} {n} {n * 1000 - 300}\nd {n}\n'.encode(), n * 1000)

    value = compile_expression("timestamp(a)").at(store, 199_000)
    assert isinstance(value, list)
    assert [s.value for s in value if isinstance(s, Sample)] == [198.7]
    assert sorted(seen(store, 199_000).values()) == [199, 199]
    assert len(target._slots) == 1


def test_the_memory_of_lines_is_bounded() -> None:
    _, target = exposition()
    for n in range(50):
        target.take("".join(f'a{{id="{n}-{k}"}} 1\n' for k in range(100)).encode(), n * 1000)

    assert len(target._slots) < 1500


def test_a_body_with_too_many_samples_is_refused() -> None:
    store = Store()
    target = Exposition(store.source("t", {}), max_samples=10)

    with pytest.raises(Permanent, match="more than 10 samples"):
        target.take("".join(f'a{{i="{n}"}} 1\n' for n in range(11)).encode(), 1000)


def test_series_that_were_trimmed_away_come_back() -> None:
    store, target = exposition()
    target.take(b"a 1\nb 1\n", 1000)
    target.take(b"b 2\n", 2000)
    store.trim(1500 + store.retention_ms)
    target.take(b"a 3\nb 3\n", 3000)

    assert sorted(seen(store, 3000).values()) == [3, 3]


def test_of_two_lines_for_one_series_the_first_counts() -> None:
    store, target = exposition()
    for at in (1000, 2000):
        target.take(b'a{x="1",y="2"} 1\na{y="2",x="1"} 2\nb 7\n', at)

    assert list(seen(store, 2000).values()) == [1, 7]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        pytest.param(b"vllm:gpu_cache_usage_perc 0.5\n", [0.5], id="an old name reads as the new"),
        pytest.param(
            b"vllm:gpu_cache_usage_perc 0.5\nvllm:kv_cache_usage_perc 0.7\n", [0.7], id="both"
        ),
        pytest.param(b"vllm:kv_cache_usage_perc 0.7\n", [0.7], id="only the new"),
        pytest.param(b"vllm:gpu_cache_usage_perc 0.5 900\n", [0.5], id="old, with a time"),
    ],
)
def test_metrics_of_older_vllm_are_there_under_their_present_name(
    body: bytes, values: list[float]
) -> None:
    store, target = exposition()
    for at in (1000, 2000):
        target.take(body, at)
        value = compile_expression("vllm:kv_cache_usage_perc").at(store, at)
        assert isinstance(value, list)
        assert [s.value for s in value if isinstance(s, Sample)] == values


def test_the_present_name_is_kept_even_if_only_it_is_wanted() -> None:
    names = {"vllm:inter_token_latency_seconds_bucket": True}
    store, target = exposition(**names)
    target.take(b'vllm:time_per_output_token_seconds_bucket{le="0.1"} 4\n', 1000)

    value = compile_expression("vllm:inter_token_latency_seconds_bucket").at(store, 1000)

    assert isinstance(value, list)
    assert len(value) == 1


@pytest.mark.parametrize(
    ("text", "name", "labels", "value", "at"),
    [
        ("a 1", "a", {}, 1.0, None),
        ("a\t1", "a", {}, 1.0, None),
        ("a  1  2", "a", {}, 1.0, 2),
        ("a{} 1", "a", {}, 1.0, None),
        ('a {b="c"} 1', "a", {"b": "c"}, 1.0, None),
        ('a{b="c",}1', "a", {"b": "c"}, 1.0, None),
        ('a{ b = "c" , d="e" } 1', "a", {"b": "c", "d": "e"}, 1.0, None),
        (r'a{b="\\x\"y\nz\q"} 1', "a", {"b": '\\x"y\nz\\q'}, 1.0, None),
        ('a{b="} 1 #"} -Inf', "a", {"b": "} 1 #"}, -math.inf, None),
        ('{"a.b",c="d"} 1', "a.b", {"c": "d"}, 1.0, None),
        ('a{"l.x"="y"} 1', "a", {"l.x": "y"}, 1.0, None),
        ('a_bucket{le="1"} 3 # {trace_id="x"} 0.5', "a_bucket", {"le": "1"}, 3.0, None),
        ('a_total 3 1700000000000 # {trace_id="x"} 0.5', "a_total", {}, 3.0, 1_700_000_000_000),
        ("a:b:c 0x", "", {}, 0.0, None),
        ("a{b} 1", "", {}, 0.0, None),
        ('a{__name__="c"} 1', "", {}, 0.0, None),
        ('{b="c"} 1', "", {}, 0.0, None),
        ('a{b="c"d="e"} 1', "", {}, 0.0, None),
        ('a"b" 1', "", {}, 0.0, None),
    ],
)  # fmt: skip
def test_a_line(text: str, name: str, labels: dict[str, str], value: float, at: int | None) -> None:
    if not name:
        with pytest.raises(ValueError, match="in '"):
            read_line(text)
        return
    line = read_line(text)

    assert (line.name, line.labels, line.value, line.at_ms) == (name, labels, value, at)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_do_more_than_be_refused(bodies: list[bytes]) -> None:
    _, target = exposition()
    for at, body in enumerate(bodies):
        try:
            target.take(body, at * 1000)
        except Permanent:
            continue


LINES = st.lists(
    st.tuples(
        st.from_regex(r"[a-z_:][a-z0-9_:]{0,5}", fullmatch=True),
        st.dictionaries(
            st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True),
            st.text(st.characters(blacklist_categories=["Cs"]), max_size=6),
            max_size=3,
        ),
        st.floats(allow_nan=False),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_whatever_is_written_by_the_book_is_read_back(
    lines: list[tuple[str, dict[str, str], float]],
) -> None:
    store, target = exposition()
    written: dict[tuple[tuple[str, str], ...], float] = {}
    body = ""
    for name, labels, value in lines:
        key = tuple(sorted([(NAME, name), *((k, v) for k, v in labels.items() if v)]))
        written.setdefault(
            tuple((f"exported_{k}" if k in IDENTITY else k, v) for k, v in key), value
        )
        escaped = {
            k: v.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
            for k, v in labels.items()
        }
        inner = ",".join(f'{k}="{v}"' for k, v in escaped.items())
        body += f"{name}{{{inner}}} {value!r}\n"

    for at in (1000, 2000):
        target.take(body.encode(), at)
        assert seen(store, at) == written
