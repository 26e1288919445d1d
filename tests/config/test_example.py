"""The whole schema at once: the example that the contract gives, and what comes of it."""

from datetime import timedelta
from pathlib import Path

from sentinel.core.model.intent import Mode
from sentinel.core.model.labels import Matcher
from tests.config.told import load

EXAMPLE = """\
mode: act
state_dir: state
docker: {host: "unix:///var/run/docker.sock", reconcile_interval: 15s}
api: {socket: s.sock, socket_group: sentinel, listen: "127.0.0.1:9099", token_file: token}
global:
  scrape_interval: 1s
  scrape_timeout: 500ms
  evaluation_interval: 1s
  external_labels: {}
  language: en
  resolve_timeout: 5m
targets:
  discover:
    - {label: sentinel.supervise=true}
    - {image: "*vllm*"}
    - {command: "*vllm*serve*"}
    - {name: "t1-*"}
  exclude: [{label: sentinel.supervise=false}]
  overrides:
    - name: "t1-*"
      endpoint: http://127.0.0.1:8000
      api_key_file: /run/secrets/k
      mode: watch
      startup_deadline: 15m
      hung_after: 120s
      hung_after_in_first_minutes: {minutes: 10, hung_after: 300s}
      probe: {when: suspicion, interval: 60s, deadline: 20s}
pools:
  main:
    targets: ["t1-*"]
    min_healthy: 1
    switch: {haproxy: {socket: /run/haproxy/admin.sock, backend: vllm, servers: {t1-a: s1, t1-b: s2}}}

rules: {shipped: true, files: ["rules.d/*.yaml"], disable: [VllmStartSlow]}
metrics_source: embedded
store: {keep: rules}
remedies: []
accept_external: false
guards:
  cooldown: 15m
  budget: {per_target: {per_hour: 2, per_day: 4}, per_host: {at_once: 1, per_hour: 6}}
  verify_within: 15m
  many_failing: {at_least: 3, within: 2m}
  approval_expires: 30m
maintenance: [{time_interval: nights, targets: ["t1-*"]}]
route: {receiver: test, group_by: [incident], group_wait: 0s, group_interval: 5s, repeat_interval: 4h}
receivers: [{name: test, webhook_configs: [{url: "http://127.0.0.1:18080/hook", send_resolved: true}]}]
inhibit_rules: []
time_intervals: [{name: nights, time_intervals: [{times: [{start_time: "01:00", end_time: "05:00"}]}]}]
templates: []
schedule:
  restarts: [{targets: ["t1-*"], cron: "0 4 * * sun", timezone: Asia/Shanghai}]
  digest: {cron: "0 9 * * *", receiver: test}
  heartbeat: {url_file: /run/secrets/hb, every: 1m}
retention: {history: 90d, evidence: 7d, evidence_size: 1GiB}
share_logs: false
"""

EVERY_RECEIVER = """\
global:
  fallback_receiver: everything
  slack_socket_mode: {app_level_token_file: s, allowed_users: [U1], allowed_channels: [C1], base_url: "http://127.0.0.1:1/"}
receivers:
  - name: everything
    webhook_configs:
      - {url: "https://hook", timeout: 5s, max_alerts: 3, send_resolved: false, http_config: {proxy_url: "http://proxy:3128", tls_config: {insecure_skip_verify: true}}}
      - {url_file: hook}
    slack_configs:
      - {api_url: "http://localhost:1/x", mention: [U1]}
      - {app_token: xoxb-1, app_url: "http://[::1]:1/api/chat.postMessage", update_message: false, channel: C1}
      - {app_token_file: bot, channel: C1}
    wecom_configs:
      - {url: "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=k", message_type: text, mentioned_list: ["@all"], mentioned_mobile_list: ["1"]}
    wechat_configs:
      - {corp_id: c, api_secret: s, api_url: "https://qyapi.weixin.qq.com/cgi-bin/", agent_id: 1, to_user: a, to_party: b, to_tag: c, message_type: markdown}
    email_configs:
      - {to: a@b, from: c@d, smarthost: "mail:25", hello: me, auth_username: u, auth_password: p, require_tls: false, tls_config: {server_name: x}, headers: {Subject: s}}
    alertmanager_configs:
      - {url: "http://127.0.0.1:9093", send_interval: 30s, basic_auth: {username: u, password: p}}
      - {url: "http://127.0.0.1:9093", bearer_token_file: b}
"""

THE_REST = """\
pools:
  a: {targets: [a], switch: {nginx: {include: /etc/nginx/up.conf, upstream: vllm, servers: {a: "127.0.0.1:1"}, test: [nginx, -t], reload: [nginx, -s, reload]}}}
  b: {targets: [b], switch: {command: {argv: [/usr/local/bin/shift]}}}
metrics_source: {prometheus: {url: "http://127.0.0.1:9090", target_label: target}}
store: {keep: all, metrics_retention: 1h}
remedies:
  - match: ['alertname="VllmEngineHung"']
    mode: approve
    ladder:
      - restart: {drain: true, wait: 1m, deadline: 10m, mode: act}
      - page: {}
  - match: ['alertname="VllmPreemptionStorm"', 'severity!~"info|none"']
    ladder:
      - shift_traffic: {weight: 50%}
      - lower_max_num_seqs: {to: fit, floor: 8}
      - lower_max_num_seqs: {to: 16}
      - page:
"""


def test_every_key_of_the_example_is_accepted(tmp_path: Path) -> None:
    settings = load(tmp_path, EXAMPLE).settings

    assert settings.mode is Mode.ACT
    assert settings.state_dir == tmp_path / "state"
    assert settings.api.socket == tmp_path / "s.sock"
    assert settings.global_.scrape_timeout == timedelta(milliseconds=500)
    assert len(settings.targets.discover) == 4
    assert settings.override_for("t1-a").hung_after_in_first_minutes.minutes == 10
    assert settings.pools["main"].switch is not None
    assert settings.pools["main"].switch.servers == {"t1-a": "s1", "t1-b": "s2"}
    assert settings.rules.files == (f"{tmp_path}/rules.d/*.yaml",)
    assert settings.guards.budget.per_target.per_day == 4
    assert settings.route.receiver == "test"
    assert settings.intervals["nights"].time_intervals[0].times[0].end_time == 5 * 60
    assert settings.schedule.restarts[0].cron == "0 4 * * sun"
    assert settings.retention.evidence_size == 1 << 30


def test_every_key_of_every_receiver_is_accepted(tmp_path: Path) -> None:
    settings = load(tmp_path, EVERY_RECEIVER).settings

    everything = settings.receiver("everything")
    assert len(everything.channels) == 10
    assert [slack.is_bot for slack in everything.slack_configs] == [False, True, True]
    assert all(channel.send_resolved for channel in everything.channels[1:])


def test_every_step_switch_and_source_is_accepted(tmp_path: Path) -> None:
    settings = load(tmp_path, THE_REST).settings

    hang, storm = settings.remedies
    assert hang.match == (Matcher("alertname", "=", "VllmEngineHung"),)
    assert [step.kind for step in hang.ladder] == ["restart", "page"]
    assert hang.ladder[0].options.mode is Mode.ACT
    assert [step.kind for step in storm.ladder][-1] == "page"
    assert storm.ladder[0].shift_traffic is not None
    assert storm.ladder[0].shift_traffic.weight == 50
    assert settings.metrics_source.prometheus is not None
