import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.config.seriesnotation import STALE, parse_series, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("5 -2 +3", [5, -2, 3]),
        ("-2+4x3", [-2, 2, 6, 10]),
        ("1-2x4", [1, -1, -3, -5, -7]),
        ("1x4", [1, 1, 1, 1, 1]),
        ("0x10", [0] * 11),
        ("_ _x3 1", [None, None, None, None, 1]),
        ("1 stale 2", [1, STALE, 2]),
        ("Inf -Inf inf", [math.inf, -math.inf, math.inf]),
        ("1e3 .5 5. 1.5e-1", [1000, 0.5, 5, 0.15]),
        ("010 08", [8, 8]),
        ("0.1+0.1x3", [0.1, 0.2, 0.30000000000000004, 0.4]),
        ("  1\n  2 ", [1, 2]),
    ],
)
def test_values_are_read_as_promtool_reads_them(
    text: str, values: list[float | str | None]
) -> None:
    assert parse_values(text) == values


def test_nan_is_a_number() -> None:
    [value] = parse_values("NaN")

    assert isinstance(value, float)
    assert math.isnan(value)


@pytest.mark.parametrize(
    "text", ["1+1", "1x", "stalex2", "1,2", "abc", "0x1f", "1xx2", "1x-2", "--1", "__", "1 {{schema:0}}", "1x9999999"]
)  # fmt: skip
def test_values_that_promtool_refuses_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_values(text)


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("m", {"__name__": "m"}),
        ("m{}", {"__name__": "m"}),
        ("{}", {}),
        ('a:b{c="d", e="f",}', {"__name__": "a:b", "c": "d", "e": "f"}),
        ('{__name__="m", le="+Inf"}', {"__name__": "m", "le": "+Inf"}),
        ('m { a = "x}y" } ', {"__name__": "m", "a": "x}y"}),
        (
            r'm{a="q\"\\\n", b=' + "'s', c=`r\\n`}",
            {"__name__": "m", "a": 'q"\\\n', "b": "s", "c": "r\\n"},
        ),
        ('{"a.b", "c d"="e"}', {"__name__": "a.b", "c d": "e"}),
    ],
)
def test_a_series_is_read(text: str, labels: dict[str, str]) -> None:
    assert parse_series(text) == labels


@pytest.mark.parametrize(
    "text", ["", "1m", "m{", "m}", "m{a}", "m{a=b}", 'm{a="b"} x', 'm{a="b"', 'm{"n"}', "m{a=~'b'}"]
)
def test_what_is_no_series_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a series"):
        parse_series(text)


@given(
    st.text(alphabet="0123456789+-x_ .eEinfaNstl", max_size=12),
    st.text(alphabet='{}="ab,\\ `', max_size=12),
)
def test_any_text_is_read_or_refused(values: str, series: str) -> None:
    for parse, text in ((parse_values, values), (parse_series, series)):
        with suppress(ValueError):
            parse(text)
