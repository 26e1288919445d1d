"""An alertmanager.yml as a drop-in: what is taken, filled in, left out and refused."""

from datetime import timedelta
from pathlib import Path

from sentinel.config.load import Loaded, load_settings
from sentinel.config.secrets import read_secret
from sentinel.core.model.labels import Matcher
from tests.config.told import faults_of, write

ALERTMANAGER = """\
# The sort of file that Alertmanager's own examples are.
global:
  resolve_timeout: 10m
  smtp_smarthost: 'localhost:25'
  smtp_from: 'alertmanager@example.org'
  smtp_auth_username: 'alertmanager'
  smtp_auth_password: 'password'
  smtp_require_tls: false
  slack_api_url: 'https://hooks.slack.com/services/x/y/z'
  wechat_api_url: 'https://qyapi.weixin.qq.com/cgi-bin/'
  wechat_api_corp_id: wwid
  wechat_api_secret: wwsecret
  pagerduty_url: https://events.pagerduty.com/v2/enqueue
  opsgenie_api_url: https://api.opsgenie.com/
  http_config:
    follow_redirects: true
    tls_config: {insecure_skip_verify: yes}

templates:
  - '/etc/alertmanager/template/*.tmpl'

route:
  group_by: ['alertname', 'cluster', 'service']
  group_wait: 30s
  group_interval: 5m
  repeat_interval: 3h
  receiver: team-X-mails
  routes:
    - match_re:
        service: ^(foo1|foo2|baz)$
      receiver: team-X-mails
      routes:
        - match:
            severity: critical
          receiver: team-X-chat
          group_wait: 0
    - matchers:
        - service="files"
        - severity=~warning|critical
      receiver: team-X-chat
      continue: true
      group_by: ['...']
      active_time_intervals: [working-hours]
    - matchers: ['{service="database", owner!="team-Y"}']
      mute_time_intervals:
        - offhours

inhibit_rules:
  - source_matchers: [severity="critical"]
    target_matchers: [severity="warning"]
    equal: [alertname, cluster, service]
  - source_match: {severity: 'critical'}
    target_match_re: {severity: 'warning|info'}
    equal: ['alertname']

time_intervals:
  - name: working-hours
    time_intervals:
      - times:
          - start_time: 09:00
            end_time: 17:00
        weekdays: ['Monday:Friday']
        location: Asia/Shanghai

mute_time_intervals:
  - name: offhours
    time_intervals:
      - days_of_month: ['1:5', '-3:-1']
        months: ['1:3', 'may:august', 'december']
        years: ['2030:2032', '2035']
        weekdays: ['sunday']
        times: [{start_time: '17:00', end_time: '24:00'}]

receivers:
  - name: 'team-X-mails'
    email_configs:
      - to: 'team-X+alerts@example.org, team-Y+alerts@example.org'
        headers: {subject: '{{ .GroupLabels }}'}
        html: '{{ template "x" . }}'
  - name: 'team-X-chat'
    slack_configs:
      - channel: '#alerts'
        send_resolved: true
        title: '{{ .CommonLabels.alertname }}'
        text: "{{ range .Alerts }}x{{ end }}"
        color: danger
        fields: [{title: a, value: b, short: true}]
        actions: [{type: button, text: 'Runbook', url: 'https://x'}]
      - api_url_file: /etc/alertmanager/slack
        channel: '#other'
    wechat_configs:
      - agent_id: 1
        to_party: '2'
    webhook_configs:
      - url: http://127.0.0.1:5001/
        max_alerts: 10
  - name: 'null'
"""


def drop_in(folder: Path) -> Loaded:
    write(folder, ALERTMANAGER, "sentinel.d/alertmanager.yml")
    file = write(folder, "mode: watch\n")
    return load_settings(file, env={})


def test_the_routing_tree_is_taken_as_it_is(tmp_path: Path) -> None:
    route = drop_in(tmp_path).settings.route

    assert route.receiver == "team-X-mails"
    assert route.group_by == ("alertname", "cluster", "service")
    foo, files, database = route.routes
    assert foo.all_matchers == (Matcher("service", "=~", "^(foo1|foo2|baz)$"),)
    assert files.all_matchers == (
        Matcher("service", "=", "files"),
        Matcher("severity", "=~", "warning|critical"),
    )
    assert files.continue_
    assert files.group_by == ("...",)
    assert database.all_matchers == (
        Matcher("service", "=", "database"),
        Matcher("owner", "!=", "team-Y"),
    )


def test_routes_inherit_what_they_leave_out(tmp_path: Path) -> None:
    route = drop_in(tmp_path).settings.route

    critical = route.routes[0].routes[0]
    assert critical.group_wait == timedelta()
    assert critical.repeat_interval == timedelta(hours=3)
    assert route.routes[2].receiver == "team-X-mails"
    assert not route.routes[2].continue_


def test_receivers_take_what_they_leave_out_from_global(tmp_path: Path) -> None:
    settings = drop_in(tmp_path).settings

    [mail] = settings.receiver("team-X-mails").email_configs
    assert (mail.from_, mail.smarthost, mail.require_tls) == (
        "alertmanager@example.org", "localhost:25", False,
    )  # fmt: skip
    assert read_secret(mail, "auth_password", {}) == "password"
    chat = settings.receiver("team-X-chat")
    first, second = chat.slack_configs
    assert read_secret(first, "api_url", {}) == "https://hooks.slack.com/services/x/y/z"
    assert second.api_url is None
    [wechat] = chat.wechat_configs
    assert (wechat.corp_id, read_secret(wechat, "api_secret", {})) == ("wwid", "wwsecret")
    [webhook] = chat.webhook_configs
    assert webhook.http_config is not None
    assert webhook.http_config.tls_config is not None
    assert webhook.http_config.tls_config.insecure_skip_verify


def test_both_names_of_time_intervals_are_one_list(tmp_path: Path) -> None:
    intervals = drop_in(tmp_path).settings.intervals

    [work] = intervals["working-hours"].time_intervals
    assert (work.times[0].start_time, work.times[0].end_time) == (9 * 60, 17 * 60)
    assert work.weekdays == ((1, 5),)
    assert work.location == "Asia/Shanghai"
    [off] = intervals["offhours"].time_intervals
    assert off.days_of_month == ((1, 5), (-3, -1))
    assert off.months == ((1, 3), (5, 8), (12, 12))
    assert off.years == ((2030, 2032), (2035, 2035))


def test_keys_of_other_receivers_are_left_out_with_a_warning(tmp_path: Path) -> None:
    warnings = drop_in(tmp_path).warnings

    left_out = [w.key for w in warnings if "left out" in w.message]
    assert left_out == ["global.pagerduty_url", "global.opsgenie_api_url"]


def test_one_secret_for_many_receivers_is_one_warning(tmp_path: Path) -> None:
    keys = [w.key for w in drop_in(tmp_path).warnings if w.message.startswith("a secret")]

    assert keys.count("global.slack_api_url") == 1
    assert "receivers[1].slack_configs[0].api_url" not in keys


def test_a_receiver_of_another_kind_is_refused_with_what_there_is(tmp_path: Path) -> None:
    write(tmp_path, "receivers: [{name: a, opsgenie_configs: [{api_key: x}]}]", "sentinel.d/a.yml")

    [fault] = faults_of(tmp_path, "mode: act")

    assert fault.message == "Sentinel has no such receiver"
    assert "alertmanager_configs" in fault.allowed


def test_a_receiver_that_finds_nothing_in_global_is_refused(tmp_path: Path) -> None:
    faults = faults_of(
        tmp_path, "receivers: [{name: a, email_configs: [{to: x}], wechat_configs: [{}]}]"
    )

    assert [fault.key for fault in faults] == [
        "receivers[0].email_configs[0].from",
        "receivers[0].email_configs[0].smarthost",
        "receivers[0].wechat_configs[0].corp_id",
    ]


CLUSTERS = """
global: {resolve_timeout: 5m}
inhibit_rules:
  - equal: [namespace, alertname]
    source_matchers: [severity = critical]
    target_matchers: ['severity =~ warning|info']
  - equal: [namespace]
    source_matchers: [alertname = InfoInhibitor]
    target_matchers: [severity = info]
receivers:
  - name: Default
  - name: Watchdog
  - name: Critical
  - name: "null"
route:
  group_by: [namespace]
  group_interval: 5m
  group_wait: 30s
  receiver: Default
  repeat_interval: 12h
  routes:
    - matchers: [alertname = Watchdog]
      receiver: Watchdog
    - matchers: [alertname = InfoInhibitor]
      receiver: "null"
    - matchers: [severity = critical]
      receiver: Critical
"""


def test_what_a_cluster_brings_is_taken_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, CLUSTERS, "sentinel.d/alertmanager.yaml")
    settings = load_settings(write(tmp_path, "mode: watch"), env={}).settings

    assert [route.receiver for route in settings.route.routes] == ["Watchdog", "null", "Critical"]
    first, _ = settings.inhibit_rules
    assert first.target == (Matcher("severity", "=~", "warning|info"),)


def test_every_page_that_would_be_lost_is_named(tmp_path: Path) -> None:
    pagers = """
        route: {receiver: a, routes: [{match: {team: b}, receiver: b}]}
        receivers:
          - name: a
            pagerduty_configs: [{routing_key: x}]
            slack_configs: [{api_url: "https://hooks.slack.com/x", channel: "#a"}]
          - name: b
            opsgenie_configs: [{api_key: x}]
            telegram_configs: [{bot_token: x, chat_id: 1}]
    """

    faults = faults_of(tmp_path, pagers)

    assert [(fault.line, fault.key) for fault in faults] == [
        (5, "receivers[0].pagerduty_configs"),
        (8, "receivers[1].opsgenie_configs"),
        (9, "receivers[1].telegram_configs"),
    ]
    assert all("leave it in an Alertmanager" in fault.allowed for fault in faults)
