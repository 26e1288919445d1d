"""What holds for one target, how far Sentinel may go, and what is not done yet."""

from datetime import timedelta
from pathlib import Path

import pytest

from sentinel.config.not_yet import not_yet
from sentinel.config.settings import Settings
from sentinel.core.model.intent import Mode
from tests.config.told import load

OVERRIDES = """\
targets:
  overrides:
    - {name: "t1-a", mode: watch, hung_after: 10s}
    - {name: "t1-*", hung_after: 20s, startup_deadline: 1h, probe: {when: always}}
    - {name: "*", startup_deadline: 2h, endpoint: "http://10.0.0.1:8000", api_key_file: key}
"""


def test_the_first_override_holds_key_by_key(tmp_path: Path) -> None:
    settings = load(tmp_path, OVERRIDES).settings

    first, second, other = (settings.override_for(name) for name in ("t1-a", "t1-b", "x"))

    assert first.hung_after == timedelta(seconds=10)
    assert first.startup_deadline == timedelta(hours=1)
    assert first.endpoint == "http://10.0.0.1:8000"
    assert first.probe.when == "always"
    assert second.hung_after == timedelta(seconds=20)
    assert second.mode is None
    assert other.hung_after == timedelta(seconds=120)
    assert other.startup_deadline == timedelta(hours=2)
    assert other.api_key_file == tmp_path / "key"


def test_a_target_without_an_override_has_the_defaults() -> None:
    plain = Settings().override_for("t1-a")

    assert plain.endpoint is None
    assert plain.startup_deadline == timedelta(minutes=15)
    assert plain.hung_after == timedelta(seconds=120)
    assert plain.hung_after_in_first_minutes.minutes == 10
    assert plain.hung_after_in_first_minutes.hung_after == timedelta(seconds=300)
    assert plain.probe.when == "suspicion"
    assert plain.probe.interval == timedelta(seconds=60)
    assert plain.probe.deadline == timedelta(seconds=20)


@pytest.mark.parametrize(
    ("everywhere", "target", "remedy", "holds"),
    [
        ("act", "act", "act", "act"),
        ("act", None, None, "act"),
        ("act", "approve", None, "approve"),
        ("act", None, "watch", "watch"),
        ("approve", "act", "act", "approve"),
        ("watch", "act", "act", "watch"),
        (None, "act", "act", "watch"),
    ],
)
def test_the_strictest_mode_holds(
    tmp_path: Path, everywhere: str | None, target: str | None, remedy: str | None, holds: str
) -> None:
    text = f"mode: {everywhere or '~'}\n"
    text += f"targets: {{overrides: [{{name: t, mode: {target}}}]}}\n" if target else ""
    settings = load(tmp_path, text).settings

    assert settings.mode_for("t", Mode(remedy) if remedy else None) is Mode(holds)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param("mode: act\nguards: {cooldown: 1m}", [], id="what is done"),
        pytest.param("inhibit_rules: []\nschedule: {}\nmetrics_source: embedded", [], id="empty"),
        pytest.param(
            "pools: {p: {targets: [a], switch: {command: {argv: [x]}}}}", ["pools.p.switch"], id="switch"
        ),
        pytest.param("pools: {p: {targets: [a]}}", [], id="a pool without a switch"),
        pytest.param(
            "metrics_source: {prometheus: {url: 'http://p'}}", [], id="prometheus"
        ),
        pytest.param("schedule: {digest: {cron: 0 9 * * *}}", ["schedule.digest"], id="digest"),
        pytest.param(
            "receivers: [{name: a, email_configs: [{to: a, from: b, smarthost: 'c:1'}]}]",
            ["receivers[0].email_configs"],
            id="e-mail",
        ),
        pytest.param(
            "receivers: [{name: a, slack_configs: [{api_url: 'https://s'}, {app_token: x, channel: c}]}]",
            ["receivers[0].slack_configs[1].app_token"],
            id="slack bot",
        ),
        pytest.param(
            "time_intervals: [{name: n}]\nroute: {routes: [{mute_time_intervals: [n], routes: [{active_time_intervals: [n]}]}]}",
            [],
            id="mute times",
        ),
        pytest.param("route: {routes: [{matchers: [a=b]}]}", [], id="routes by label"),
        pytest.param(
            "receivers: [{name: a, slack_configs: [{api_url: 'https://s', title: x, channel: y}]}]",
            ["receivers[0].slack_configs[0].title"],
            id="text of Alertmanager's",
        ),
        pytest.param("accept_external: true", [], id="external alerts"),
    ],
)  # fmt: skip
def test_what_is_set_in_vain_is_named(tmp_path: Path, text: str, keys: list[str]) -> None:
    vain = not_yet(load(tmp_path, text).settings)

    assert sorted(key for key, _ in vain) == sorted(keys)
    assert all(sentence for _, sentence in vain)


def test_one_receiver_implies_the_route(tmp_path: Path) -> None:
    settings = load(tmp_path, "receivers: [{name: oncall}]\nroute: {group_wait: 1s}").settings

    assert settings.route.receiver == "oncall"
    assert settings.route.group_wait == timedelta(seconds=1)
    assert settings.route.repeat_interval == timedelta(hours=4)


def test_settings_made_without_files_have_the_route_too() -> None:
    settings = Settings.model_validate({"receivers": [{"name": "oncall"}]})

    assert settings.route.receiver == "oncall"
    assert settings.route.group_by == ("incident",)


def test_the_log_is_always_a_receiver() -> None:
    assert Settings().receiver("log").channels == ()
