"""`global`: Prometheus's and Alertmanager's, merged.

Keys that begin with `smtp_`, `slack_` or `wechat_` are what receivers use that do not say
their own.
"""

from datetime import timedelta
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sentinel.config.addresses import (
    FilePath,
    HostPort,
    ReceiverUrl,
    Secret,
    SecretReceiverUrl,
)
from sentinel.config.durations import Interval
from sentinel.config.http_client import HttpConfig, TlsConfig
from sentinel.config.quantities import Flag, LabelName, Name
from sentinel.config.section import Section, wrong
from sentinel.core.alerting.duration import show_duration

_SCRAPE_INTERVAL = timedelta(seconds=5)
_SCRAPE_TIMEOUT = timedelta(seconds=3)


def _scrape_timeout(given: dict[str, Any]) -> timedelta:
    interval: timedelta = given.get("scrape_interval", _SCRAPE_INTERVAL)
    return min(_SCRAPE_TIMEOUT, interval)


def _evaluation_interval(given: dict[str, Any]) -> timedelta:
    interval: timedelta = given.get("scrape_interval", _SCRAPE_INTERVAL)
    return interval


class SlackSocketMode(Section):
    """Buttons in Slack; on one daemon per Slack app."""

    SECRETS: ClassVar = {"app_level_token": True}

    app_level_token: Secret | None = None
    """The app-level token (`xapp-…`)."""

    app_level_token_file: FilePath | None = Field(
        default=None, examples=["/etc/sentinel/slack-app"]
    )
    """File with the app-level token."""

    allowed_users: tuple[Name, ...] = Field(default=(), examples=[["U0123456789"]])
    """Ids of the users whose clicks count. Default: nobody's."""

    allowed_channels: tuple[Name, ...] = Field(default=(), examples=[["C0123456789"]])
    """Ids of the channels in which clicks count. Default: none."""

    base_url: ReceiverUrl = "https://slack.com/api/"
    """Address of Slack's API."""


class Global(Section):
    SECRETS: ClassVar = {
        "slack_api_url": False,
        "slack_app_token": False,
        "smtp_auth_password": False,
        "smtp_auth_secret": False,
        "wechat_api_secret": False,
    }

    scrape_interval: Interval = _SCRAPE_INTERVAL
    """How often each target's metrics are read."""

    scrape_timeout: Interval = Field(default_factory=_scrape_timeout, examples=["3s"])
    """Longest time one read may take. Default: 3s, or `scrape_interval` if that is shorter."""

    evaluation_interval: Interval = Field(default_factory=_evaluation_interval, examples=["5s"])
    """How often rules are evaluated. Default: `scrape_interval`."""

    external_labels: dict[LabelName, str] = Field(default={})
    """Added to series that leave and to alerts; `host`, the host's name, is always there."""

    language: Literal["en", "zh"] = "en"
    """Language of messages: English or Chinese."""

    resolve_timeout: Interval = timedelta(minutes=5)
    """When an alert sent by others, without an end, is taken as resolved."""

    fallback_receiver: Name | None = Field(default=None, examples=["oncall"])
    """Receiver told when another one fails for good."""

    slack_socket_mode: SlackSocketMode | None = None
    """Buttons in Slack. Default: none."""

    http_config: HttpConfig | None = None
    """How to speak HTTP to receivers that do not say their own."""

    slack_api_url: SecretReceiverUrl | None = None
    """Address of an incoming webhook."""

    slack_api_url_file: FilePath | None = None
    """File with the address of an incoming webhook."""

    slack_app_token: Secret | None = None
    """Token of a bot."""

    slack_app_token_file: FilePath | None = None
    """File with the token of a bot."""

    slack_app_url: ReceiverUrl | None = None
    """Whole address of `chat.postMessage`."""

    wechat_api_url: ReceiverUrl | None = None
    """Address of WeCom's API."""

    wechat_api_secret: Secret | None = None
    """Secret of the WeCom app."""

    wechat_api_secret_file: FilePath | None = None
    """File with the secret of the WeCom app."""

    wechat_api_corp_id: str | None = None
    """Id of the corporation."""

    smtp_from: str | None = None
    """Address of the sender."""

    smtp_smarthost: HostPort | None = None
    """Mail host and port."""

    smtp_hello: str | None = None
    """Name given to the mail host."""

    smtp_auth_username: str | None = None
    """User name at the mail host."""

    smtp_auth_password: Secret | None = None
    """Password at the mail host."""

    smtp_auth_password_file: FilePath | None = None
    """File with the password."""

    smtp_auth_secret: Secret | None = None
    """Secret for CRAM-MD5."""

    smtp_auth_secret_file: FilePath | None = None
    """File with the secret for CRAM-MD5."""

    smtp_auth_identity: str | None = None
    """Identity for PLAIN."""

    smtp_require_tls: Flag | None = None
    """Send nothing without TLS."""

    smtp_force_implicit_tls: Flag | None = None
    """Speak TLS from the first byte."""

    smtp_tls_config: TlsConfig | None = None
    """TLS towards the mail host."""

    @model_validator(mode="after")
    def _timeout_fits(self) -> Self:
        if self.scrape_timeout > self.scrape_interval:
            interval = show_duration(self.scrape_interval)
            raise wrong(
                f"is longer than scrape_interval ({interval})",
                allowed=f"up to {interval}",
                at=("scrape_timeout",),
            )
        return self
