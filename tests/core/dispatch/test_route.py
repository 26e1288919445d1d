from datetime import UTC, datetime

import pytest

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.route import (
    Route,
    group_key,
    matchers_text,
    places_of,
    receivers_of,
    routes_of,
)
from sentinel.core.model.labels import Matcher

CRIT, WARN = Matcher("severity", "=", "critical"), Matcher("severity", "=", "warning")
DB = Matcher("team", "=", "db")


def alert(incident: str | None = None, **labels: str) -> Alert:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Alert(labels=labels, annotations={}, starts_at=at, updated_at=at, incident=incident)


TREE = Route(
    receiver="all",
    routes=(
        Route(receiver="copy", matchers=(CRIT,), continues=True),
        Route(
            receiver="db",
            matchers=(DB,),
            routes=(
                Route(receiver="dba", matchers=(CRIT,), continues=True),
                Route(receiver="pager", matchers=(CRIT,)),
                Route(receiver="mail", matchers=(WARN,)),
            ),
        ),
        Route(receiver="rest", matchers=(Matcher("team", "!=", ""),)),
    ),
)


@pytest.mark.parametrize(
    ("labels", "receivers"),
    [
        pytest.param({}, ("all",), id="nothing matches: the root"),
        pytest.param({"severity": "critical"}, ("copy",), id="continue, and nobody after"),
        pytest.param({"severity": "critical", "team": "x"}, ("copy", "rest"), id="continue"),
        pytest.param(
            {"severity": "critical", "team": "db"},
            ("copy", "dba", "pager"),
            id="continue below is not continue above",
        ),
        pytest.param({"severity": "warning", "team": "db"}, ("mail",), id="the deepest"),
        pytest.param({"team": "db"}, ("db",), id="no child matches: the parent"),
    ],
)
def test_an_alert_goes_to_the_deepest_routes_that_match(
    labels: dict[str, str], receivers: tuple[str, ...]
) -> None:
    assert receivers_of(TREE, labels) == receivers


def test_a_root_that_does_not_match_takes_nothing() -> None:
    assert routes_of(Route(receiver="a", matchers=(CRIT,)), {}) == ()


def test_a_receiver_of_two_routes_is_named_once_but_both_routes_are_found() -> None:
    root = Route(
        receiver="a",
        routes=(
            Route(receiver="b", matchers=(CRIT,), continues=True),
            Route(receiver="b", matchers=(DB,)),
        ),
    )
    labels = {"severity": "critical", "team": "db"}
    assert receivers_of(root, labels) == ("b",)
    assert [place.key for place in routes_of(root, labels)] == [
        '{}/{severity="critical"}',
        '{}/{team="db"}',
    ]


def test_a_routes_key_has_its_parents_and_its_matchers_sorted() -> None:
    matchers = (
        Matcher("b", "!~", "x"),
        Matcher("b", "=~", "x"),
        Matcher("b", "=", "y"),
        Matcher("a", "!=", 'say "\\\n"'),
    )
    root = Route(receiver="a", routes=(Route(receiver="b", matchers=matchers),))
    assert [place.key for place in places_of(root)] == [
        "{}",
        r'{}/{a!="say \"\\\n\"",b=~"x",b!~"x",b="y"}',
    ]


def test_matchers_of_the_same_name_and_value_stand_in_the_order_of_their_operators() -> None:
    matchers = [Matcher("a", op, "x") for op in ("!~", "=~", "!=", "=")]
    assert matchers_text(matchers) == '{a="x",a!="x",a=~"x",a!~"x"}'


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param("Größe 温度", '"Größe 温度"', id="what can be printed"),
        pytest.param('"\\', r'"\"\\"', id="quote and backslash"),
        pytest.param("\t\n\x00\x7f", r'"\t\n\x00\x7f"', id="control characters"),
        pytest.param("\u00a0\u200b\U000e0001", r'"\u00a0\u200b\U000e0001"', id="invisible"),
    ],
)
def test_a_group_key_shows_values_as_go_quotes_them(value: str, shown: str) -> None:
    assert group_key("{}", {"b": value, "a": "1"}) == f'{{}}:{{a="1", b={shown}}}'


@pytest.mark.parametrize(
    ("route", "labels"),
    [
        pytest.param(Route(receiver="a"), {"incident": "i-1"}, id="by incident unless told"),
        pytest.param(
            Route(receiver="a", group_by=frozenset({"x", "absent"})), {"x": "1"}, id="what it has"
        ),
        pytest.param(
            Route(receiver="a", groups_by_all=True), {"x": "1", "y": "2"}, id="all that is told"
        ),
        pytest.param(Route(receiver="a", group_by=frozenset()), {}, id="everything together"),
    ],
)
def test_a_group_has_the_labels_that_the_route_groups_by(
    route: Route, labels: dict[str, str]
) -> None:
    assert route.group_labels(alert("i-1", x="1", y="2")) == labels


def test_an_alert_without_an_incident_has_no_such_group_label() -> None:
    assert Route(receiver="a").group_labels(alert(x="1")) == {}
