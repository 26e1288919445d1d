"""The store: whole looks, staleness, gaps, clocks that are set back, bounded memory."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel.core.model.labels import NAME, Matcher, labels_of, value_of
from sentinel.core.model.packed import pack, unpack
from sentinel.core.model.series import Source, Store
from sentinel.core.promql import RangeSample, Sample, compile_expression

SECOND = 1000


def look(source: Source, at: int, **values: float) -> None:
    source.put([(name, {}, value) for name, value in values.items()], at * SECOND)


def now(store: Store, text: str, at: float) -> dict[str, float]:
    value = compile_expression(text).at(store, round(at * SECOND))
    assert isinstance(value, list)
    return {value_of(s.labels, NAME): s.value for s in value if isinstance(s, Sample)}


def points(store: Store, text: str, at: int) -> list[tuple[int, float]]:
    value = compile_expression(text).at(store, at * SECOND)
    assert isinstance(value, list)
    return [(ms // SECOND, v) for s in value if isinstance(s, RangeSample) for ms, v in s.points]


def test_a_value_is_readable_from_its_look_until_the_look_back_ends() -> None:
    store = Store()
    look(store.source("t", {}), 10, a=1)

    assert now(store, "a", 9.999) == {}
    assert now(store, "a", 10) == {"a": 1}
    assert now(store, "a", 309.999) == {"a": 1}
    assert now(store, "a", 310) == {}


def test_what_a_whole_look_does_not_hold_has_vanished() -> None:
    store = Store()
    source = store.source("t", {})
    look(source, 10, a=1, b=2)
    look(source, 20, b=3)

    assert now(store, "a", 19) == {"a": 1}
    assert now(store, "a", 20) == {}
    assert now(store, "b", 20) == {"b": 3}
    assert points(store, "a[1m]", 20) == [(10, 1)]


def test_a_missed_look_makes_everything_stale_until_the_next_one() -> None:
    store = Store()
    source = store.source("t", {})
    look(source, 10, a=1)
    source.missed(20 * SECOND)
    source.missed(30 * SECOND)

    assert now(store, "a", 19) == {"a": 1}
    assert now(store, "a", 20) == {}
    assert now(store, "a", 35) == {}
    look(source, 40, a=5)
    assert now(store, "a", 35) == {}
    assert now(store, "a", 40) == {"a": 5}
    assert points(store, "a[1m]", 40) == [(10, 1), (40, 5)]


def test_a_missed_look_at_one_source_says_nothing_about_another() -> None:
    store = Store()
    look(store.source("t", {}), 10, a=1)
    other = store.source("u", {})
    look(other, 10, b=1)
    other.missed(11 * SECOND)

    assert now(store, '{__name__=~"a|b"}', 12) == {"a": 1}


def test_a_series_that_comes_back_keeps_its_past_and_its_gap() -> None:
    store = Store()
    source = store.source("t", {})
    for at, values in [(10, {"a": 1.0}), (20, {}), (30, {"a": 3.0}), (40, {"a": 4.0}), (50, {})]:
        look(source, at, b=0, **values)

    assert points(store, "a[1m]", 60) == [(10, 1), (30, 3), (40, 4)]
    assert [now(store, "a", at) for at in (10, 19, 20, 29)] == [{"a": 1}, {"a": 1}, {}, {}]
    assert [now(store, "a", at) for at in (30, 45, 50)] == [{"a": 3}, {"a": 4}, {}]


def test_a_dropped_source_ends_but_its_past_can_be_read() -> None:
    store = Store()
    look(store.source("t", {}), 10, a=1)
    store.drop("t")

    assert now(store, "a", 11) == {}
    assert points(store, "a[1m]", 11) == [(10, 1)]


def test_a_source_that_returns_under_its_name_goes_on() -> None:
    store = Store()
    look(store.source("t", {"target": "x"}), 10, a=1)
    store.drop("t")
    look(store.source("t", {"target": "x"}), 30, a=2)

    assert points(store, "a[1m]", 30) == [(10, 1), (30, 2)]
    assert now(store, "a", 30) == {"a": 2}


def test_new_labels_for_a_source_make_new_series() -> None:
    store = Store()
    look(store.source("t", {"instance": "1"}), 10, a=1)
    look(store.source("t", {"instance": "2"}), 20, a=2)

    value = compile_expression("a").at(store, 20 * SECOND)

    assert value == [Sample(labels_of({NAME: "a", "instance": "2"}), 2.0)]


def test_a_source_asked_for_without_labels_is_the_one_that_is_there() -> None:
    store = Store()
    source = store.source("t", {"target": "x"})

    assert store.source("t", {}) is source


def test_the_same_series_from_two_sources_is_one_series() -> None:
    store = Store()
    look(store.source("t", {}), 10, a=1)
    look(store.source("u", {}), 20, a=2)

    assert now(store, "a", 15) == {"a": 1}
    assert now(store, "a", 25) == {"a": 2}
    assert points(store, "a[1m]", 25) == [(10, 1), (20, 2)]


@pytest.mark.parametrize(
    ("source", "scraped", "kept"),
    [
        pytest.param({"host": "h"}, {"gpu": "0"}, {"host": "h", "gpu": "0"}, id="both stay"),
        pytest.param(
            {"host": "h"}, {"host": "x"}, {"host": "h", "exported_host": "x"}, id="conflict"
        ),
        pytest.param({"host": "h"}, {"host": ""}, {"host": "h"}, id="empty is absent"),
        pytest.param(
            {"host": "h"},
            {"host": "x", "exported_host": "y"},
            {"host": "h", "exported_host": "y", "exported_exported_host": "x"},
            id="conflict of the conflict",
        ),
    ],
)
def test_labels_of_the_source_win(
    source: Mapping[str, str], scraped: Mapping[str, str], kept: Mapping[str, str]
) -> None:
    store = Store()
    store.source("t", source).put([("a", scraped, 1.0)], 0)

    assert [series.labels for series in store.every()] == [labels_of({NAME: "a", **kept})]


def test_a_clock_set_back_forgets_the_future_it_had_written() -> None:
    store = Store()
    source = store.source("t", {})
    for at in (10, 20, 30, 40):
        look(source, at, a=at, b=at)
    source.missed(45 * SECOND)
    look(source, 25, a=1)

    assert points(store, "a[1m]", 60) == [(10, 10), (20, 20), (25, 1)]
    assert now(store, "a", 50) == {"a": 1}
    assert now(store, "b", 50) == {}
    look(source, 26, a=2, b=2)
    assert points(store, "b[1m]", 60) == [(10, 10), (20, 20), (26, 2)]


def test_only_wanted_names_are_kept() -> None:
    store = Store(keep={"a"}.__contains__)
    look(store.source("t", {}), 10, a=1, b=2)

    assert list(store.names()) == ["a"]


def test_the_version_rises_when_series_come_and_go_and_not_in_between() -> None:
    store = Store(retention_ms=60 * SECOND)
    source = store.source("t", {})
    look(source, 0, a=1)
    first = store.version
    look(source, 5, a=1)
    assert store.version == first
    look(source, 10, a=1, b=1)
    second = store.version
    assert second > first
    store.drop("t")
    store.trim(1000 * SECOND)
    assert store.version > second
    assert list(store.every()) == []


def test_trimming_keeps_what_is_within_the_retention() -> None:
    store = Store(retention_ms=100 * SECOND)
    source = store.source("t", {})
    for at in range(0, 1000, 5):
        if at == 950:
            source.missed(at * SECOND)
        elif at == 960:
            look(source, at, b=at)
        else:
            look(source, at, a=at, b=at)
        store.trim(at * SECOND)

    assert points(store, "a[100s]", 999) == [
        (t, t) for t in range(900, 1000, 5) if t not in (950, 960)
    ]
    assert points(store, "b[100s]", 999) == [(t, t) for t in range(900, 1000, 5) if t != 950]
    assert all(len(series.values) < 100 for series in store.every())


def test_a_cut_answers_as_the_store_did() -> None:
    store = Store()
    source = store.source("t", {"x": "y"})
    for at in range(0, 300, 10):
        if at == 100:
            look(source, at, b=at)
        elif at == 200:
            source.missed(at * SECOND)
        else:
            look(source, at, a=at, b=at)
    cut = store.cut(frozenset({"a"}), 50 * SECOND)
    look(source, 300, a=1)

    assert list(cut.names()) == ["a"]
    assert points(cut, "a", 100) == []
    assert points(cut, "a[4m]", 299) == points(store, "a[4m]", 299)
    for at in range(60, 299, 5):
        assert now(cut, "a", at) == now(store, "a", at)


def test_a_store_survives_as_bytes_and_its_sources_go_on() -> None:
    store = Store()
    source = store.source("t", {"x": "y"})
    for at in range(0, 300, 10):
        if at == 200:
            source.missed(at * SECOND)
        else:
            look(source, at, **({"b": at} if at == 100 else {"a": at, "b": 300 - at}))
    again = Store()
    unpack(pack(store), again)

    for at in range(0, 290, 5):
        assert now(again, "a", at) == now(store, "a", at)
        assert now(again, "resets(b[1m])", at) == now(store, "resets(b[1m])", at)
    assert now(again, "a", 291) == {}
    look(again.source("t", {"x": "y"}), 310, a=5)
    assert now(again, "a", 310) == {"a": 5}
    assert points(again, "a[40s]", 310) == [(280, 280), (290, 290), (310, 5)]


def test_what_is_not_kept_any_more_is_not_restored() -> None:
    store = Store()
    look(store.source("t", {}), 10, a=1, b=2)
    again = Store(keep={"b"}.__contains__)
    unpack(pack(store), again)

    assert list(again.names()) == ["b"]


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_file_is_refused_as_a_whole(place: int, byte: int) -> None:
    store = Store()
    source = store.source("t", {"x": "y"})
    for at in range(20):
        look(source, at, a=at, b=at)
    data = bytearray(pack(store))
    place %= len(data)
    again = Store()
    if data[place] != byte:
        data[place] = byte
        try:
            unpack(bytes(data), again)
        except ValueError:
            assert list(again.every()) == []
    with pytest.raises(ValueError, match="series"):
        unpack(pack(store)[:place], again)


Step = tuple[int, dict[str, float] | None]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(-30, 40),
            st.none() | st.dictionaries(st.sampled_from("abc"), st.floats(0, 9), max_size=3),
        ),
        max_size=30,
    ),
    st.integers(0, 400),
)
def test_columns_answer_as_a_plain_list_of_events_would(steps: list[Step], at: int) -> None:
    store = Store(retention_ms=150 * SECOND)
    source = store.source("t", {})
    events: list[Step] = []
    clock = 100
    for step, values in steps:
        clock = max(clock + step, 1)
        events = [event for event in events if event[0] < clock] + [(clock, values)]
        if values is None:
            source.missed(clock * SECOND)
        else:
            look(source, clock, **values)
    known = [event for event in events if event[0] <= at]
    expected = {}
    for name in "abc":
        if known and known[-1][1] is not None and name in known[-1][1] and known[-1][0] > at - 300:
            expected[name] = known[-1][1][name]
        window = [(t, v[name]) for t, v in known if v is not None and name in v and t > at - 60]
        assert points(store, f"{name}[1m]", at) == window
        drops = sum(b[1] < a[1] for a, b in itertools.pairwise(window))
        resets = now(store, f"resets({name}[1m])", at)
        assert resets == ({"": drops} if window else {})
    assert now(store, '{__name__=~"a|b|c"}', at) == expected


@pytest.mark.parametrize(
    ("op", "value", "text", "matches"),
    [
        ("=", "a", "a", True),
        ("=", "", "", True),
        ("!=", "a", "a", False),
        ("=~", "a.*", "abc", True),
        ("=~", "b", "abc", False),
        ("=~", "a|b", "b", True),
        ("=~", "a.b", "a\nb", True),
        ("=~", "(?i)AB(c)", "abC", True),
        ("=~", "((?i)PRO).*", "production", True),
        ("=~", "((?i)PRO)D", "prod", False),
        ("=~", "a(?i)b|c", "C", True),
        ("=~", "[[:alpha:]]+", "ab", True),
        ("=~", r"\Qa.b\E+", "a.bb", True),
        ("=~", "a$", "a\n", False),
        ("=~", r"\d+\D", "12x", True),
        ("=~", r"[\d.]+", "1.2", True),
        ("=~", r"\x{1F600}", "\U0001f600", True),
        ("=~", "(?P<x>a)(?<y>b)", "ab", True),
        ("=~", "x{,2}", "x{,2}", True),
        ("=~", "[[a]&&-]+", "[a", False),
        ("=~", "[a&&b~~c|-]", "&", True),
        ("=~", r"[^\W\d]", "_", True),
        ("=~", r"[a-]+[]-]", "a-]", True),
        ("=~", "[+--]", ",", True),
        ("!~", "a.*", "abc", False),
        ("!~", "a", "", True),
    ],
)
def test_a_matcher(op: str, value: str, text: str, matches: bool) -> None:
    assert Matcher("l", op, value).matches(text) is matches  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[a", "a**", "*a", "(?=a)", "(?!a)", "(?<=a)", r"(a)\1", "a++", "(?P=x)", r"\8",
     "a{1001}", "a{2,1}", "(?#x)", "\\", r"\Z", "[[:nope:]]", "[z-a]", "[a--b]"],
)  # fmt: skip
def test_a_pattern_that_prometheus_or_python_could_not_bear_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="regular expression"):
        Matcher("l", "=~", pattern)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab()[]{}*+?|\\.^$-:&~dQEpx19i<>P=!#,\n", max_size=12), st.text(max_size=8))
def test_no_pattern_raises_anything_but_a_value_error(pattern: str, text: str) -> None:
    try:
        matcher = Matcher("l", "=~", pattern)
    except ValueError:
        return
    matcher.matches(text)
