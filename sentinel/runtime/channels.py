"""From receivers in the settings to channels that can be sent to."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import aiohttp

from sentinel.adapters.audit import AuditNotifier
from sentinel.adapters.log_receiver import LogNotifier
from sentinel.adapters.slack import SlackNotifier
from sentinel.adapters.webhook import WebhookNotifier
from sentinel.adapters.wecom import Mentions, WeComNotifier
from sentinel.config.channel import Channel as ChannelSetting
from sentinel.config.chat import SlackConfig, WecomConfig
from sentinel.config.receivers import Receiver, WebhookConfig
from sentinel.config.routing import LOG
from sentinel.config.secrets import read_secret
from sentinel.config.section import Section
from sentinel.config.settings import Settings
from sentinel.core.model.errors import Permanent
from sentinel.ports import Notifier
from sentinel.runtime.audit import CHANNEL as AUDIT
from sentinel.runtime.deliver import SLACK, WECOM, Channel, Rate
from sentinel.runtime.dispatch import Address

_WITHIN = timedelta(seconds=10)


@dataclass(slots=True)
class Book:
    """Every channel by name, and the addresses of each receiver."""

    channels: dict[str, Channel] = field(default_factory=dict)
    addresses: dict[str, list[Address]] = field(default_factory=dict)
    fallback: list[str] = field(default_factory=list)


def book_of(settings: Settings, http: aiohttp.ClientSession, env: Mapping[str, str]) -> Book:
    """A channel that this version cannot serve yet is left out; `not_yet` has said so."""
    book = Book()
    receivers = list(settings.receivers)
    if all(receiver.name != LOG for receiver in receivers):
        receivers.append(Receiver(name=LOG))
    for receiver in receivers:
        addresses = book.addresses.setdefault(receiver.name, [])
        if receiver.name == LOG and not receiver.channels:
            book.channels["log/log/0"] = Channel(LogNotifier(language=settings.global_.language))
            addresses.append(Address(channel="log/log/0"))
        for position, setting in enumerate(receiver.channels):
            built = _build(setting, receiver.name, settings, http, env)
            if built is None:
                continue
            kind, notifier, rate = built
            name = f"{receiver.name}/{kind}/{position}"
            book.channels[name] = Channel(notifier, rate)
            addresses.append(
                Address(
                    channel=name,
                    is_machine=kind == "webhook",
                    send_resolved=setting.send_resolved,
                )
            )
    audit = settings.audit
    if audit.url is not None or audit.url_file is not None:
        notifier = AuditNotifier(_secret(audit, "url", env), http, timeout=audit.timeout or _WITHIN)
        book.channels[AUDIT] = Channel(notifier)
    if settings.global_.fallback_receiver is not None:
        told = book.addresses.get(settings.global_.fallback_receiver, [])
        book.fallback = [address.channel for address in told]
    return book


def _build(
    setting: ChannelSetting,
    receiver: str,
    settings: Settings,
    http: aiohttp.ClientSession,
    env: Mapping[str, str],
) -> tuple[str, Notifier, Rate | None] | None:
    language = settings.global_.language
    match setting:
        case WebhookConfig():
            webhook = WebhookNotifier(
                _secret(setting, "url", env),
                http,
                receiver=receiver,
                max_alerts=setting.max_alerts,
                timeout=setting.timeout or _WITHIN,
            )
            return "webhook", webhook, None
        case SlackConfig() if not setting.is_bot:
            slack = SlackNotifier(
                _secret(setting, "api_url", env),
                http,
                language=language,
                mention=setting.mention,
                timeout=setting.timeout or _WITHIN,
            )
            return "slack", slack, SLACK
        case WecomConfig():
            wecom = WeComNotifier(
                _secret(setting, "url", env),
                http,
                language=language,
                message_type=setting.message_type,
                mentions=Mentions(setting.mentioned_list, setting.mentioned_mobile_list),
            )
            return "wecom", wecom, WECOM
        case _:
            return None


def _secret(section: Section, key: str, env: Mapping[str, str]) -> Callable[[], str]:
    """Read at each send, so that a new secret is taken without a restart."""

    def read() -> str:
        found = read_secret(section, key, env)
        if not found:
            raise Permanent(f"{key} is not set")
        return found

    return read
