"""Who is told. A receiver is a name for any number of channels of any kind."""

from datetime import timedelta
from typing import Any, ClassVar

from pydantic import Field

from sentinel.config.addresses import FilePath, ReceiverUrl, Secret, SecretReceiverUrl
from sentinel.config.channel import Channel, HttpChannel
from sentinel.config.chat import SlackConfig, WechatConfig, WecomConfig
from sentinel.config.durations import Duration, Interval
from sentinel.config.http_client import BasicAuth
from sentinel.config.mail import EmailConfig
from sentinel.config.quantities import Count, Name
from sentinel.config.section import Section


class WebhookConfig(HttpChannel):
    """Alertmanager's webhook, version 4, with one more key `sentinel`."""

    SECRETS: ClassVar = {"url": True}

    url: SecretReceiverUrl | None = None
    """Address to POST to."""

    url_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/webhook"])
    """File with the address to POST to."""

    timeout: Duration | None = None
    """Longest time one request may take; 0 and the default are 10s."""

    max_alerts: Count = 0
    """Most alerts in one message; 0 is all."""

    payload: dict[str, Any] | None = None
    """Alertmanager's template; Sentinel sends version 4 as it is."""


class AlertmanagerConfig(HttpChannel):
    """Sentinel's alerts, sent on to an Alertmanager as a Prometheus would."""

    SECRETS: ClassVar = {"bearer_token": False}

    url: ReceiverUrl = Field(examples=["https://alertmanager.example.org"])
    """Address of the Alertmanager, without `/api/v2/alerts`."""

    send_interval: Interval = timedelta(minutes=1)
    """How often firing alerts are sent again, so that they do not resolve there."""

    basic_auth: BasicAuth | None = None
    """User name and password."""

    bearer_token: Secret | None = None
    """Bearer token."""

    bearer_token_file: FilePath | None = None
    """File with the bearer token."""


class Receiver(Section):
    name: Name = Field(examples=["oncall"])
    """What routes call it."""

    webhook_configs: tuple[WebhookConfig, ...] = ()
    """Programs, by HTTP."""

    slack_configs: tuple[SlackConfig, ...] = ()
    """Slack, by incoming webhook or bot."""

    wecom_configs: tuple[WecomConfig, ...] = ()
    """WeCom group robots."""

    wechat_configs: tuple[WechatConfig, ...] = ()
    """The WeCom app."""

    email_configs: tuple[EmailConfig, ...] = ()
    """E-mail, by SMTP."""

    alertmanager_configs: tuple[AlertmanagerConfig, ...] = ()
    """Alertmanagers."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        """Every channel, list by list."""
        return (
            *self.webhook_configs,
            *self.slack_configs,
            *self.wecom_configs,
            *self.wechat_configs,
            *self.email_configs,
            *self.alertmanager_configs,
        )
