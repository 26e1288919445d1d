"""Receivers that are chats: Slack, a WeCom group robot, a WeCom app.

Slack's and the WeCom app's keys are Alertmanager's. Keys that shape Alertmanager's own text
are accepted, so that an existing file works, and leave Sentinel's messages as they are.
"""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sentinel.config.addresses import (
    FilePath,
    ReceiverUrl,
    Secret,
    SecretReceiverUrl,
)
from sentinel.config.channel import HttpChannel
from sentinel.config.durations import Interval
from sentinel.config.quantities import Flag, Name
from sentinel.config.section import is_given, wrong


class SlackConfig(HttpChannel):
    """An incoming webhook (`api_url`), or a bot (`app_token` and `channel`)."""

    SECRETS: ClassVar = {"api_url": False, "app_token": False}

    api_url: SecretReceiverUrl | None = None
    """Address of an incoming webhook. Default: `global.slack_api_url`."""

    api_url_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/slack"])
    """File with the address of an incoming webhook."""

    app_token: Secret | None = None
    """Token of a bot (`xoxb-…`). Default: `global.slack_app_token`."""

    app_token_file: FilePath | None = None
    """File with the token of a bot."""

    app_url: ReceiverUrl = Field(default="https://slack.com/api/chat.postMessage", examples=[])
    """Whole address of `chat.postMessage`; `chat.update` is beside it."""

    update_message: Flag = Field(default=True, examples=[])
    """A bot edits its first message as an incident goes on, and answers in its thread."""

    channel: Name | None = Field(default=None, examples=["C0123456789"])
    """Id of the channel; a bot needs one."""

    mention: tuple[Name, ...] = Field(default=(), examples=[["U0123456789"]])
    """Ids of users or groups to call when an alert fires."""

    timeout: Interval | None = None
    """Longest time one request may take. Default: 10s."""

    username: str | None = None
    """Name an incoming webhook shows, where Slack lets it."""

    icon_emoji: str | None = None
    """Emoji an incoming webhook shows, where Slack lets it."""

    icon_url: str | None = None
    """Picture an incoming webhook shows, where Slack lets it."""

    link_names: Flag = Field(default=False, examples=[])
    """Alertmanager's; names in Sentinel's messages are never links."""

    title: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    title_link: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    pretext: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    text: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    message_text: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    fallback: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    footer: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    color: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    callback_id: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    image_url: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    thumb_url: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    short_fields: Flag = Field(default=False, examples=[])
    """Alertmanager's; Sentinel writes its own text."""

    mrkdwn_in: tuple[str, ...] = ()
    """Alertmanager's; Sentinel writes its own text."""

    fields: tuple[dict[str, Any], ...] = ()
    """Alertmanager's; Sentinel writes its own text."""

    actions: tuple[dict[str, Any], ...] = ()
    """Alertmanager's; Sentinel has buttons of its own."""

    @model_validator(mode="after")
    def _webhook_or_bot(self) -> Self:
        webhook = is_given(self.api_url) or self.api_url_file is not None
        if webhook == self.is_bot:
            raise wrong(
                "both a webhook and a bot" if webhook else "neither a webhook nor a bot",
                allowed="api_url or api_url_file (webhook), or app_token or app_token_file (bot)",
            )
        if self.is_bot and self.channel is None:
            raise wrong("a bot needs a channel", allowed="channel: the id of a channel")
        return self

    @property
    def is_bot(self) -> bool:
        return is_given(self.app_token) or self.app_token_file is not None


class WecomConfig(HttpChannel):
    """A WeCom group robot (企业微信群机器人)."""

    SECRETS: ClassVar = {"url": True}

    url: SecretReceiverUrl | None = None
    """Whole address of the robot, with its key."""

    url_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/wecom"])
    """File with the whole address of the robot."""

    message_type: Literal["markdown", "text"] = "markdown"
    """`markdown` has colours; `text` can call `@all` and people by phone number."""

    mentioned_list: tuple[Name, ...] = Field(default=(), examples=[["@all"]])
    """User ids to call, or `@all`."""

    mentioned_mobile_list: tuple[Name, ...] = Field(default=(), examples=[["13800000000"]])
    """Phone numbers of people to call."""


class WechatConfig(HttpChannel):
    """The WeCom app (企业微信应用), as Alertmanager speaks to it."""

    SECRETS: ClassVar = {"api_secret": True}

    api_secret: Secret | None = None
    """Secret of the app. Default: `global.wechat_api_secret`."""

    api_secret_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/wechat"])
    """File with the secret of the app."""

    corp_id: Name = Field(examples=["ww0123456789"])
    """Id of the corporation. Default: `global.wechat_api_corp_id`."""

    api_url: ReceiverUrl = "https://qyapi.weixin.qq.com/cgi-bin/"
    """Address of the API. Default: `global.wechat_api_url`, else WeCom's own."""

    agent_id: str = Field(default="", examples=["1000002"])
    """Id of the app."""

    to_user: str = Field(default="", examples=["@all"])
    """Users to tell, separated by `|`."""

    to_party: str = ""
    """Departments to tell, separated by `|`."""

    to_tag: str = ""
    """Tags to tell, separated by `|`."""

    message_type: Literal["text", "markdown"] = "text"
    """Form of the message."""

    message: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""
