from dataclasses import replace

from sentinel.core.model.message import AlertFacts, Notice
from sentinel.core.voice.bundle import bundle
from sentinel.core.voice.say import say


def notice(target: str, headline: str, status: str = "firing") -> Notice:
    alert = AlertFacts(
        status="firing" if status == "firing" else "resolved",
        labels={"alertname": "VllmDown", "severity": "critical", "target": target},
        annotations={},
        starts_at="2030-01-01T03:00:00Z",
    )
    return Notice(
        kind="alert" if status == "firing" else "resolved",
        group_key=target,
        group_labels={},
        alerts=(alert,),
        incident={"id": f"i-{target}"},
        headline=headline,
        facts={"target": target, "host": "gpu-7"},
    )


def test_a_bundle_has_a_line_for_each_place_and_what_was_to_be_said_in_order() -> None:
    held = replace(notice("t_a", "would restart, held by mode: mode is watch"), kind="held")
    said = say(bundle([notice("t_a", "is down"), notice("t_b", "is down"), held]))

    assert said.title == "FIRING critical · gpu-7 · 3 messages in one"
    assert "• t_a: is down; would restart, held by mode: mode is watch" in said.rows
    assert "• t_b: is down" in said.rows
    assert "Alerts: VllmDown ×2" in said.rows
    assert said.calls


def test_an_alert_is_as_it_was_last_said_to_be() -> None:
    both = bundle([notice("a", "is down"), notice("a", "resolved", "resolved")])

    assert [alert.status for alert in both.alerts] == ["resolved"]
    assert not say(both).calls


def test_nobody_is_woken_by_a_bundle_without_an_alert() -> None:
    held = [replace(notice(target, "would restart"), kind="held") for target in "ab"]
    over = [notice(target, "resolved", "resolved") for target in "ab"]

    assert bundle(over).kind == "resolved"
    assert not say(bundle(held)).calls
    assert bundle([*held, *over, notice("c", "is down")]).kind == "alert"


def test_a_message_without_a_sentence_names_its_alerts() -> None:
    assert bundle([notice("a", "")]).facts["• a"] == "VllmDown"


def test_a_place_may_be_called_anything() -> None:
    """Also what a fact with a line of its own is called."""
    assert "• host: is down" in say(bundle([notice("host", "is down")])).rows
