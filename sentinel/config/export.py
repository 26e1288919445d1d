"""A configuration told to others: whole, or as an alertmanager.yml; never with a secret.

The alertmanager.yml keeps to what Alertmanager 0.25 knows, since a newer one knows it too, and
says in a comment what of a receiver stays behind.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import yaml

from sentinel.config.channel import Channel
from sentinel.config.chat import SlackConfig
from sentinel.config.matchers import show_matcher
from sentinel.config.receivers import Receiver
from sentinel.config.routing import InhibitRule, Route, root_route
from sentinel.config.section import Section, is_given, sections
from sentinel.config.settings import Settings
from sentinel.core.alerting.duration import show_duration

SECRET = "<secret>"  # noqa: S105 - it is what stands in place of one
_STARS = "**********"  # how pydantic writes a secret
_SECRET_ADDRESS = f"http://{SECRET}"  # where Alertmanager 0.25 takes an address only
_ADDRESSES = ("url", "proxy_url")
_YES = ("true", "yes", "on")
_INHERITED = ("receiver", "group_by", "group_wait", "group_interval", "repeat_interval")

Json = dict[str, Any]

_TLS = ("ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify", "min_version")
_HTTP: Mapping[str, Any] = {
    "basic_auth": dict.fromkeys(("username", "password", "password_file")),
    "authorization": dict.fromkeys(("type", "credentials", "credentials_file")),
    "oauth2": {
        **dict.fromkeys(("client_id", "client_secret", "client_secret_file", "scopes")),
        **dict.fromkeys(("token_url", "endpoint_params", "proxy_url")),
        "tls_config": dict.fromkeys(_TLS),
    },
    **dict.fromkeys(("bearer_token", "bearer_token_file", "proxy_url")),
    "tls_config": dict.fromkeys(_TLS),
    **dict.fromkeys(("follow_redirects", "enable_http2")),
}
_SENT = ("send_resolved",)
_KNOWN: Mapping[str, Mapping[str, Any]] = {
    "webhook_configs": {"http_config": _HTTP, **dict.fromkeys((*_SENT, "url", "max_alerts"))},
    "slack_configs": {
        "http_config": _HTTP,
        **dict.fromkeys((*_SENT, "api_url", "api_url_file", "channel", "username")),
        **dict.fromkeys(("icon_emoji", "icon_url", "link_names", "title", "title_link")),
        **dict.fromkeys(("pretext", "text", "fallback", "footer", "color", "callback_id")),
        **dict.fromkeys(("image_url", "thumb_url", "short_fields", "mrkdwn_in")),
        **dict.fromkeys(("fields", "actions")),
    },
    "email_configs": {
        **dict.fromkeys((*_SENT, "to", "from", "smarthost", "hello", "auth_username")),
        **dict.fromkeys(("auth_password", "auth_password_file", "auth_secret")),
        **dict.fromkeys(("auth_identity", "require_tls", "headers", "html", "text")),
        "tls_config": dict.fromkeys(_TLS),
    },
    "wechat_configs": {
        "http_config": _HTTP,
        **dict.fromkeys((*_SENT, "api_secret", "corp_id", "api_url", "agent_id")),
        **dict.fromkeys(("to_user", "to_party", "to_tag", "message_type", "message")),
    },
}  # a key's value: the keys below it, or None


def effective(settings: Settings) -> Json:
    """Every key with its value, as a file would have it; secrets as `<secret>`."""
    shown: Json = _without_secrets(settings.model_dump(mode="json", by_alias=True))
    return shown


def as_alertmanager(settings: Settings) -> str:
    """An alertmanager.yml of what Alertmanager can do of it."""
    root = root_route(settings.route, settings.receivers)
    route = root.model_copy(update={"routes": settings.route.routes})
    parts = [
        _yaml({"global": {"resolve_timeout": show_duration(settings.global_.resolve_timeout)}}),
        _yaml({"route": _route(route)}),
        "receivers:\n",
        *(text for receiver in _receivers(settings, route) for text in _receiver(receiver)),
    ]
    if settings.inhibit_rules:
        parts.append(_yaml({"inhibit_rules": [_inhibition(r) for r in settings.inhibit_rules]}))
    if settings.templates:
        parts.append(_yaml({"templates": [str(pattern) for pattern in settings.templates]}))
    if intervals := settings.intervals.values():
        shown = [i.model_dump(mode="json", exclude_defaults=True) for i in intervals]
        parts.append(_yaml({"time_intervals": [{"time_intervals": [], **i} for i in shown]}))
    return "".join(parts)


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)


def _route(route: Route, above: Mapping[str, Any] = MappingProxyType({})) -> Json:
    """`above`: what it has from its parent, and need not say itself."""
    shown: Json = route.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        include={*_INHERITED, "continue_", "mute_time_intervals", "active_time_intervals"},
    )
    shown["matchers"] = [show_matcher(matcher) for matcher in route.all_matchers]
    own = {key: shown[key] for key in _INHERITED if shown.get(key) != above.get(key)}
    more = {key: value for key, value in shown.items() if key not in _INHERITED and value}
    below = [_route(child, {**above, **own}) for child in route.routes]
    return {**own, **more, **({"routes": below} if below else {})}


def _inhibition(rule: InhibitRule) -> Json:
    return {
        "source_matchers": [show_matcher(matcher) for matcher in rule.source],
        "target_matchers": [show_matcher(matcher) for matcher in rule.target],
        "equal": list(rule.equal),
    }


def _receivers(settings: Settings, root: Route) -> list[Receiver]:
    """Those of the file, and `log` if a route names it."""
    names = [receiver.name for receiver in settings.receivers]
    used = dict.fromkeys(route.receiver for _, route in sections(root) if isinstance(route, Route))
    more = [Receiver(name=name) for name in used if name and name not in names]
    return [*settings.receivers, *more]


def _receiver(receiver: Receiver) -> Iterator[str]:
    shown: Json = {"name": receiver.name}
    for kind in _kinds(receiver):
        for index, channel in enumerate(getattr(receiver, kind)):
            if kind not in _KNOWN or (isinstance(channel, SlackConfig) and channel.is_bot):
                what = "a Slack bot" if kind in _KNOWN else kind
                yield f"# Left out of the next receiver: {what}, which Alertmanager has not.\n"
                continue
            kept, left_out = _pruned(_channel(channel, _KNOWN[kind]), _KNOWN[kind])
            if left_out:
                where = f"{kind}[{index}]"
                yield f"# Left out of the next receiver, {where}: {', '.join(left_out)}.\n"
            shown.setdefault(kind, []).append(kept)
    yield _yaml([shown])


def _kinds(receiver: Receiver) -> list[str]:
    return [key for key in type(receiver).model_fields if key != "name" and getattr(receiver, key)]


def _channel(channel: Channel, known: Mapping[str, Any]) -> Json:
    shown: Json = _without_secrets(
        channel.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    )
    for at, section in sections(channel):
        _settle_secrets(section, _at(shown, at), _at(known, at))
    for field in shown.get("fields", ()):
        if "short" in field:  # kept as it was written, since Sentinel has no use for it
            field["short"] = str(field["short"]).lower() in _YES
    return shown


def _settle_secrets(section: Section, shown: Json | None, known: Mapping[str, Any] | None) -> None:
    """A secret is shown where Alertmanager looks for it, in a form that it takes."""
    if shown is None or known is None:
        return
    for key in section.SECRETS:
        if is_given(getattr(section, f"{key}_file")) and f"{key}_file" not in known:
            shown[key] = SECRET
    for key in _ADDRESSES:
        if shown.get(key) == SECRET:
            shown[key] = _SECRET_ADDRESS


def _at(value: Any, way: tuple[str | int, ...]) -> Any:
    for key in way:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _pruned(shown: Json, known: Mapping[str, Any], at: str = "") -> tuple[Json, list[str]]:
    """What is known of `shown`, and the rest by name."""
    kept: Json = {}
    left_out: list[str] = []
    for key, value in shown.items():
        if key not in known:
            left_out.append(f"{at}{key}")
        elif isinstance(value, dict) and isinstance(known[key], Mapping):
            kept[key], more = _pruned(value, known[key], f"{at}{key}.")
            left_out += more
        else:
            kept[key] = value
    return kept, left_out


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_secrets(inner) for inner in value]
    return SECRET if value == _STARS else value
