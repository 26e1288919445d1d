from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.inhibit import Inhibitor, InhibitRule
from sentinel.core.model.labels import Matcher

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CRIT, WARN = Matcher("sev", "=", "crit"), Matcher("sev", "=", "warn")
ANY = Matcher("sev", "=~", "crit|warn")


def alert(ends_at: datetime | None = None, incident: str | None = None, **labels: str) -> Alert:
    return Alert(
        labels=labels,
        annotations={},
        starts_at=NOW,
        ends_at=ends_at,
        updated_at=NOW,
        incident=incident,
    )


@pytest.mark.parametrize(
    ("rule", "target", "source", "expected"),
    [
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,)),
            {"sev": "warn", "n": "1"}, alert(sev="crit", n="2"), True,
            id="nothing need be equal",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,), equal=("n",)),
            {"sev": "warn", "n": "1"}, alert(sev="crit", n="2"), False,
            id="a label differs",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,), equal=("n", "absent")),
            {"sev": "warn", "n": "1"}, alert(sev="crit", n="1"), True,
            id="absent on both is equal",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,), equal=("n",)),
            {"sev": "warn"}, alert(sev="crit", n="1"), False,
            id="absent on one differs",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,)),
            {"sev": "info"}, alert(sev="crit"), False,
            id="no target",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,)),
            {"sev": "warn"}, alert(sev="crit", ends_at=NOW), False,
            id="the source is over",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(WARN,)),
            {"sev": "warn"}, alert(sev="crit", ends_at=NOW + timedelta(seconds=1)), True,
            id="the source will be over",
        ),
        pytest.param(
            InhibitRule(source=(ANY,), target=(ANY,)),
            {"sev": "warn"}, alert(sev="crit"), False,
            id="both are cause and consequence",
        ),
        pytest.param(
            InhibitRule(source=(ANY,), target=(WARN,)),
            {"sev": "warn"}, alert(sev="crit"), True,
            id="only the target is cause and consequence",
        ),
        pytest.param(
            InhibitRule(source=(CRIT,), target=(ANY,)),
            {"sev": "warn"}, alert(sev="crit"), True,
            id="only the source is cause and consequence",
        ),
        pytest.param(
            InhibitRule(source=(Matcher("incident", "=", "i-1"),), target=(WARN,)),
            {"sev": "warn"}, alert(sev="crit", incident="i-1"), True,
            id="a source by its incident",
        ),
    ],
)  # fmt: skip
def test_a_source_keeps_a_target_quiet(
    rule: InhibitRule, target: Mapping[str, str], source: Alert, expected: bool
) -> None:
    found = list(Inhibitor([rule], [source]).of(target, NOW))
    assert found == ([source.fingerprint] if expected else [])


def test_an_alert_does_not_keep_itself_quiet() -> None:
    only = alert(sev="crit")
    rule = InhibitRule(source=(CRIT,), target=(CRIT,))
    assert not list(Inhibitor([rule], [only]).of(only.matched, NOW))


def test_a_source_that_is_forgotten_keeps_nobody_quiet() -> None:
    source = alert(sev="crit")
    inhibitor = Inhibitor([InhibitRule(source=(CRIT,), target=(WARN,))], [source])
    inhibitor.forget(source)
    assert not list(inhibitor.of({"sev": "warn"}, NOW))
