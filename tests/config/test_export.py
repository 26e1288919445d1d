"""A configuration told to others: without its secrets, and so that Alertmanager takes it."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sentinel.config.export import as_alertmanager, effective
from sentinel.config.load import load_settings
from tests.config.test_alertmanager import ALERTMANAGER
from tests.config.told import load, write

EVERYTHING = r"""
global: {resolve_timeout: 7m}
receivers:
  - name: oncall
    webhook_configs:
      - url: "https://hook.example.org/s3cret?x=1"
        timeout: 5s
        http_config:
          basic_auth: {username: u, password: s3cret}
          proxy_url: "http://u:s3cret@p.example.org:3128"
          tls_config: {max_version: TLS13, insecure_skip_verify: true}
          http_headers: {X-A: {values: [a], secrets: [s3cret]}}
      - {url_file: hook, send_resolved: false, max_alerts: 5, http_config: {authorization: {credentials: s3cret}}}
    slack_configs:
      - {api_url: "https://hooks.slack.com/s3cret", channel: "C1", mention: [U1]}
      - api_url_file: /etc/sentinel/slack
        http_config:
          oauth2:
            client_id: a
            client_secret: s3cret
            token_url: "https://a.example.org"
            proxy_url: "http://s3cret@p.example.org"
            tls_config: {insecure_skip_verify: true}
      - {app_token: "xoxb-s3cret", channel: C2}
    wecom_configs: [{url: "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=s3cret"}]
    wechat_configs:
      - {api_secret: s3cret, corp_id: c}
      - {api_secret_file: /etc/sentinel/wechat, corp_id: c, api_url: "https://q.example.org/"}
    email_configs:
      - to: a@example.org
        from: b@example.org
        smarthost: "smtp.example.org:587"
        auth_username: u
        auth_password: s3cret
        headers: {Subject: x}
        force_implicit_tls: true
        threading: {enabled: true}
      - {to: a@example.org, from: b@example.org, smarthost: "s.example.org:25", auth_secret_file: /etc/s}
    alertmanager_configs: [{url: "https://am.example.org", bearer_token: s3cret}]
  - name: empty
  - name: |-
      two
      lines: [
    wecom_configs: [{url_file: /etc/sentinel/wecom}]
route:
  receiver: oncall
  routes:
    - {matchers: ['severity="info"'], receiver: log, mute_time_intervals: [nights], group_by: ["..."]}
    - match: {a: b}
      match_re: {c: "d|e"}
      continue: true
      active_time_intervals: [old]
      group_wait: 30s
      routes: [{matchers: ['x=~"a\.b"', 'y!="q\"uo\n"', 'z!~中'], receiver: empty}]
inhibit_rules:
  - source_match: {severity: critical}
    target_match_re: {severity: "warning|info"}
    equal: [target]
time_intervals:
  - name: nights
    time_intervals:
      - times: [{start_time: "22:00", end_time: "24:00"}, {start_time: "00:00", end_time: "06:30"}]
        weekdays: ["monday:friday", sunday]
        days_of_month: ["1:5", "-3:-1"]
        months: ["january:march", "12"]
        years: ["2030:2031", "2040"]
        location: Asia/Shanghai
mute_time_intervals: [{name: old, time_intervals: [{location: Local}]}]
"""

CASES = {
    "nothing": "mode: watch\n",
    "everything": EVERYTHING,
    "an alertmanager.yml": ALERTMANAGER,
    "one receiver": "receivers: [{name: a, wecom_configs: [{url_file: x}]}]\n",
}


def exported(folder: Path, text: str) -> tuple[str, Any]:
    told = as_alertmanager(load(folder, text).settings)
    return told, yaml.safe_load(told)


@pytest.mark.skipif(shutil.which("amtool") is None, reason="needs amtool")
@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_amtool_takes_it(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, exported(tmp_path, text)[0], "alertmanager.yml")

    done = subprocess.run(
        ["amtool", "check-config", str(file)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_no_secret_is_told(tmp_path: Path, text: str) -> None:
    settings = load(tmp_path, text).settings

    for told in (as_alertmanager(settings), yaml.safe_dump(effective(settings))):
        assert not {word for word in ("s3cret", "mysecret", "'password'", "/x/y/z") if word in told}
        assert "<secret>" in told or text not in (EVERYTHING, ALERTMANAGER)


def test_the_routes_are_the_same_when_read_again(tmp_path: Path) -> None:
    before = load(tmp_path, EVERYTHING).settings
    shown = yaml.safe_load(as_alertmanager(before))

    again = {key: shown[key] for key in ("route", "inhibit_rules", "time_intervals")}
    names = [{"name": receiver["name"]} for receiver in shown["receivers"]]
    file = write(tmp_path, yaml.safe_dump({**again, "receivers": names}), "again.yaml")
    after = load_settings(file, env={}).settings

    def essence(settings: Any) -> Any:
        def of(route: Any) -> Any:
            return (
                route.receiver, route.group_by, route.group_wait, route.group_interval,
                route.repeat_interval, route.all_matchers, route.continue_,
                route.mute_time_intervals, route.active_time_intervals,
                [of(child) for child in route.routes],
            )  # fmt: skip

        rules = [(rule.source, rule.target, rule.equal) for rule in settings.inhibit_rules]
        return of(settings.route), rules, settings.intervals

    assert essence(after) == essence(before)


def test_what_alertmanager_has_not_is_said_and_left_out(tmp_path: Path) -> None:
    told, shown = exported(tmp_path, EVERYTHING)

    comments = [line for line in told.splitlines() if line.startswith("#")]
    for word in ("wecom_configs", "a Slack bot", "alertmanager_configs", "mention", "timeout",
                 "http_config.http_headers", "force_implicit_tls"):  # fmt: skip
        assert any(word in comment for comment in comments), word
    oncall = shown["receivers"][0]
    assert set(oncall) == {"name", "webhook_configs", "slack_configs", "wechat_configs", "email_configs"}  # fmt: skip
    assert [len(oncall[kind]) for kind in oncall if kind != "name"] == [2, 2, 2, 2]
    assert [receiver["name"] for receiver in shown["receivers"]] == [
        "oncall", "empty", "two\nlines: [", "log",
    ]  # fmt: skip


def test_a_secret_from_a_file_stays_a_file_where_alertmanager_reads_one(tmp_path: Path) -> None:
    receiver = exported(tmp_path, EVERYTHING)[1]["receivers"][0]

    assert receiver["slack_configs"][1]["api_url_file"] == "/etc/sentinel/slack"
    assert receiver["webhook_configs"][1]["url"] == "http://<secret>"
    assert receiver["wechat_configs"][1]["api_secret"] == "<secret>"
    assert receiver["email_configs"][1]["auth_secret"] == "<secret>"


def test_groups_by_incident_stay_what_they_are(tmp_path: Path) -> None:
    route = exported(tmp_path, CASES["one receiver"])[1]["route"]

    assert route == {
        "receiver": "a",
        "group_by": ["incident"],
        "group_wait": "0s",
        "group_interval": "5s",
        "repeat_interval": "4h",
    }
