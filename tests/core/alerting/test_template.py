import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.alerting.go_format import show_float, sprintf
from sentinel.core.alerting.template import (
    Row,
    Scene,
    TemplateError,
    TemplateSyntaxError,
    compile_template,
    expand,
)
from sentinel.core.model.series import Store
from sentinel.core.promql import ExpressionError, compile_expression
from tests.core.alerting.template_cases import CASES, REFUSED
from tests.rules.promtool import annotations, check_rules, needs_promtool, promtool

AT = datetime(1970, 1, 1, tzinfo=UTC)
LABELS = {"job": "api", "n": "07"}


def query(text: str) -> list[Row]:
    store = Store()
    store.source("input", {}).put([("m", LABELS, 1234.5)], 0)
    try:
        found: Any = compile_expression(text).at(store, 0)
    except ExpressionError as error:
        raise TemplateError(str(error)) from error
    return [Row(dict(sample.labels), sample.value) for sample in found]


def expanded(text: str) -> str:
    scene = Scene(AT, query)
    return expand(text, {"__name__": "m", **LABELS}, 1234.5, scene, {"host": "gpu1"})


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_a_template_gives_what_prometheus_gives(text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(TemplateError):
            expanded(text)
    else:
        assert expanded(text) == expected


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_go_refuses_to_parse_is_refused(text: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        compile_template(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{ nosuch 1 }}", 'line 1: function "nosuch" not defined'),
        ("a\nb {{ $nosuch }}", 'line 2: undefined variable "$nosuch"'),
        ("{{ if true }}x", "line 1: unexpected end of template, {{end}} is missing"),
        ("{{ $value ! }}", "line 1: unexpected '!' in action"),
    ],
)
def test_a_refusal_says_where_and_why(text: str, says: str) -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template(text)

    assert str(caught.value) == says


def test_templates_know_the_outer_address_and_the_instant() -> None:
    scene = Scene(datetime(1970, 1, 2, tzinfo=UTC), query, "http://sentinel.example/s")

    shown = expand(
        "{{ $externalURL }} {{ externalURL }} {{ pathPrefix }} {{ now }}", {}, 0.0, scene
    )

    assert shown == "http://sentinel.example/s http://sentinel.example/s /s 86400"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ toDuration 3723.5 }}", "1h2m3.5s"),
        ("{{ toDuration 0.0015 }}", "1.5ms"),
        ("{{ toTime 86400 }}", "1970-01-02 00:00:00 +0000 UTC"),
        ('{{ urlQueryEscape "a b&c" }}', "a+b%26c"),
    ],
)
def test_functions_that_only_prometheus_3_has(text: str, expected: str) -> None:
    assert expanded(text) == expected


@pytest.mark.parametrize("nested", ["{{ if true }}", "{{ (", "{{ range "])
def test_nesting_without_end_is_refused_and_no_crash(nested: str) -> None:
    with pytest.raises(TemplateSyntaxError):
        compile_template(nested * 5000)


@given(st.text(alphabet="{}-/*|()$.,:=\"'`\\ \nabif01end range", max_size=60))
def test_any_text_is_a_template_or_refused(text: str) -> None:
    try:
        shown = expanded(text)
    except (TemplateError, TemplateSyntaxError):
        return
    assert isinstance(shown, str)


@given(st.floats())
def test_a_float_is_shown_so_that_it_reads_back(value: float) -> None:
    back = float(show_float(value))

    assert back == value or (math.isnan(back) and math.isnan(value))


@given(
    st.text(alphabet="%+- #0123456789.[]*vdfsqxgeUcT", max_size=12),
    st.lists(
        st.one_of(st.integers(), st.floats(), st.text(max_size=3), st.booleans(), st.none()),
        max_size=3,
    ),
)
def test_printf_never_raises(text: str, values: list[Any]) -> None:
    assert isinstance(sprintf(text, values), str)


@pytest.mark.slow
@needs_promtool
def test_promtool_agrees_with_every_case(tmp_path: Path) -> None:
    texts = {f"a{number}": text for number, (text, _) in enumerate(CASES.values())}
    rule = {"alert": "A", "expr": "m", "annotations": texts}
    series = [{"series": 'm{job="api",n="07"}', "values": "1234.5"}]
    asked = [{"eval_time": "0s", "alertname": "A", "exp_alerts": []}]
    test = {
        "interval": "1m",
        "external_labels": {"host": "gpu1"},
        "input_series": series,
        "alert_rule_test": asked,
    }
    (tmp_path / "r.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}))
    (tmp_path / "t.yaml").write_text(yaml.safe_dump({"rule_files": ["r.yaml"], "tests": [test]}))

    got = annotations(promtool("test", "rules", tmp_path / "t.yaml")[1])

    for number, (name, (_, expected)) in enumerate(CASES.items()):
        text = got[f"a{number}"]
        assert (None if text.startswith("<error expanding template: ") else text) == expected, name


@pytest.mark.slow
@needs_promtool
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_promtool_refuses_it_too(text: str, tmp_path: Path) -> None:
    rule = {"alert": "A", "expr": "m", "annotations": {"a": text}}
    file = tmp_path / "r.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": [rule]}]}))

    assert not check_rules(file)
