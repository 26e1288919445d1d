"""The e-mail receiver, with Alertmanager's keys."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from sentinel.config.addresses import FilePath, HostPort, Secret
from sentinel.config.channel import Channel
from sentinel.config.http_client import TlsConfig
from sentinel.config.quantities import Flag, Name
from sentinel.config.section import Section, wrong


class MailThreading(Section):
    enabled: Flag = True
    """Messages of one incident form one thread; Sentinel does so in any case."""

    thread_by_date: str | None = None
    """Alertmanager's; Sentinel threads by incident."""


class EmailConfig(Channel):
    SECRETS: ClassVar = {"auth_password": False, "auth_secret": False}

    to: Name = Field(examples=["oncall@example.org"])
    """Addresses to send to, separated by commas."""

    from_: Name = Field(alias="from", examples=["sentinel@example.org"])
    """Address of the sender. Default: `global.smtp_from`."""

    smarthost: HostPort = Field(examples=["smtp.example.org:587"])
    """Mail host and port. Default: `global.smtp_smarthost`."""

    hello: str = Field(default="localhost", examples=[])
    """Name given to the mail host. Default: `global.smtp_hello`."""

    auth_username: str | None = Field(default=None, examples=["sentinel"])
    """User name at the mail host. Default: `global.smtp_auth_username`."""

    auth_password: Secret | None = None
    """Password at the mail host. Default: `global.smtp_auth_password`."""

    auth_password_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/smtp"])
    """File with the password. Default: `global.smtp_auth_password_file`."""

    auth_secret: Secret | None = None
    """Secret for CRAM-MD5. Default: `global.smtp_auth_secret`."""

    auth_secret_file: FilePath | None = None
    """File with the secret for CRAM-MD5."""

    auth_identity: str | None = None
    """Identity for PLAIN. Default: `global.smtp_auth_identity`."""

    require_tls: Flag = True
    """Send nothing without TLS. Default: `global.smtp_require_tls`."""

    force_implicit_tls: Flag | None = None
    """Speak TLS from the first byte. Default: only on port 465."""

    tls_config: TlsConfig | None = None
    """TLS towards the mail host. Default: `global.smtp_tls_config`."""

    headers: dict[str, str] = Field(default={}, examples=[{"X-Team": "inference"}])
    """Further headers; a `Subject` here replaces Sentinel's."""

    html: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    text: str | None = None
    """Alertmanager's template; Sentinel writes its own text."""

    threading: MailThreading = Field(default=MailThreading(), examples=[])
    """How messages form threads."""

    @model_validator(mode="after")
    def _headers_once(self) -> Self:
        seen: set[str] = set()
        for name in self.headers:
            if name.lower() in seen:
                raise wrong(
                    "the same header twice", allowed="each header once", at=("headers", name)
                )
            seen.add(name.lower())
        return self
