"""What operators write for durations, sizes, matchers, times: taken, or refused."""

import contextlib
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sentinel.config.addresses import EngineAddress, HostPort, ReceiverUrl, ServiceUrl
from sentinel.config.cron import Cron, Location, TimeZone
from sentinel.config.durations import Duration
from sentinel.config.intervals import DaysOfMonth, MinuteOfDay, Months, Weekdays, Years
from sentinel.config.matchers import Matchers
from sentinel.config.quantities import Flag, Percent, Size
from sentinel.core.model.labels import Matcher


def read(kind: Any, text: object) -> Any:
    return TypeAdapter(kind).validate_python(text)


TAKEN: list[tuple[Any, object, object]] = [
    (Duration, "0", timedelta()),
    (Duration, "500ms", timedelta(milliseconds=500)),
    (Duration, "1h30m", timedelta(hours=1, minutes=30)),
    (Duration, "1y2w3d", timedelta(days=365 + 14 + 3)),
    (Size, "1GiB", 1 << 30),
    (Size, "500MB", 500_000_000),
    (Size, "10 KiB", 10_240),
    (Size, "4096", 4096),
    (Percent, "50%", 50),
    (Percent, "0%", 0),
    (Percent, "100%", 100),
    (Flag, "true", True),
    (Flag, "No", False),
    (Flag, "on", True),
    (MinuteOfDay, "00:00", 0),
    (MinuteOfDay, "24:00", 24 * 60),
    (Weekdays, "monday:friday", (1, 5)),
    (Weekdays, "Sunday", (0, 0)),
    (DaysOfMonth, "1:5", (1, 5)),
    (DaysOfMonth, "-3:-1", (-3, -1)),
    (DaysOfMonth, "1:-1", (1, -1)),
    (DaysOfMonth, "15", (15, 15)),
    (Months, "january:march", (1, 3)),
    (Months, "1:may", (1, 5)),
    (Months, "12", (12, 12)),
    (Years, "2030", (2030, 2030)),
    (Cron, "0 4 * * sun", "0 4 * * sun"),
    (Cron, "  */15  0-6,22  1  jan-mar  MON-FRI ", "*/15 0-6,22 1 1-3 mon-fri"),
    (Cron, "0 0 29 2 *", "0 0 29 2 *"),
    (Cron, "0 0 31 2 mon", "0 0 31 2 mon"),
    (TimeZone, "Asia/Shanghai", "Asia/Shanghai"),
    (Location, "Local", "Local"),
    (Location, "UTC", "UTC"),
    (ReceiverUrl, "https://x.org/y?z=1", "https://x.org/y?z=1"),
    (ReceiverUrl, "http://127.0.0.2:80/", "http://127.0.0.2:80/"),
    (ReceiverUrl, "http://[::1]/", "http://[::1]/"),
    (ReceiverUrl, "http://localhost", "http://localhost"),
    (ServiceUrl, "http://10.0.0.1:8000", "http://10.0.0.1:8000"),
    (HostPort, "[::1]:25", "[::1]:25"),
    (EngineAddress, "unix:///var/run/docker.sock", "unix:///var/run/docker.sock"),
    (EngineAddress, "tcp://127.0.0.1:2375", "tcp://127.0.0.1:2375"),
]

REFUSED: list[tuple[Any, object, str]] = [
    (Duration, [], "is not a duration"),
    (Duration, {}, "is not a duration"),
    (Size, [], "is not a size"),
    (Flag, [], "is not a flag"),
    *((Duration, text, "is not a duration") for text in (
        "", "5", "1.5h", "-1s", "1s1m", "1m1m", "1 m", "1M", "m", "99999999999y", "x" * 9999,
    )),
    *((Size, text, "is not a size") for text in ("", "-1", "1.5GiB", "1 gib", "GiB", "1Gi")),
    *((Percent, text, "is not a percentage") for text in ("50", "-1%", "101%", "%", "0.5", "1000%")),
    *((Flag, text, "is not a flag") for text in ("", "maybe", "1", "y")),
    *((MinuteOfDay, text, "is no time of day") for text in ("24:01", "9:00", "25:00", "1", "09:60")),
    *((Weekdays, text, "is not known") for text in ("1", "mon", "monday:", "x:y", "")),
    (Weekdays, "saturday:sunday", "runs backwards"),
    *((DaysOfMonth, text, "is no day") for text in ("0", "32", "-32", "a", "1:b", "1:2:3")),
    *((DaysOfMonth, text, "runs backwards") for text in ("5:1", "-1:-3", "-1:5")),
    (DaysOfMonth, "20:-31", "never comes"),
    *((Months, text, "is not known") for text in ("0", "13", "jan", "")),
    (Months, "march:january", "runs backwards"),
    *((Years, text, "is no year") for text in ("30", "2031:2030", "x")),
    *((Cron, text, "is a number") for text in ("0 4 * * 1-5", "0 4 * * 0", "0 4 * * */2", "* * * * mon,2")),
    *((Cron, text, "") for text in (
        "@daily", "", "0 4 * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "5-1 * * * *",
        "*/0 * * * *", "* * * * sun-mon", "* * * * sunday", "* * * foo *", "a * * * *", "* * L * *", "1,,2 * * * *",
    )),
    (Cron, "0 0 31 feb *", "never comes"),
    (Cron, "0 0 31 4,6,9,11 *", "never comes"),
    *((TimeZone, text, "is no time zone") for text in ("", "Local", "Mars/Base", "../etc/passwd", "Asia", "/etc/passwd", "a\0b")),
    *((ReceiverUrl, text, "plain http") for text in ("http://10.0.0.1", "http://example.org", "http://127.0.0.1.evil.org")),
    *((ReceiverUrl, text, "") for text in (
        "", "x", "ftp://x", "https://", "https://a b", "https://x:99999", "https://[::1", "https://x:0", "//x", "https://x\n",
    )),
    (ReceiverUrl, "https://user:hunter2@x", "a user or password"),
    (ServiceUrl, "http://user@x/y", "a user or password"),
    *((HostPort, text, "is no host and port") for text in ("x", "x:", ":25", "x:0", "x:65536", "x:y")),
    *((EngineAddress, text, "is no") for text in ("", "unix://", "unix:///", "ssh://x", "/var/run/docker.sock", "tcp://x")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), TAKEN, ids=lambda v: str(v)[:20])
def test_a_value_is_read(kind: Any, text: object, value: object) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(("kind", "text", "says"), REFUSED, ids=lambda v: str(v)[:20])
def test_a_value_is_refused_and_what_is_allowed_is_said(kind: Any, text: object, says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        read(kind, text)

    [error] = refused.value.errors()
    if error["type"] == "wrong":
        assert says in error["ctx"]["message"]
        assert error["ctx"]["allowed"]


@pytest.mark.parametrize(
    ("text", "matchers"),
    [
        ('alertname="X"', [("alertname", "=", "X")]),
        ("alertname=X", [("alertname", "=", "X")]),
        (' a != "b" ', [("a", "!=", "b")]),
        ('a=~"b|c"', [("a", "=~", "b|c")]),
        ('a!~"b.*"', [("a", "!~", "b.*")]),
        ('a=""', [("a", "=", "")]),
        ("a=", [("a", "=", "")]),
        ('{a="b"}', [("a", "=", "b")]),
        ('{a="b", c=~"d,e",}', [("a", "=", "b"), ("c", "=~", "d,e")]),
        ("a=b,c=d", [("a", "=", "b"), ("c", "=", "d")]),
        (r'a="b\"c\\d\ne"', [("a", "=", 'b"c\\d\ne')]),
        (r'a=~"b\.c\d"', [("a", "=~", r"b\.c\d")]),
        ('"a b"="c"', [("a b", "=", "c")]),
        ("a=b=c", [("a", "=", "b=c")]),
        ('a="b}"', [("a", "=", "b}")]),
        ("a=中文", [("a", "=", "中文")]),
    ],
)
def test_a_matcher_is_read(text: str, matchers: list[tuple[str, Any, str]]) -> None:
    assert read(Matchers, [text]) == tuple(Matcher(*parts) for parts in matchers)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "{", "}", "a", "=b", 'a="b', 'a=b"', "a=={b", "{a=b", "a=b}", "a=b,,c=d", '1a="b"',
     'a=~"("', 'a=~"(?=x)"', 'a=b c=d"', ",", 'a="b" c="d"', "a~b"],
)  # fmt: skip
def test_what_is_no_matcher_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        read(Matchers, [text])


@given(st.text(max_size=30), st.sampled_from(["=", "!="]))
def test_any_value_of_a_matcher_survives_being_written(value: str, op: Any) -> None:
    written = TypeAdapter(Matchers).dump_python((Matcher("a", op, value),), mode="json")

    assert read(Matchers, written) == (Matcher("a", op, value),)


@given(st.text(max_size=30))
def test_any_text_is_a_matcher_or_refused(text: str) -> None:
    with contextlib.suppress(ValidationError):
        assert read(Matchers, text)


@given(st.integers(0, 9 * 10**12))
def test_a_duration_survives_being_written(milliseconds: int) -> None:
    span = timedelta(milliseconds=milliseconds)

    assert read(Duration, TypeAdapter(Duration).dump_python(span, mode="json")) == span


@given(st.integers(0, 1 << 45))
def test_a_size_survives_being_written(size: int) -> None:
    assert read(Size, TypeAdapter(Size).dump_python(size, mode="json")) == size
