"""What an existing `alertmanager.yml` brings: keys for others, and defaults under `global`.

Both are settled in the tree, before validation, so that a receiver is checked with the values
it will really use and a fault names the place where a value stands.
"""

from sentinel.config.document import Entries, Items, Node
from sentinel.config.fault import Fault
from sentinel.config.section import Loc

Group = dict[str, str]  # a receiver's key → the global key it falls back to

_FOR_OTHERS = (
    "jira_", "mattermost_", "opsgenie_", "pagerduty_", "rocketchat_", "telegram_", "victorops_",
    "webex_",
)  # fmt: skip
_HTTP: Group = {"http_config": "http_config"}
_FALLBACKS: dict[str, tuple[Group, ...]] = {
    "webhook_configs": (_HTTP,),
    "wecom_configs": (_HTTP,),
    "alertmanager_configs": (_HTTP,),
    "slack_configs": (
        _HTTP,
        {
            "app_token": "slack_app_token",
            "app_token_file": "slack_app_token_file",
            "api_url": "slack_api_url",
            "api_url_file": "slack_api_url_file",
        },
        {"app_url": "slack_app_url"},
    ),
    "wechat_configs": (
        _HTTP,
        {"api_url": "wechat_api_url"},
        {"corp_id": "wechat_api_corp_id"},
        {"api_secret": "wechat_api_secret", "api_secret_file": "wechat_api_secret_file"},
    ),
    "email_configs": (
        {"from": "smtp_from"},
        {"smarthost": "smtp_smarthost"},
        {"hello": "smtp_hello"},
        {"auth_username": "smtp_auth_username"},
        {
            "auth_password": "smtp_auth_password",
            "auth_password_file": "smtp_auth_password_file",
        },
        {"auth_secret": "smtp_auth_secret", "auth_secret_file": "smtp_auth_secret_file"},
        {"auth_identity": "smtp_auth_identity"},
        {"require_tls": "smtp_require_tls"},
        {"force_implicit_tls": "smtp_force_implicit_tls"},
        {"tls_config": "smtp_tls_config"},
    ),
}


def settle(root: Entries) -> tuple[Entries, list[Fault]]:
    """The tree with fallbacks filled in, and a warning for each key nobody reads."""
    made = Entries(root.place, dict(root.keys), dict(root.values))
    warnings = _leave_out(made, (), ("tracing",))
    if isinstance(there := made.values.get("global"), Entries):
        everywhere = Entries(there.place, dict(there.keys), dict(there.values))
        warnings += _leave_out(everywhere, ("global",), _FOR_OTHERS)
        made.values["global"] = everywhere
        if isinstance(receivers := made.values.get("receivers"), Items):
            filled: list[Node] = [_receiver(node, everywhere) for node in receivers.items]
            made.values["receivers"] = Items(receivers.place, filled)
    return made, warnings


def _leave_out(entries: Entries, at: Loc, prefixes: tuple[str, ...]) -> list[Fault]:
    warnings = []
    for key in [key for key in entries.keys if key.startswith(prefixes)]:
        place = entries.keys.pop(key)
        del entries.values[key]
        says = "Alertmanager's key for what Sentinel has not; left out"
        warnings.append(place.fault((*at, key), says, "the key may go"))
    return warnings


def _receiver(node: Node, everywhere: Entries) -> Node:
    if not isinstance(node, Entries):
        return node
    made = Entries(node.place, dict(node.keys), dict(node.values))
    for kind, groups in _FALLBACKS.items():
        if isinstance(channels := node.values.get(kind), Items):
            filled = [_channel(channel, groups, everywhere) for channel in channels.items]
            made.values[kind] = Items(channels.place, filled)
    return made


def _channel(node: Node, groups: tuple[Group, ...], everywhere: Entries) -> Node:
    if not isinstance(node, Entries):
        return node
    made = Entries(node.place, dict(node.keys), dict(node.values))
    for group in groups:
        if not group.keys() & node.keys.keys():
            for key, fallback in group.items():
                if fallback in everywhere.keys:
                    made.put(key, everywhere.keys[fallback], everywhere.values[fallback])
    return made
