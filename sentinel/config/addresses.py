"""Addresses: of web services, of files, of mail hosts.

Plain http carries secrets and alerts in the open, so a message goes over it only to this
very machine. An address may itself be a secret: no fault repeats one.
"""

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, SecretStr

from sentinel.config.document import Located
from sentinel.config.fault import quoted
from sentinel.config.section import wrong

_MESSAGES = "https://… or, for loopback addresses, http://…"
_SERVICES = "http://HOST[:PORT]… or https://HOST[:PORT]…"
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def check_receiver_url(url: str) -> str:
    """Return `url` if a message may be sent there; raises what `wrong` makes of it if not."""
    scheme, host = _parts(url, _MESSAGES)
    if scheme == "http" and not is_loopback(host):
        raise wrong(f"plain http to {quoted(host)}", allowed=_MESSAGES)
    return url


def check_service_url(url: str) -> str:
    _parts(url, _SERVICES)
    return url


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parts(url: str, allowed: str) -> tuple[str, str]:
    if any(c.isspace() or not c.isprintable() for c in url):
        raise wrong("an address with a space or control character in it", allowed=allowed)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise wrong("not an address", allowed=allowed) from None
    if parts.scheme not in ("http", "https") or not host:
        raise wrong("not an http address", allowed=allowed)
    if port == 0:
        raise wrong("port 0 is no port", allowed=allowed)
    return parts.scheme, host


def _without_password(url: str) -> str:
    """An address that is shown may hold no password."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise wrong("a user or password in the address", allowed="http_config with basic_auth")
    return url


def _secret(check: Callable[[str], str]) -> Any:
    def validate(url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        if text and not is_reference(text):
            check(text)
        return url

    return AfterValidator(validate)


def is_reference(text: str) -> bool:
    """Whether it is `${NAME}`: a secret that the environment holds."""
    return _REFERENCE.fullmatch(text) is not None


def _read_path(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value or "\0" in value:
        raise wrong("is no path", allowed="a path; a relative one starts at this file's folder")
    return value.folder / value if isinstance(value, Located) else Path(value)


def _read_pattern(value: object) -> object:
    return str(_read_path(value)) if isinstance(value, str) else value


def _read_host_port(value: object) -> object:
    host, colon, port = str(value).rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise wrong(f"{quoted(value)} is no host and port", allowed="HOST:PORT")
    return str(value)


def _read_engine(value: object) -> object:
    text = str(value)
    if text.startswith("unix:///") and len(text) > len("unix:///"):
        return text
    if text.startswith("tcp://"):
        _read_host_port(text.removeprefix("tcp://").rstrip("/"))
        return text
    raise wrong(f"{quoted(value)} is no Docker address", allowed="unix:///PATH or tcp://HOST:PORT")


ServiceUrl = Annotated[str, AfterValidator(_without_password), AfterValidator(check_service_url)]
ReceiverUrl = Annotated[str, AfterValidator(_without_password), AfterValidator(check_receiver_url)]
Secret = Annotated[SecretStr, PlainSerializer(lambda _: "<secret>", return_type=str)]
SecretReceiverUrl = Annotated[Secret, _secret(check_receiver_url)]
SecretServiceUrl = Annotated[Secret, _secret(check_service_url)]
FilePath = Annotated[Path, BeforeValidator(_read_path), PlainSerializer(str, return_type=str)]
FilePattern = Annotated[str, BeforeValidator(_read_pattern)]
"""A path that may hold `*`; absolute once it is loaded."""
HostPort = Annotated[str, BeforeValidator(_read_host_port)]
EngineAddress = Annotated[str, BeforeValidator(_read_engine)]
