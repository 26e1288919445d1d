"""Looks at containers through the Docker Engine API. Changes nothing.

Raw answers only: docker-py's models fetch lazily, and a container must be one moment.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import docker
import docker.errors

from sentinel.adapters.docker_api import READ, Connection, check, url
from sentinel.core.dockerlog import log_text
from sentinel.core.dockerspeak import container_of, summary_of
from sentinel.core.model.container import Container, Summary
from sentinel.core.model.errors import Transient

LOG_TEXT = 1 << 20  # bytes kept of a log's end
LOG_READ = 16 << 20  # bytes read to get there: 1000 lines of the longest Docker stores (16 KiB)


class DockerEyes:
    def __init__(self, host: str, *, read: float = READ) -> None:
        self._docker = Connection(host, read=read)

    def list(self) -> Sequence[Summary]:
        rows = self._docker.get("/containers/json", all="1")
        if not isinstance(rows, list):
            raise Transient("Docker's list of containers is not a list")
        return [summary_of(row) for row in rows if isinstance(row, dict)]

    def inspect(self, container_id: str) -> Container | None:
        try:
            raw = self._docker.inspect(container_id)
        except docker.errors.NotFound:
            return None
        return container_of(raw, manually_stopped=self._manually_stopped(container_id))

    def raw(self, container_id: str) -> Mapping[str, Any] | None:
        """All that Docker says of it, secrets among it."""
        try:
            return self._docker.inspect(container_id)
        except docker.errors.NotFound:
            return None

    def log_tail(self, container_id: str, *, lines: int, since: datetime | None = None) -> str:
        """Empty for a container that is gone."""
        asked = {"stdout": "1", "stderr": "1", "tail": str(lines)}
        if since is not None:
            asked["since"] = f"{since.timestamp():.6f}"
        try:
            raw = self._docker.ask(lambda client: self._read_log(client, container_id, asked))
        except docker.errors.NotFound:
            return ""
        return log_text(raw, max_bytes=LOG_TEXT)

    def close(self) -> None:
        self._docker.close()

    def _manually_stopped(self, container_id: str) -> bool | None:
        """Docker's own record that a person stopped it: in no answer of its API, but in a file
        that only root may read. None is an answer like any other.
        """
        try:
            root = self._docker.root()
            if not root:
                return None
            path = Path(root, "containers", container_id, "config.v2.json")
            record = json.loads(path.read_bytes())
        except (OSError, ValueError, Transient):
            return None
        stopped = record.get("HasBeenManuallyStopped") if isinstance(record, dict) else None
        return stopped if isinstance(stopped, bool) else None

    def _read_log(
        self, client: docker.APIClient, container_id: str, asked: Mapping[str, str]
    ) -> bytes:
        with client.get(
            url(client, f"/containers/{container_id}/logs"),
            params=dict(asked),
            stream=True,
            timeout=self._docker.patience,
        ) as response:
            check(response)
            body = bytearray()
            for chunk in response.iter_content(chunk_size=1 << 16):
                body += chunk
                if len(body) > LOG_READ:
                    break
            return bytes(body)
