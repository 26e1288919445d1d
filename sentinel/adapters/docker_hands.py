"""Stops and starts containers through the Docker Engine API.

Every act is compare-and-act: look, and touch only the very run that was seen. Never `kill`:
any signal sent that way, even a harmless one, switches `unless-stopped` off until the next
start. An act whose answer never came is `Ambiguous`, however likely it looks to have failed.
"""

from collections.abc import Mapping
from datetime import datetime

import docker.errors
import requests

from sentinel.adapters.docker_api import Connection, is_version_refusal, said
from sentinel.core.dockerspeak import container_of
from sentinel.core.model.container import Container, Status
from sentinel.core.model.errors import Permanent, Transient

START_PATIENCE = 120.0  # seconds; GPU hooks and large volumes take their time
STOP_MARGIN = 30.0  # beyond the grace, for the engine's own work after SIGKILL


class DockerHands:
    def __init__(self, host: str, *, margin: float = STOP_MARGIN) -> None:
        self._docker = Connection(host)
        self._margin = margin

    def stop(self, container_id: str, *, if_started_at: datetime, grace: int) -> None:
        container = self._look(container_id)
        if container.started_at != if_started_at:
            raise _another(container, if_started_at)
        if container.is_up or container.status is Status.RESTARTING:
            # `t` always: without it the engine takes 10 s or the image's own word for it.
            self._post(container_id, "stop", {"t": str(grace)}, grace + self._margin)

    def start(self, container_id: str, *, if_started_at: datetime) -> None:
        container = self._look(container_id)
        if container.status in (Status.REMOVING, Status.DEAD):
            raise Permanent(f"container {container.name} is {container.status}, beyond starting")
        if container.is_up:
            return
        if container.started_at != if_started_at:
            raise _another(container, if_started_at)
        self._post(container_id, "start", {}, START_PATIENCE)

    def close(self) -> None:
        self._docker.close()

    def _look(self, container_id: str) -> Container:
        try:
            raw = self._docker.inspect(container_id)
        except docker.errors.NotFound:
            raise Permanent("the container is gone", container_id=container_id) from None
        if raw.get("Id") != container_id:  # Docker also takes a name, or the beginning of an id
            raise Permanent("not the id of a container", container_id=container_id)
        return container_of(raw)

    def _post(
        self, container_id: str, act: str, params: Mapping[str, str], patience: float
    ) -> None:
        path = f"/containers/{container_id}/{act}"
        try:
            self._docker.act(act, path, params=params, patience=patience)
        except docker.errors.APIError as error:
            raise _refusal(act, error) from error


def _refusal(act: str, error: docker.errors.APIError) -> Transient | Permanent:
    message = f"Docker refused to {act} it: {said(error)}"
    status = error.status_code
    may_pass = status in (None, requests.codes.conflict) or is_version_refusal(error)
    if may_pass or (status is not None and status >= 500):
        return Transient(message, status=status)
    return Permanent(message, status=status)


def _another(container: Container, seen: datetime) -> Permanent:
    return Permanent(
        f"container {container.name} is no longer the one seen",
        status=str(container.status),
        started_at=container.started_at,
        seen_started_at=seen,
    )
