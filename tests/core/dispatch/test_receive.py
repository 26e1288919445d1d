from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.receive import receive
from sentinel.core.model.command import PostedAlert
from sentinel.core.model.errors import Permanent

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMEOUT = timedelta(minutes=5)


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def posted(starts: float | None = None, ends: float | None = None) -> PostedAlert:
    return PostedAlert(
        labels={"a": "1"},
        annotations={"summary": "new"},
        starts_at=None if starts is None else at(starts),
        ends_at=None if ends is None else at(ends),
        generator_url="http://new",
    )


def known(starts: float, ends: float | None, *, is_timeout: bool = False) -> Alert:
    return Alert(
        labels={"a": "1"},
        annotations={"summary": "old"},
        starts_at=at(starts),
        ends_at=None if ends is None else at(ends),
        is_timeout=is_timeout,
        updated_at=at(-1),
        origin="posted",
        incident="i-1",
    )


@pytest.mark.parametrize(
    ("alert", "starts", "ends", "is_timeout"),
    [
        pytest.param(posted(), 0, 5, True, id="nothing said: from now, until it times out"),
        pytest.param(posted(-3), -3, 5, True, id="only a start"),
        pytest.param(posted(None, -2), -2, -2, False, id="only an end: it began and ended then"),
        pytest.param(posted(None, 2), 2, 2, False, id="only an end to come"),
        pytest.param(posted(-3, 9), -3, 9, False, id="both"),
    ],
)
def test_what_is_left_out_is_filled_in(
    alert: PostedAlert, starts: float, ends: float, is_timeout: bool
) -> None:
    assert receive(alert, None, NOW, TIMEOUT) == Alert(
        labels={"a": "1"},
        annotations={"summary": "new"},
        starts_at=at(starts),
        ends_at=at(ends),
        is_timeout=is_timeout,
        updated_at=NOW,
        generator_url="http://new",
        origin="posted",
    )


def test_labels_without_a_value_are_no_labels() -> None:
    alert = receive(PostedAlert(labels={"a": "1", "b": ""}), None, NOW, TIMEOUT)
    assert alert.labels == {"a": "1"}


@pytest.mark.parametrize(
    ("alert", "message"),
    [
        pytest.param(
            posted(0, -1), "start time must be before end time", id="ends before it began"
        ),
        pytest.param(
            PostedAlert(labels={"a-b": "1"}),
            'invalid label set: invalid name "a-b"',
            id="a name that is no label's",
        ),
        pytest.param(
            PostedAlert(labels={"a": ""}), "at least one label pair required", id="no label"
        ),
        pytest.param(
            PostedAlert(labels={"a": "1"}, annotations={"1x": ""}),
            'invalid annotations: invalid name "1x"',
            id="a name that is no annotation's",
        ),
    ],
)
def test_what_is_not_valid_is_refused_in_alertmanagers_words(
    alert: PostedAlert, message: str
) -> None:
    with pytest.raises(Permanent) as refused:
        receive(alert, None, NOW, TIMEOUT)
    assert (refused.value.message, refused.value.facts) == (message, {"status": 400})


@pytest.mark.parametrize(
    ("before", "alert", "starts", "ends", "is_timeout"),
    [
        pytest.param(
            known(-9, 4, is_timeout=True),
            posted(),
            -9,
            5,
            True,
            id="it goes on: the earliest start",
        ),
        pytest.param(
            known(-9, 30), posted(), -9, 30, True, id="an end that was said outlasts a timeout"
        ),
        pytest.param(
            known(-9, 30, is_timeout=True), posted(-2, 7), -9, 7, False, id="a timeout does not"
        ),
        pytest.param(known(-9, 4, is_timeout=True), posted(-9, -1), -9, -1, False, id="it is over"),
        pytest.param(
            known(-9, -1), posted(-5, -3), -9, -1, False, id="both are over: the later end"
        ),
        pytest.param(known(-9, -5), posted(), 0, 5, True, id="it was over: another time"),
        pytest.param(known(-9, -5), posted(-7), -7 - 2, 5, True, id="it was over, but overlaps"),
        pytest.param(known(-9, None), posted(), -9, None, True, id="nobody said that it ends"),
        pytest.param(
            known(-9, None), posted(-9, -1), -9, -1, False, id="somebody says that it ends"
        ),
    ],
)
def test_what_overlaps_with_what_is_known_is_one_alert(
    before: Alert, alert: PostedAlert, starts: float, ends: float | None, is_timeout: bool
) -> None:
    now = receive(alert, before, NOW, TIMEOUT)
    assert now.starts_at == at(starts)
    assert now.ends_at == (None if ends is None else at(ends))
    assert (now.is_timeout, now.annotations, now.updated_at) == (
        is_timeout,
        {"summary": "new"},
        NOW,
    )


@pytest.mark.parametrize(
    ("before", "alert", "incident"),
    [
        pytest.param(known(-9, 4), posted(), "i-1", id="it goes on"),
        pytest.param(known(-9, 4), posted(-9, -1), "i-1", id="it ends"),
        pytest.param(known(-9, -5), posted(-9, -1), "i-1", id="it is over, and that is said again"),
        pytest.param(known(-9, -5), posted(), None, id="it comes back"),
    ],
)
def test_an_alert_stays_with_its_incident_until_it_comes_back(
    before: Alert, alert: PostedAlert, incident: str | None
) -> None:
    assert receive(alert, before, NOW, TIMEOUT).incident == incident


def test_what_arrives_late_has_the_younger_ones_words() -> None:
    younger = replace(known(-9, 4), updated_at=at(1))
    assert receive(posted(), younger, NOW, TIMEOUT).annotations == {"summary": "old"}
