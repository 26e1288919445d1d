"""One connection to the container engine, for the three adapters that need one.

It is opened when first needed and again after any failure, so that an engine that was
restarted, replaced or upgraded is simply talked to anew. Not safe for two threads: each lane
has its own.
"""

import math
import socket
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import docker
import docker.errors
import requests
import urllib3.exceptions

from sentinel.core.model.errors import Ambiguous, Transient

CONNECT, READ = 3.0, 10.0  # seconds

# Whatever docker-py lets through when there is no answer; ValueError is an answer not in JSON.
FAILURES = (
    docker.errors.DockerException,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
    ValueError,
)

T = TypeVar("T")


class Connection:
    def __init__(self, host: str, *, read: float = READ) -> None:
        self.host = host
        self.patience = (CONNECT, read)
        self._client: docker.APIClient | None = None
        self._root: str | None = None

    def get(self, path: str, **params: str) -> Any:
        """The JSON at `path`. Raises `Transient`, and `docker.errors.NotFound` as it is."""
        return self.ask(lambda client: self._json(client, path, params))

    def ask(self, question: Callable[[docker.APIClient], T]) -> T:
        """Ask what changes nothing. An engine of another version is asked once more."""
        try:
            try:
                return question(self.open())
            except docker.errors.APIError as error:
                if not is_version_refusal(error):
                    raise
                self.close()
                return question(self.open())
        except docker.errors.NotFound:
            raise
        except docker.errors.APIError as error:
            raise Transient(f"Docker refused: {said(error)}") from error
        except FAILURES as error:
            self.close()
            raise unreachable(self.host, error) from error

    def act(
        self,
        what: str,
        path: str,
        *,
        method: str = "POST",
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        patience: float,
    ) -> None:
        """Ask for what changes something; `what` says it in words. 304, already so, is no error.

        Raises docker-py's own error with what the engine refused, and `Ambiguous` if the answer
        never came.
        """
        try:
            client = self.open()
            response = client.request(
                method,
                url(client, path),
                params=dict(params or {}),
                json=body,
                timeout=(CONNECT, patience),
            )
            check(response)
        except docker.errors.APIError as error:
            if is_version_refusal(error):
                self.close()
            raise
        except FAILURES as error:
            self.close()
            because = unreachable(self.host, error)
            raise Ambiguous(f"{what} was asked for, but {because.message}") from error

    def root(self) -> str:
        """Docker's data directory, where it is on this machine; else empty."""
        if self._root is None:
            here = self.host.startswith("unix://")
            self._root = str(self.get("/info").get("DockerRootDir") or "") if here else ""
        return self._root

    def inspect(self, container_id: str) -> Mapping[str, Any]:
        raw = self.get(f"/containers/{container_id}/json")
        if not isinstance(raw, dict):
            raise Transient("Docker describes the container in a way that is not its own")
        return raw

    def open(self) -> docker.APIClient:
        if self._client is None:
            self._knock()
            client = docker.APIClient(
                base_url=self.host, version="auto", timeout=math.ceil(self.patience[1])
            )
            client.trust_env = False  # a proxy for the internet is not one for the engine
            self._client = client
        return self._client

    def close(self) -> None:
        client, self._client, self._root = self._client, None, None
        if client is not None:
            client.close()

    def _knock(self) -> None:
        """Is anybody there? docker-py would leave the socket open that it could not connect."""
        if self.host.startswith("unix://"):
            with socket.socket(socket.AF_UNIX) as door:
                door.settimeout(CONNECT)
                door.connect(self.host.removeprefix("unix://"))

    def _json(self, client: docker.APIClient, path: str, params: Mapping[str, str]) -> Any:
        response = client.get(url(client, path), params=params, timeout=self.patience)
        check(response)
        return response.json()


def url(client: docker.APIClient, path: str) -> str:
    return f"{client.base_url}/v{client.api_version}{path}"


def check(response: requests.Response) -> None:
    """Raise docker-py's own error, with Docker's message, for 4xx and 5xx."""
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        docker.errors.create_api_error_from_http_exception(error)


def said(error: docker.errors.APIError) -> str:
    return str(error.explanation or error).strip()


def unreachable(host: str, error: BaseException) -> Transient:
    return Transient(
        f"Docker does not answer at {host}: {_reason(error)}",
        hint="Is the engine running, and may this user open its socket?",
    )


def is_version_refusal(error: docker.errors.APIError) -> bool:
    """`client version 1.41 is too old. Minimum supported API version is 1.44 …`"""
    return error.status_code == requests.codes.bad_request and "client version" in said(error)


def _reason(error: BaseException) -> str:
    """The innermost cause in few words; requests wraps one in three layers of text."""
    inner: BaseException = error
    while (below := _below(inner)) is not None:
        inner = below
    if isinstance(inner, TimeoutError | requests.Timeout | urllib3.exceptions.TimeoutError):
        return "no answer in time"
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__


def _below(error: BaseException) -> BaseException | None:
    wrapped = [arg for arg in error.args if isinstance(arg, BaseException)]
    return wrapped[-1] if wrapped else error.__cause__
