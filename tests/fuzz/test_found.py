"""What fuzzing and the comparison with Prometheus have found stays put right."""

import json
import math
import zlib

import pytest

from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import NAME, value_of
from sentinel.core.model.packed import pack, unpack
from sentinel.core.model.series import Store
from sentinel.core.promql import EvaluationError, ExpressionError, Sample, compile_expression
from sentinel.runtime.ingest import Exposition

AT = 60_000


def a_store() -> Store:
    store = Store()
    store.source("t", {}).put(
        [
            *(("x", {"l": text}, 1.0) for text in ("a1", "a.b", "[a", "É", "")),
            *((name, {"le": le}, 4.0) for name in ("p_bucket", "q_bucket") for le in ("1", "+Inf")),
            ("endless", {}, math.inf),
            ("unknown", {}, math.nan),
        ],
        AT,
    )
    return store


def labels_found(expression: str) -> set[str]:
    found = compile_expression(expression).at(a_store(), AT)
    assert isinstance(found, list)
    return {value_of(one.labels, "l") for one in found}


def only_value(expression: str) -> float:
    found = compile_expression(expression).at(a_store(), AT)
    assert isinstance(found, list)
    assert len(found) == 1
    assert isinstance(found[0], Sample)
    return found[0].value


@pytest.mark.parametrize(
    ("matcher", "found"),
    [
        pytest.param(r"l=~`\w\d`", {"a1"}, id="backslashes between backticks are no escapes"),
        pytest.param(r"l=`a\1`", set(), id="also where there is no pattern"),
        pytest.param('l=~"[[]a"', {"[a"}, id="a bracket in brackets"),
        pytest.param(r'l=~"\\Qa.b\\E"', {"a.b"}, id="quoted"),
        pytest.param(r'l=~"\\141[.]b"', {"a.b"}, id="octal"),
        pytest.param(r'l=~"\\pL"', {"É"}, id="a category"),
        pytest.param(r'l=~"\\p{Lu}"', {"É"}, id="a narrower category"),
        pytest.param(r'l=~"[^\\PL]|(?U)a.+"', {"É", "a1", "a.b"}, id="a negated one, ungreedy"),
        pytest.param('l=~"[[:^alpha:]]a"', {"[a"}, id="a negated POSIX class"),
        pytest.param('l=~#c\n"a1"', {"a1"}, id="a comment before the pattern"),
        pytest.param('l!~"a.*", l=~"pattern-0|.a"', {"[a"}, id="nothing is mistaken for another"),
    ],
)
def test_patterns_are_prometheus_s_and_not_the_parser_s(matcher: str, found: set[str]) -> None:
    assert labels_found(f"x{{{matcher}}}") == found


@pytest.mark.parametrize(
    "expression",
    [
        "rate(x[99999999y])",
        "x offset 99999999999y",
        "max_over_time(x[5m:99999999y])",
        '{l=~".*"}',
        '{l=~".*", l!="a"}',
        r'x{l=~"\\p{Greek}"}',
        'x{l=~"["}',
    ],
)
def test_what_no_prometheus_would_take_is_refused_when_it_is_read(expression: str) -> None:
    with pytest.raises(ExpressionError):
        compile_expression(expression)


def test_a_message_shows_the_pattern_that_was_written() -> None:
    with pytest.raises(ExpressionError, match=r"'x' or 'y\.\*'"):
        compile_expression('x{__name__=~"y.*"}')


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("clamp_min(endless, NaN)", math.inf),
        ("clamp_max(-endless, NaN)", -math.inf),
        ("clamp(-endless, 0, NaN)", 0.0),
        ("clamp_min(unknown, 1)", math.nan),
        ("1 / clamp_min(vector(-0), 0)", math.inf),
        ("1 / clamp_max(vector(0), -0)", -math.inf),
        ("year(unknown)", 292277026596.0),
        ("days_in_month(endless)", 31.0),
        ("year(vector(253402300800))", 10000.0),
        ("day_of_week(vector(-1))", 3.0),
    ],
)
def test_the_odd_numbers_are_go_s(expression: str, value: float) -> None:
    assert only_value(expression) == pytest.approx(value, nan_ok=True)


def test_histograms_of_two_names_are_not_added_up() -> None:
    with pytest.raises(EvaluationError, match="same labelset"):
        only_value('histogram_quantile(0.5, {__name__=~"(p|q)_bucket"})')


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("sum_over_time(" * 20 + "x" + "[1h:1s])" * 20, id="nested subqueries"),
        pytest.param("max_over_time(" * 90 + "none" + "[5m:1m])" * 90, id="over nothing"),
    ],
)
def test_work_without_end_is_given_up(expression: str) -> None:
    with pytest.raises(EvaluationError, match="too many samples"):
        compile_expression(expression).at(a_store(), AT)


def test_a_sample_from_the_far_future_does_not_keep_later_ones_out() -> None:
    store = Store()
    exposition = Exposition(store.source("t", {}))
    exposition.take(b"x 1 99999999999999\ny 1\n", AT)
    exposition.take(b"x 2\n", AT + 5_000)

    assert compile_expression("x").at(store, AT + 5_000) == [Sample(((NAME, "x"),), 2.0)]


def test_a_refused_body_leaves_nothing_behind() -> None:
    store = Store()
    exposition = Exposition(store.source("t", {}), max_samples=50)
    for number in range(200):
        with pytest.raises(Permanent):
            exposition.take(b'x{id="%d"} 1\nbroken\n' % number, AT + number)
    with pytest.raises(Permanent, match="more than 50 samples"):
        exposition.take(b"x 1\n" * 1_000, 2 * AT)

    assert list(store.every()) == []
    assert exposition._slots == {}


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda sources: sources[0].__setitem__(0, None), id="no name"),
        pytest.param(lambda sources: sources[0][2][0].__setitem__(1, -1), id="before the first"),
        pytest.param(lambda sources: sources[0][2][0].__setitem__(3, 99), id="more than there is"),
        pytest.param(lambda sources: sources[0].pop(), id="a field less"),
        pytest.param(lambda sources: sources.__setitem__(0, 7), id="no source"),
    ],
)
def test_a_snapshot_that_makes_no_sense_is_refused_though_its_checksum_fits(spoil: object) -> None:
    head, _, rest = pack(a_store()).partition(b"\n")
    described, _, columns = rest.partition(b"\n")
    sources = json.loads(described)
    spoil(sources)  # type: ignore[operator]
    rest = json.dumps(sources).encode() + b"\n" + columns
    store = Store()

    with pytest.raises(ValueError, match="series"):
        unpack(b"%s %08x\n%s" % (head.rsplit(b" ", 1)[0], zlib.crc32(rest), rest), store)
    assert store.sources() == ()
