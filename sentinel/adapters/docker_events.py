"""Follows the Docker Engine's events until they stop coming.

Events are lossy by design of the engine (a ring of 256, in memory), so this never promises
more than a wake-up. Silence is an end too: a frozen engine keeps the connection open, and
docker-py's own `events()` would wait on it for ever.
"""

import json
from collections.abc import Callable, Iterator

import docker.errors
import requests

from sentinel.adapters.docker_api import (
    CONNECT,
    FAILURES,
    Connection,
    check,
    said,
    unreachable,
    url,
)
from sentinel.core.dockerspeak import ACTIONS, TYPES, event_of, since_after
from sentinel.core.model.container import EngineEvent
from sentinel.core.model.errors import Transient


class DockerEvents:
    def __init__(self, host: str, *, silence: float = 45.0) -> None:
        self._host = host
        self._silence = silence  # seconds

    def follow(
        self,
        since_ns: int | None,
        *,
        opened: Callable[[], None],
        heard: Callable[[EngineEvent], None],
    ) -> None:
        connection = Connection(self._host)  # a new one each time: the engine may be, too
        try:
            with self._open(connection, since_ns) as response:
                opened()
                for line in _lines(response):
                    if (event := _event(line)) is not None:
                        heard(event)
        finally:
            connection.close()

    def _open(self, connection: Connection, since_ns: int | None) -> requests.Response:
        params = {"filters": json.dumps({"type": list(TYPES), "event": list(ACTIONS)})}
        if since_ns is not None:
            params["since"] = since_after(since_ns)
        try:
            client = connection.open()
            response = client.get(
                url(client, "/events"),
                params=params,
                stream=True,
                timeout=(CONNECT, self._silence),
            )
            check(response)
        except docker.errors.APIError as error:
            raise Transient(f"Docker refused its events: {said(error)}") from error
        except FAILURES as error:
            raise unreachable(self._host, error) from error
        return response


def _lines(response: requests.Response) -> Iterator[bytes]:
    """Lines as they come, until the stream ends, breaks, or is silent for too long."""
    chunks = response.iter_lines(chunk_size=None)  # None: as they come
    while True:
        try:
            line = next(chunks, None)
        except FAILURES:
            return
        if line is None:
            return
        yield line


def _event(line: bytes) -> EngineEvent | None:
    try:
        raw = json.loads(line)
    except ValueError:
        return None
    return event_of(raw) if isinstance(raw, dict) else None
