"""How Sentinel speaks HTTP to a receiver: Alertmanager's `http_config`."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sentinel.config.addresses import FilePath, Secret, SecretServiceUrl, ServiceUrl
from sentinel.config.quantities import Flag, Name
from sentinel.config.section import Section, is_given, wrong

TlsVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]


class TlsConfig(Section):
    SECRETS: ClassVar = {"key": False}

    ca: str | None = None
    """Certificate authority, PEM. Default: the system's."""

    ca_file: FilePath | None = None
    """File with the certificate authority, PEM."""

    cert: str | None = None
    """Client certificate, PEM."""

    cert_file: FilePath | None = None
    """File with the client certificate, PEM."""

    key: Secret | None = None
    """Key of the client certificate, PEM."""

    key_file: FilePath | None = None
    """File with the key of the client certificate, PEM."""

    server_name: str | None = None
    """Name that the server's certificate must carry. Default: the host of the address."""

    insecure_skip_verify: Flag = False
    """Do not check the server's certificate."""

    min_version: TlsVersion | None = None
    """Oldest TLS version that is spoken. Default: TLS12."""

    max_version: TlsVersion | None = None
    """Newest TLS version that is spoken. Default: the newest there is."""

    @model_validator(mode="after")
    def _one_source_each(self) -> Self:
        for key in ("ca", "cert"):
            if getattr(self, key) is not None and getattr(self, f"{key}_file") is not None:
                raise wrong(
                    f"is given twice, as {key} and as {key}_file",
                    allowed=f"{key} or {key}_file",
                    at=(f"{key}_file",),
                )
        if (self.cert is None and self.cert_file is None) == (
            is_given(self.key) or self.key_file is not None
        ):
            raise wrong("a certificate and its key go together", allowed="both or neither")
        return self


class BasicAuth(Section):
    SECRETS: ClassVar = {"password": False}

    username: str | None = Field(default=None, examples=["sentinel"])
    """User name."""

    username_file: FilePath | None = None
    """File with the user name."""

    password: Secret | None = None
    """Password."""

    password_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/password"])
    """File with the password."""


class Authorization(Section):
    SECRETS: ClassVar = {"credentials": True}

    type: Name = "Bearer"
    """First word of the `Authorization` header."""

    credentials: Secret | None = None
    """The rest of the header."""

    credentials_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/token"])
    """File with the rest of the header."""


class OAuth2(Section):
    SECRETS: ClassVar = {"client_secret": True}

    client_id: Name = Field(examples=["sentinel"])
    """Client id."""

    client_secret: Secret | None = None
    """Client secret."""

    client_secret_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/oauth"])
    """File with the client secret."""

    token_url: ServiceUrl = Field(examples=["https://auth.example.org/token"])
    """Where tokens are fetched."""

    scopes: tuple[str, ...] = ()
    """Scopes asked for."""

    endpoint_params: dict[str, str] = Field(default={})
    """Further parameters of the request for a token."""

    tls_config: TlsConfig | None = None
    """TLS towards `token_url`."""

    proxy_url: SecretServiceUrl | None = None
    """Proxy towards `token_url`."""


class HttpHeader(Section):
    values: tuple[str, ...] = ()
    """Values that may be seen."""

    secrets: tuple[Secret, ...] = ()
    """Values that are never printed."""

    files: tuple[FilePath, ...] = ()
    """Files whose content is a value."""


class HttpConfig(Section):
    SECRETS: ClassVar = {"bearer_token": False}

    basic_auth: BasicAuth | None = None
    """User name and password."""

    authorization: Authorization | None = Field(default=None, examples=[])
    """An `Authorization` header, for example a bearer token."""

    oauth2: OAuth2 | None = Field(default=None, examples=[])
    """OAuth 2.0, client credentials."""

    bearer_token: Secret | None = None
    """Bearer token; older form of `authorization`."""

    bearer_token_file: FilePath | None = None
    """File with the bearer token."""

    proxy_url: SecretServiceUrl | None = None
    """HTTP proxy; it may carry a password and is not printed."""

    no_proxy: str | None = None
    """Addresses for which no proxy is used, separated by commas."""

    proxy_from_environment: Flag = Field(default=False, examples=[])
    """Take the proxy from `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`."""

    proxy_connect_header: dict[str, tuple[Secret, ...]] = Field(default={})
    """Headers for the proxy itself."""

    tls_config: TlsConfig | None = None
    """TLS towards the receiver."""

    follow_redirects: Flag = Field(default=True, examples=[])
    """Follow redirects."""

    enable_http2: Flag = Field(default=True, examples=[])
    """Accepted as in Alertmanager; Sentinel speaks HTTP/1.1."""

    http_headers: dict[str, HttpHeader] = Field(default={}, examples=[])
    """Further headers of each request."""

    @model_validator(mode="after")
    def _one_way_to_sign_in(self) -> Self:
        bearer = is_given(self.bearer_token) or self.bearer_token_file is not None
        ways = [self.basic_auth, self.authorization, self.oauth2, bearer or None]
        if sum(way is not None for way in ways) > 1:
            raise wrong(
                "more than one way to sign in",
                allowed="one of basic_auth, authorization, oauth2, bearer_token",
            )
        if self.proxy_from_environment and (self.proxy_url or self.no_proxy):
            raise wrong(
                "proxy_from_environment together with proxy_url or no_proxy",
                allowed="one of the two",
                at=("proxy_from_environment",),
            )
        return self
