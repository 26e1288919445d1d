"""Every fault names its key, its place and a way out; all are told at once."""

import re
from pathlib import Path

import pytest

from tests.config.told import faults_of, told

LINE = re.compile(r".+:\d+:\d+: .+: .+; allowed: .+")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "mode: act\nmood: act\n", "2:1 mood: unknown key, did you mean mode?", id="misspelt"
        ),
        pytest.param(
            "guards:\n  budget:\n    per_target: {per_huor: 2}\n",
            "3:18 guards.budget.per_target.per_huor: unknown key, did you mean per_hour?",
            id="misspelt, deep down",
        ),
        pytest.param(
            "cooldown: 1m",
            "1:1 cooldown: unknown key, did you mean guards.cooldown?",
            id="misplaced",
        ),
        pytest.param("url: x", "1:1 url: unknown key", id="known in many places"),
        pytest.param(
            "inhibit_rules: [{source_match: [a]}]",
            "1:18 inhibit_rules[0].source_match: is not a mapping",
            id="list for labels",
        ),
        pytest.param("mode: walk", "1:7 mode: 'walk' is not known", id="not one of the words"),
        pytest.param("docker: []", "1:1 docker: is not a mapping", id="list for mapping"),
        pytest.param("docker: x", "1:9 docker: is not a mapping", id="text for mapping"),
        pytest.param("receivers: {}", "1:1 receivers: is not a list", id="mapping for list"),
        pytest.param("remedies: x", "1:11 remedies: is not a list", id="text for list"),
        pytest.param("share_logs: maybe", "1:13 share_logs: 'maybe' is not a flag", id="flag"),
        pytest.param(
            "guards: {cooldown: 15}",
            "1:20 guards.cooldown: '15' is not a duration",
            id="duration without unit",
        ),
        pytest.param(
            "guards: {cooldown: 0}", "1:20 guards.cooldown: must be more than 0", id="no time"
        ),
        pytest.param(
            "guards: {many_failing: {at_least: 0}}",
            "1:35 guards.many_failing.at_least: 0 is too low",
            id="count too low",
        ),
        pytest.param(
            "guards: {many_failing: {at_least: 1.5}}",
            "1:35 guards.many_failing.at_least: '1.5' is not a whole number",
            id="no whole number",
        ),
        pytest.param(
            "retention: {evidence_size: big}",
            "1:28 retention.evidence_size: 'big' is not a size",
            id="size",
        ),
        pytest.param(
            "global: {scrape_interval: 1s, scrape_timeout: 2s}",
            "1:47 global.scrape_timeout: is longer than scrape_interval (1s)",
            id="timeout longer than interval",
        ),
        pytest.param(
            "global: {scrape_timeout: 6s}",
            "1:26 global.scrape_timeout: is longer than scrape_interval (5s)",
            id="timeout longer than the default interval",
        ),
        pytest.param(
            "docker: {host: ssh://x}",
            "1:16 docker.host: 'ssh://x' is no Docker address",
            id="docker over ssh",
        ),
        pytest.param(
            "api: {listen: 0.0.0.0:9099}",
            "1:15 api.listen: an address that is not loopback needs a token_file",
            id="open to all without a token",
        ),
        pytest.param(
            "api: {listen: 9099}", "1:15 api.listen: '9099' is no host and port", id="port alone"
        ),
        pytest.param(
            "targets: {discover: [{}]}", "1:22 targets.discover[0]: is empty", id="selects nothing"
        ),
        pytest.param(
            "targets: {overrides: [{mode: act}]}",
            "1:23 targets.overrides[0].name: is missing",
            id="missing",
        ),
        pytest.param(
            "receivers: [{name: a}, {name: a}]",
            "1:31 receivers[1].name: a second receiver 'a', the first in line 1",
            id="two receivers of one name",
        ),
        pytest.param(
            "receivers: [{name: a, webhook_configs: [{}]}]",
            "1:41 receivers[0].webhook_configs[0]: neither url nor url_file is given",
            id="secret missing",
        ),
        pytest.param(
            "receivers: [{name: a, webhook_configs: [{url: 'https://h', url_file: f}]}]",
            "1:70 receivers[0].webhook_configs[0].url_file: is given twice, as url and as url_file",
            id="secret given twice",
        ),
        pytest.param(
            "receivers: [{name: a, webhook_configs: [{url: 'http://10.0.0.1/h'}]}]",
            "1:47 receivers[0].webhook_configs[0].url: plain http to '10.0.0.1'",
            id="plain http to another host",
        ),
        pytest.param(
            "receivers: [{name: a, webhook_configs: [{url: 'ftp://h'}]}]",
            "1:47 receivers[0].webhook_configs[0].url: not an http address",
            id="not http",
        ),
        pytest.param(
            "receivers: [{name: a, pagerduty_configs: []}]",
            "1:23 receivers[0].pagerduty_configs: Sentinel has no such receiver",
            id="a kind that Sentinel has not",
        ),
        pytest.param(
            "receivers: [{name: a, slack_configs: [{channel: c}]}]",
            "1:39 receivers[0].slack_configs[0]: neither a webhook nor a bot",
            id="slack without a way",
        ),
        pytest.param(
            "receivers: [{name: a, slack_configs: [{app_token_file: t}]}]",
            "1:39 receivers[0].slack_configs[0]: a bot needs a channel",
            id="slack bot without a channel",
        ),
        pytest.param(
            "route: {receiver: nobody}", "1:19 route.receiver: no receiver 'nobody'", id="unknown"
        ),
        pytest.param(
            "route: {routes: [{matchers: [a=b], routes: [{receiver: nobody}]}]}",
            "1:56 route.routes[0].routes[0].receiver: no receiver 'nobody'",
            id="unknown receiver, deep down",
        ),
        pytest.param(
            "global: {fallback_receiver: nobody}",
            "1:29 global.fallback_receiver: no receiver 'nobody'",
            id="unknown fallback",
        ),
        pytest.param(
            "schedule: {digest: {cron: 0 9 * * *, receiver: nobody}}",
            "1:48 schedule.digest.receiver: no receiver 'nobody'",
            id="unknown receiver of the digest",
        ),
        pytest.param(
            "route: {routes: [{mute_time_intervals: [nights]}]}",
            "1:41 route.routes[0].mute_time_intervals[0]: no time interval 'nights'",
            id="unknown time interval",
        ),
        pytest.param(
            "maintenance: [{time_interval: nights}]",
            "1:31 maintenance[0].time_interval: no time interval 'nights'",
            id="unknown time interval of maintenance",
        ),
        pytest.param(
            "route: {matchers: [a=b]}",
            "1:9 route.matchers: the root route takes every alert",
            id="root route with matchers",
        ),
        pytest.param(
            "route: {group_by: [a, '...']}",
            "1:9 route.group_by: '...' with other labels",
            id="all labels and one",
        ),
        pytest.param(
            "route: {group_by: [a, a]}", "1:23 route.group_by[1]: the same label twice", id="twice"
        ),
        pytest.param(
            "route: {group_interval: 0}",
            "1:25 route.group_interval: must be more than 0",
            id="no group interval",
        ),
        pytest.param(
            "inhibit_rules: [{source_matchers: [a=b, '=x']}]",
            "1:41 inhibit_rules[0].source_matchers[1]: '=x' is not a matcher",
            id="no matcher",
        ),
        pytest.param(
            "inhibit_rules: [{source_match_re: {a: '('}}]",
            "1:39 inhibit_rules[0].source_match_re.a: bad regular expression '(': missing closing )",
            id="no pattern",
        ),
        pytest.param(
            "remedies: [{match: [a=b], ladder: [{restrat: {}}]}]",
            "1:37 remedies[0].ladder[0].restrat: unknown key, did you mean restart?",
            id="unknown step",
        ),
        pytest.param(
            "remedies: [{match: [a=b], ladder: [{restart: {}, page: {}}]}]",
            "1:36 remedies[0].ladder[0]: is not exactly one step",
            id="two steps in one",
        ),
        pytest.param(
            "remedies: [{match: [], ladder: [page]}]", "1:13 remedies[0].match: is empty", id="all"
        ),
        pytest.param(
            "remedies: [{match: [a=b], ladder: [{lower_max_num_seqs: {to: 0}}]}]",
            "1:62 remedies[0].ladder[0].lower_max_num_seqs.to: '0' is no limit",
            id="limit of nothing",
        ),
        pytest.param(
            "remedies: [{match: [a=b], ladder: [{shift_traffic: {weight: 101%}}]}]",
            "1:61 remedies[0].ladder[0].shift_traffic.weight: '101%' is not a percentage",
            id="more than all",
        ),
        pytest.param(
            "pools: {p: {targets: [a], switch: {}}}",
            "1:27 pools.p.switch: is not exactly one switch",
            id="no switch",
        ),
        pytest.param(
            "pools: {p: {targets: ['a-*'], switch: {nginx: {include: f, upstream: u, servers: {b: '1:1'}}}}}",
            "1:86 pools.p.switch.nginx.servers.b: is no target of this pool",
            id="server of another pool",
        ),
        pytest.param(
            "pools: {p: {targets: [a]}, q: {targets: [a]}}",
            "1:42 pools.q.targets[0]: 'a' is also in pool 'p'",
            id="target in two pools",
        ),
        pytest.param(
            "schedule: {restarts: [{targets: [a], cron: 0 4 * * 1-5}]}",
            "1:44 schedule.restarts[0].cron: weekday '1-5' is a number, and schedulers disagree "
            "whether 1 is Monday; use names",
            id="numeric weekday",
        ),
        pytest.param(
            "metrics_source: prometheus", "1:17 metrics_source: 'prometheus' is no source", id="src"
        ),
        pytest.param(
            "global: {external_labels: {a-b: c}}",
            "1:28 global.external_labels.a-b: 'a-b' is no label name",
            id="label name",
        ),
    ],
)
def test_a_fault_names_its_place_its_key_and_what_is_wrong(
    tmp_path: Path, text: str, expected: str
) -> None:
    assert told(tmp_path, text) == [expected]


def test_all_faults_are_told_at_once_also_within_one_section(tmp_path: Path) -> None:
    text = """\
        mood: act
        global: {scrape_interval: 1s, scrape_timeout: 2s, resolve_timeout: 5}
        receivers:
          - name: a
            webhook_configs: [{urll: "https://h"}]
        route: {receiver: b}
        share_logs: maybe
        """
    assert [line.split(":")[1].split()[1] for line in told(tmp_path, text)] == [
        "mood",
        "global.scrape_timeout",
        "global.resolve_timeout",
        "receivers[0].webhook_configs[0].urll",
        "route.receiver",
        "share_logs",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'route: {receiver: "a\\nb: c"}',
        '"a\\nb": 1',
        'receivers: [{name: "x\\ny"}]\nroute: {receiver: z}',
        f"{'k' * 5000}: 1",
        "a\u202eb: 1",
    ],
)
def test_a_fault_is_one_line_whatever_was_written(tmp_path: Path, text: str) -> None:
    [fault] = faults_of(tmp_path, text)

    assert LINE.fullmatch(str(fault))
    assert len(str(fault)) < 4000


def test_a_fault_repeats_no_secret(tmp_path: Path) -> None:
    text = """\
        receivers:
          - name: a
            webhook_configs: [{url: "http://10.0.0.1/hunter2"}, {url: "hunter2"}, {url: [hunter2]}]
            slack_configs: [{app_token: {x: hunter2}, channel: c}]
            email_configs: [{to: a, from: b, smarthost: "c:1", auth_password: hunter2, auth_password_file: f}]
        """
    faults = faults_of(tmp_path, text)

    assert len(faults) == 5
    assert "hunter2" not in "".join(map(str, faults))
