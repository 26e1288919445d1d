"""A Prometheus elsewhere, asked to evaluate rule expressions.

What Prometheus itself says of an expression is that one's outcome; what anybody else says (a
proxy, a login page, nobody at all) concerns all of them and ends the batch. No text of a
library leaves this file, since it may quote a secret. The package that speaks to Prometheus
is imported when it is first needed: a daemon without this setting never pays for it. Longer
than most, since TLS and proxies are those of `http_config` and not the environment's.
"""

import io
import json
import os
import ssl
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.utils import get_environ_proxies, should_bypass_proxies

from sentinel import __version__
from sentinel.config.evaluation import PrometheusSource as Setting
from sentinel.config.http_client import HttpConfig, TlsConfig
from sentinel.config.secrets import read_secret, read_secret_file
from sentinel.config.section import is_given
from sentinel.core.alerting.outside import Answer, Answers, Question
from sentinel.core.model.errors import Permanent, SentinelError, Transient
from sentinel.core.model.labels import labels_of
from sentinel.core.promql import Sample
from sentinel.ports import Clock

CONNECT = 3.0  # seconds
MOST_READ = 8 << 20  # bytes of one answer
_LATER = frozenset({408, 425, 429})
_VERSIONS = {
    "TLS10": ssl.TLSVersion.TLSv1,
    "TLS11": ssl.TLSVersion.TLSv1_1,
    "TLS12": ssl.TLSVersion.TLSv1_2,
    "TLS13": ssl.TLSVersion.TLSv1_3,
}


class PrometheusSource:
    """One lane's own; the connection is made anew after any failure."""

    def __init__(self, setting: Setting, env: Mapping[str, str], clock: Clock) -> None:
        self._url = setting.url.rstrip("/")
        self._http = setting.http_config or HttpConfig()
        self._env, self._clock = env, clock
        self._door: _Door | None = None
        self._client: Any = None

    def ask(self, questions: Sequence[Question], *, within: timedelta) -> Answers:
        ends = self._clock.monotonic() + within.total_seconds()
        outcomes: dict[Question, Answer | SentinelError] = {}
        try:
            for question in questions:
                outcomes[question] = self._ask(question, ends)
        except SentinelError as error:
            self._close()
            return Answers(outcomes, error)
        return Answers(outcomes)

    def _ask(self, question: Question, ends: float) -> Answer | SentinelError:
        """The answer, or what Prometheus says against this expression.

        Raises what concerns every expression.
        """
        left = ends - self._clock.monotonic()
        if left <= 0:
            raise Transient("the time is up before all expressions were answered")
        door, client = self._open()
        client.headers = _headers(self._http, self._env)
        client.auth = _basic_auth(self._http, self._env)
        door.begin(ends)
        said = {"time": f"{question.at.timestamp():.3f}", "timeout": f"{max(left * 500, 1):.0f}ms"}
        result = _result_of(client, question.expression, said)
        if door.status is None:
            raise _in_words(result)
        told = _told(door.body)
        if told is None:
            raise _no_prometheus(door.status)
        if told["status"] != "success":
            return _refusal(told, door.status)
        return _answer(result, told)

    def _open(self) -> "tuple[_Door, Any]":
        if self._door is not None:
            return self._door, self._client
        http = self._http
        if http.oauth2 is not None or http.proxy_connect_header:
            raise Permanent("http_config: oauth2 and proxy_connect_header are not used here yet")
        try:
            from prometheus_api_client import PrometheusConnect  # noqa: PLC0415 - see above
        except ImportError:
            PrometheusConnect = None  # noqa: N806 - a class
        if PrometheusConnect is None:
            raise Permanent(
                "the package prometheus-api-client is not installed",
                hint="Install vllm-sentinel[prometheus].",
            )
        door = _Door(self._clock, http.tls_config or TlsConfig(), self._env)
        session = requests.Session()
        session.trust_env = False  # neither .netrc nor REQUESTS_CA_BUNDLE: http_config alone
        session.max_redirects = 10 if http.follow_redirects else 0
        session.proxies = _proxies(http, self._url, self._env)
        client = PrometheusConnect(self._url, session=session)
        for prefix in ("http://", "https://", self._url):  # the last one is the package's own
            session.mount(prefix, door)
        self._door, self._client = door, client
        return door, client

    def _close(self) -> None:
        client, self._client, self._door = self._client, None, None
        if client is not None:
            client.close()


class _Door(HTTPAdapter):
    """One exchange, to a deadline and of a limited size; keeps what came back."""

    def __init__(self, clock: Clock, tls: TlsConfig, env: Mapping[str, str]) -> None:
        self._clock, self._ends = clock, 0.0
        self._context = _tls_context(tls, env)
        self._name = {"server_hostname": tls.server_name} if tls.server_name else {}
        self.status: int | None = None
        self.body = b""
        super().__init__(max_retries=0)

    def begin(self, ends: float) -> None:
        self._ends, self.status, self.body = ends, None, b""

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        more |= {"ssl_context": self._context, **self._name}
        super().init_poolmanager(*args, **more)

    def proxy_manager_for(self, proxy: str, **more: Any) -> Any:
        return super().proxy_manager_for(proxy, **more, ssl_context=self._context)

    def build_connection_pool_key_attributes(
        self, request: Any, verify: Any, cert: Any = None
    ) -> Any:
        place, _ = super().build_connection_pool_key_attributes(request, verify, cert)
        return place, {}  # the context alone says whom to trust

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:
        """Nothing: see above."""

    def send(self, request: Any, *_: Any, **how: Any) -> requests.Response:
        self.status = None
        left = max(self._ends - self._clock.monotonic(), 0.001)
        how |= {"stream": True, "timeout": (min(CONNECT, left), left)}
        reply = super().send(request, **how)
        raw, body = cast("urllib3.HTTPResponse", reply.raw), bytearray()
        while piece := raw.read1(1 << 16, decode_content=False):
            body += piece
            late = self._clock.monotonic() > self._ends
            if late or len(body) > MOST_READ:
                raw.close()
                raise requests.ReadTimeout if late else _TooLargeError
        reply.raw = io.BytesIO(body)
        self.status, self.body = reply.status_code, bytes(body)
        return reply


class _TooLargeError(requests.RequestException):
    pass


def _result_of(client: Any, expression: str, said: Mapping[str, str]) -> Any:
    """The result; None if what came is none, and the exception if nothing came."""
    from prometheus_api_client.exceptions import (  # noqa: PLC0415 - see above
        PrometheusApiClientException,
    )

    try:
        return client.custom_query(expression, params=said)
    except requests.JSONDecodeError:
        return None
    except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        return error
    except (PrometheusApiClientException, LookupError, TypeError, ValueError, RecursionError):
        return None


def _told(body: bytes) -> dict[str, Any] | None:
    """What Prometheus told, if this is one: it says so itself, whatever the status."""
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_one = isinstance(told, dict) and told.get("status") in ("success", "error")
    return told if is_one else None


def _answer(result: Any, told: Mapping[str, Any]) -> Answer | SentinelError:
    """The package gives the result alone; warnings are in what was told."""
    if isinstance(result, list) and len(result) == 2 and isinstance(result[1], str):
        result = [{"metric": {}, "value": result}]  # a scalar
    if not isinstance(result, list):
        return Permanent("there is no result in it")
    try:
        vector = tuple(_sample(one) for one in result)
        warnings = tuple(_short(text) for text in told.get("warnings") or ())
    except (LookupError, TypeError, ValueError):
        return Permanent("the result is neither a vector of numbers nor a scalar")
    return Answer(vector, warnings)


def _sample(one: Mapping[str, Any]) -> Sample:
    """Raises `LookupError`, `TypeError` or `ValueError` for what is none, as a histogram."""
    _, value = one["value"]
    labels = one["metric"]
    if not isinstance(labels, dict) or not all(
        isinstance(text, str) for text in (value, *labels.values())
    ):
        raise TypeError
    return Sample(labels_of(labels), float(value))


def _refusal(told: Mapping[str, Any], status: int) -> SentinelError:
    said = f"Prometheus: {_short(told.get('error') or told.get('errorType') or 'error')}"
    return Transient(said, status=status) if _passes(status) else Permanent(said, status=status)


def _no_prometheus(status: int) -> SentinelError:
    if _passes(status):
        return Transient(f"it answers {status}", status=status)
    hint = "Check metrics_source.prometheus: url and http_config."
    if status == 200:
        return Permanent("what answers is no Prometheus", hint=hint, status=status)
    return Permanent(f"it answers {status}", hint=hint, status=status)


def _passes(status: int) -> bool:
    return status in _LATER or status >= 500


def _short(text: object) -> str:
    return "".join(c if c.isprintable() else " " for c in str(text)[:300])


def _in_words(error: object) -> SentinelError:
    """From its type alone: its text may quote a secret."""
    match error:
        case _TooLargeError():
            return Permanent(f"an answer has more than {MOST_READ >> 20} MiB")
        case requests.exceptions.SSLError():
            return Permanent("no secure connection could be made", hint="Check tls_config.")
        case requests.exceptions.ProxyError():
            return Transient("its proxy does not let us through")
        case requests.Timeout():
            return Transient("no answer in time")
        case ValueError():  # requests' own for addresses and headers that cannot be sent
            return Permanent("what would be sent is not HTTP: check url and http_config")
    cause = _innermost(error)
    if isinstance(cause, TimeoutError | urllib3.exceptions.TimeoutError):
        return Transient("no answer in time")
    if isinstance(cause, OSError) and cause.strerror:
        return Transient(cause.strerror.lower())  # the system's own words
    return Transient("the connection was broken off")


def _innermost(error: object) -> object:
    """Requests and urllib3 wrap a cause in each other, in three different ways."""
    while True:
        inner = [*getattr(error, "args", ()), getattr(error, "reason", None)]
        inner.append(getattr(error, "__cause__", None))
        below = [one for one in inner if isinstance(one, BaseException)]
        if not below:
            return error
        error = below[-1]


def _headers(http: HttpConfig, env: Mapping[str, str]) -> dict[str, str]:
    """Read at each request, so that a new secret is taken without a reload."""
    headers = {"User-Agent": f"Sentinel/{__version__}", "Accept-Encoding": "identity"}
    for name, header in http.http_headers.items():
        secrets = [secret.get_secret_value() for secret in header.secrets]
        files = [read_secret_file(file, env) for file in header.files]
        headers[name] = ", ".join([*header.values, *secrets, *files])
    if http.authorization is not None:
        credentials = read_secret(http.authorization, "credentials", env)
        headers["Authorization"] = f"{http.authorization.type} {credentials}"
    elif is_given(http.bearer_token) or http.bearer_token_file is not None:
        headers["Authorization"] = f"Bearer {read_secret(http, 'bearer_token', env)}"
    return headers


def _basic_auth(http: HttpConfig, env: Mapping[str, str]) -> tuple[bytes, bytes] | None:
    basic = http.basic_auth
    if basic is None:
        return None
    name = read_secret_file(basic.username_file, env) if basic.username_file else basic.username
    return (name or "").encode(), (read_secret(basic, "password", env) or "").encode()


def _proxies(http: HttpConfig, url: str, env: Mapping[str, str]) -> dict[str, str]:
    if http.proxy_from_environment:
        return dict(get_environ_proxies(url))
    if not is_given(http.proxy_url) or should_bypass_proxies(url, http.no_proxy or ""):
        return {}
    proxy = read_secret(http, "proxy_url", env) or ""
    return {"http": proxy, "https": proxy}


def _tls_context(tls: TlsConfig, env: Mapping[str, str]) -> ssl.SSLContext:
    """Raises `Permanent` for certificates that cannot be used."""
    try:
        context = ssl.create_default_context(cafile=tls.ca_file, cadata=tls.ca)
        if tls.cert is not None or tls.cert_file is not None:
            cert = tls.cert_file.read_text() if tls.cert_file else tls.cert
            pem = f"{cert}\n{read_secret(tls, 'key', env)}\n"
            with os.fdopen(os.memfd_create("pem"), "w") as both:  # only files can be loaded
                both.write(pem)
                both.flush()
                context.load_cert_chain(f"/proc/self/fd/{both.fileno()}", password="")
    except (OSError, ValueError):  # ssl.SSLError is an OSError
        context = None
    if context is None:
        raise Permanent("tls_config: a certificate or its key cannot be used")
    if tls.insecure_skip_verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if tls.min_version is not None:
        context.minimum_version = _VERSIONS[tls.min_version]
    if tls.max_version is not None:
        context.maximum_version = _VERSIONS[tls.max_version]
    return context
