"""Makes a container anew through the Docker Engine API.

What is sent is what was said: raw JSON both ways, so that no option is lost that this program
has never heard of. A volume is never removed. A deed whose answer never came is `Ambiguous`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import docker
import docker.errors
import requests

from sentinel.adapters.docker_api import (
    CONNECT,
    Connection,
    is_version_refusal,
    said,
    url,
)
from sentinel.core.dockerspeak import container_of, summary_of
from sentinel.core.model.errors import Permanent, Transient
from sentinel.core.recreate.deeds import (
    Connect,
    Create,
    Deed,
    Remove,
    Rename,
    Seen,
    SetPolicy,
    Start,
    Stop,
)
from sentinel.core.recreate.inspected import TX, Raw, labels_of, part
from sentinel.core.recreate.plan import Plan
from sentinel.core.recreate.port import Described
from sentinel.core.recreate.preflight import Surroundings, bind_sources
from sentinel.core.recreate.spec import Source, Version

PATIENCE = 120.0  # seconds; GPU hooks and large volumes take their time
STOP_MARGIN = 30.0  # beyond the grace, for the engine's own work after SIGKILL

# An engine asked for a container of no image looks at the mounts first, and then refuses.
_NO_IMAGE = "sentinel.invalid/no-such-image:none"
_NO_PATH = "/sentinel.invalid/no-such-path"
_MISSING = "bind source path does not exist: "


class DockerRecreation:
    def __init__(self, host: str) -> None:
        self._docker = Connection(host)

    def describe(self, container_id: str) -> Described:
        container = self.raw(container_id)
        if container is None:
            raise Permanent("the container is gone", container_id=container_id)
        tagged = self._image(str(part(container, "Config").get("Image") or ""))
        source = Source(
            container=container,
            image=self._image(str(container.get("Image") or "")),
            tagged=None if tagged is None else str(tagged.get("Id")),
            others=[raw for row in self._rows() if (raw := self._other(row, container_id))],
            api=self._docker.ask(_version_of),
        )
        return Described(source=source, around=self._around(container))

    def look(self, plan: Plan) -> Sequence[Seen]:
        return [
            _seen(raw)
            for row in self._rows()
            if _concerns(row, plan) and (raw := self.raw(str(row.get("Id")))) is not None
        ]

    def raw(self, container_id: str) -> Raw | None:
        try:
            return self._docker.inspect(container_id)
        except docker.errors.NotFound:
            return None

    def do(self, deed: Deed) -> None:
        asked = _asked(deed)
        try:
            self._docker.act(
                asked.what,
                asked.path,
                method=asked.method,
                params=asked.params,
                body=asked.body,
                patience=asked.patience,
            )
        except docker.errors.APIError as error:
            _refused(asked, error)

    def close(self) -> None:
        self._docker.close()

    def _rows(self) -> Sequence[Raw]:
        rows = self._docker.get("/containers/json", all="1")
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    def _other(self, row: Raw, container_id: str) -> Raw | None:
        return None if row.get("Id") == container_id else self.raw(str(row.get("Id")))

    def _image(self, name: str) -> Raw | None:
        try:
            image = self._docker.get(f"/images/{name}/json") if name else None
        except docker.errors.NotFound:
            return None
        return image if isinstance(image, dict) else None

    def _around(self, container: Raw) -> Surroundings:
        networks = self._docker.get("/networks")
        return Surroundings(
            networks={str(network["Name"]): str(network["Id"]) for network in networks},
            missing=frozenset(self._missing(bind_sources(container))),
        )

    def _missing(self, sources: Sequence[str]) -> Iterator[str]:
        """Which of them are not on the engine's host, where this program may not look itself."""
        left = [*sources, _NO_PATH] if sources else []
        while left:
            missing = self._docker.ask(lambda client: _first_missing(client, left))
            if missing == _NO_PATH:
                return
            if missing not in left:
                raise Transient(f"Docker does not say whether {', '.join(sources)} is there")
            left.remove(missing)
            yield missing


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    what: str
    path: str
    method: str = "POST"
    params: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    patience: float = PATIENCE


def _refused(asked: _Asked, error: docker.errors.APIError) -> None:
    message = f"Docker refused to {asked.what}: {said(error)}"
    status = error.status_code
    is_gone = status == requests.codes.not_found and "No such container" in said(error)
    if is_gone and asked.method == "DELETE":
        return
    may_pass = status in (None, requests.codes.conflict, requests.codes.forbidden)
    if is_gone or may_pass or is_version_refusal(error) or (status is not None and status >= 500):
        raise Transient(message, status=status) from error
    raise Permanent(message, status=status) from error


def _asked(deed: Deed) -> _Asked:
    match deed:
        case Create(name=name, body=body):
            path = "/containers/create"
            return _Asked(what=f"create {name}", path=path, params={"name": name}, body=body)
        case Connect(network=network):
            body = {"Container": deed.container_id, "EndpointConfig": dict(deed.endpoint)}
            path = f"/networks/{network}/connect"
            return _Asked(what=f"connect it to {network}", path=path, body=body)
        case Remove():
            unforced = {"v": "0", "link": "0", "force": "0"}
            path = f"/containers/{deed.container_id}"
            return _Asked(what="remove it", path=path, method="DELETE", params=unforced)
    return _asked_of_one(deed, f"/containers/{deed.container_id}")


def _asked_of_one(deed: Stop | SetPolicy | Rename | Start, path: str) -> _Asked:
    match deed:
        case Stop(grace=grace):
            return _Asked(
                what="stop it",
                path=f"{path}/stop",
                params={"t": str(grace)},
                patience=grace + STOP_MARGIN,
            )
        case SetPolicy(policy=policy):
            body = {"RestartPolicy": dict(policy)}
            return _Asked(what="update its restart policy", path=f"{path}/update", body=body)
        case Rename(name=name):
            return _Asked(what=f"rename it {name}", path=f"{path}/rename", params={"name": name})
        case Start():
            return _Asked(what="start it", path=f"{path}/start")


def _concerns(row: Raw, plan: Plan) -> bool:
    summary = summary_of(row)
    is_ours = summary.id == plan.old_id or summary.labels.get(TX) == plan.tx
    return is_ours or summary.name == plan.name


def _seen(raw: Raw) -> Seen:
    container = container_of(raw)
    return Seen(
        id=container.id,
        name=container.name,
        tx=str(labels_of(raw).get(TX) or ""),
        status=container.status,
        started_at=container.started_at,
        policy=container.restart_policy,
        networks=frozenset(part(raw, "NetworkSettings", "Networks")),
    )


def _version_of(client: docker.APIClient) -> Version:
    major, minor = str(client.api_version).split(".")[:2]
    return int(major), int(minor)


def _first_missing(client: docker.APIClient, sources: Sequence[str]) -> str:
    mounts = [
        {"Type": "bind", "Source": source, "Target": f"/{at}", "ReadOnly": True}
        for at, source in enumerate(sources)
    ]
    response = client.post(
        url(client, "/containers/create"),
        json={"Image": _NO_IMAGE, "HostConfig": {"Mounts": mounts}},
        timeout=(CONNECT, PATIENCE),
    )
    return str(response.json().get("message") or "").partition(_MISSING)[2].strip()
