from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.dispatch.order import alert_order, label_order

_LABELS = st.dictionaries(st.sampled_from("abj"), st.sampled_from(["", "1", "2"]), max_size=3)


def is_before(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """As Prometheus's `LabelSet.Before` says it."""
    if len(one) != len(other):
        return len(one) < len(other)
    for name in sorted({*one, *other}):
        if name not in one:
            return True
        if name not in other:
            return False
        if one[name] != other[name]:
            return one[name] < other[name]
    return False


@given(_LABELS, _LABELS)
def test_label_sets_stand_in_prometheus_order(one: dict[str, str], other: dict[str, str]) -> None:
    assert (label_order(one) < label_order(other)) == is_before(one, other)


def test_alerts_stand_by_job_then_by_instance_and_who_has_none_comes_last() -> None:
    ordered = [
        {"job": "a", "instance": "2", "z": "1", "y": "1"},
        {"job": "a", "z": "1"},
        {"job": "b", "instance": "1"},
        {"instance": "1", "a": "1"},
        {"a": "1"},
        {"a": "2"},
        {"a": "1", "b": "1"},
    ]
    mixed = [ordered[place] for place in (3, 6, 0, 5, 2, 4, 1)]
    assert sorted(mixed, key=alert_order) == ordered
