"""Containers made anew in the fake engine, as unforgiving as the real one.

A name is taken once, a port is held by whoever runs, and what runs is neither removed nor
updated.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sentinel.core.model.container import Container, PublishedPort, Status
from sentinel.core.model.errors import Permanent, Transient
from sentinel.core.recreate import deeds
from sentinel.core.recreate.arguments import Found, max_num_seqs_of
from sentinel.core.recreate.inspected import TX, Raw, command_line_of
from sentinel.core.recreate.plan import Plan
from sentinel.core.recreate.port import Described
from sentinel.core.recreate.preflight import Surroundings
from sentinel.core.recreate.spec import Source
from tests.fakes import FakeContainer, FakeDocker

_SAYS = (
    "(APIServer pid=1) INFO 11-30 20:47:44 [utils.py:286] non-default args: {'max_num_seqs': %s}"
)


class FakeRecreation:
    def __init__(self, docker: FakeDocker) -> None:
        self._docker = docker

    def describe(self, container_id: str) -> Described:
        raw = self.raw(container_id)
        if raw is None:
            raise Permanent("the container is gone")
        others = [_raw(box) for box in self._docker.boxes.values() if box.seen.id != container_id]
        image = {"Id": raw["Image"], "Config": {}}
        source = Source(container=raw, image=image, tagged=raw["Image"], others=others, api=(1, 41))
        return Described(source=source, around=Surroundings(networks={"bridge": "n1"}))

    def look(self, plan: Plan) -> Sequence[deeds.Seen]:
        self._docker._answer()
        return [
            deeds.Seen(
                id=box.seen.id,
                name=box.seen.name,
                tx=box.seen.labels.get(TX, ""),
                status=box.seen.status,
                started_at=box.seen.started_at,
                policy=box.seen.restart_policy,
                networks=frozenset({"bridge"}),
            )
            for box in self._docker.boxes.values()
            if box.seen.id == plan.old_id
            or box.seen.labels.get(TX) == plan.tx
            or box.seen.name == plan.name
        ]

    def raw(self, container_id: str) -> Raw | None:
        self._docker._answer()
        found = (box for box in self._docker.boxes.values() if box.seen.id == container_id)
        box = next(found, None)
        return None if box is None else _raw(box)

    def do(self, deed: deeds.Deed) -> None:
        self._docker._answer()
        if self._docker.refuses is not None:
            raise self._docker.refuses
        self._docker.clock.advance(milliseconds=10)  # nothing is done in no time
        if isinstance(deed, deeds.Create):
            self._create(deed)
            return
        box = self._own(deed.container_id)
        match deed:
            case deeds.Stop():
                if box.seen.status in (Status.RUNNING, Status.RESTARTING):
                    self._docker.done.append(f"stop {box.seen.name}")
                    self._docker._say("kill", box, signal="15")
                    self._docker._end(box, 0, manually=True)
                    self._docker._say("die", box, exit_code=0)
                    self._docker._say("stop", box)
            case deeds.SetPolicy(policy=policy):
                assert box.seen.status is not Status.RUNNING, "an update takes the GPUs away"
                box.seen = replace(box.seen, restart_policy=str(policy["Name"]))
            case deeds.Rename(name=name):
                self._rename(box, name)
            case deeds.Start():
                self._start(box)
            case deeds.Remove():
                if box.seen.status is Status.RUNNING:
                    raise Transient("cannot remove a running container")
                self._docker.done.append(f"remove {box.seen.name}")
                self._docker._say("destroy", box)
                del self._docker.boxes[box.seen.name]
            case deeds.Connect():
                raise AssertionError("there is one network")

    def _create(self, deed: deeds.Create) -> None:
        boxes = self._docker.boxes
        if deed.name in boxes:
            raise Transient(f"the name {deed.name} is in use")
        old = next(b for b in boxes.values() if deed.name.startswith(f"{b.seen.name}."))
        body: dict[str, Any] = dict(deed.body)
        made = 1 + max(int(box.seen.id[:8], 16) for box in boxes.values())
        argv = (*(body["Entrypoint"] or ()), *(body["Cmd"] or ()))
        seen = Container(
            id=f"{made:08x}{0:056x}",
            name=deed.name,
            image=old.seen.image,
            image_id=old.seen.image_id,
            argv=argv,
            labels=dict(body["Labels"]),
            status=Status.CREATED,
            created_at=self._docker.clock.now(),
            restart_policy=str(body["HostConfig"]["RestartPolicy"]["Name"]),
            ports=old.seen.ports,
            manually_stopped=False,
        )
        boxes[deed.name] = replace(old, seen=seen, log="", health=200)
        self._docker.done.append(f"create {deed.name}")

    def _start(self, box: FakeContainer) -> None:
        if box.seen.status is Status.RUNNING:
            return
        if box.chosen_port:
            box.seen = replace(box.seen, ports=tuple(_next(port) for port in box.seen.ports))
        ports = {port.host_port for port in box.seen.ports}
        for other in self._docker.boxes.values():
            running = other is not box and other.seen.status is Status.RUNNING
            if running and ports & {port.host_port for port in other.seen.ports}:
                raise Transient("port is already allocated")
        clock = self._docker.clock
        self._docker.done.append(f"start {box.seen.name}")
        limit = _limit(box)
        box.seen = replace(
            box.seen,
            status=Status.RUNNING,
            pid=4444,
            exit_code=0,
            started_at=clock.now(),
            manually_stopped=False,
        )
        box.log = _SAYS % limit if limit else ""
        box.started_tick = clock.monotonic()
        self._docker._say("start", box)
        if limit in box.dies_with:
            self._docker._end(box, 1, manually=False)
            self._docker._say("die", box, exit_code=1)

    def _rename(self, box: FakeContainer, name: str) -> None:
        boxes = self._docker.boxes
        if box.seen.name == name:
            return
        if name in boxes:
            raise Transient(f"the name {name} is in use")
        del boxes[box.seen.name]
        box.seen = replace(box.seen, name=name)
        boxes[name] = box
        self._docker._say("rename", box)

    def _own(self, container_id: str) -> FakeContainer:
        for box in self._docker.boxes.values():
            if box.seen.id == container_id:
                return box
        raise Permanent("No such container")


def _limit(box: FakeContainer) -> int | None:
    found = max_num_seqs_of(command_line_of(_raw(box)))
    return found.value if isinstance(found, Found) else None


def _next(port: PublishedPort) -> PublishedPort:
    return replace(port, host_port=port.host_port + 1000)


def _bindings(box: FakeContainer) -> dict[str, Any]:
    return {
        f"{port.container_port}/tcp": [
            {"HostIp": "", "HostPort": "" if box.chosen_port else str(port.host_port)}
        ]
        for port in box.seen.ports
    }


def _raw(box: FakeContainer) -> dict[str, Any]:
    seen = box.seen
    started = seen.started_at.isoformat() if seen.started_at else "0001-01-01T00:00:00Z"
    return {
        "Id": seen.id,
        "Name": f"/{seen.name}",
        "Image": seen.image_id,
        "Path": seen.argv[0],
        "Args": list(seen.argv[1:]),
        "State": {
            "Status": str(seen.status),
            "Running": seen.status is Status.RUNNING,
            "StartedAt": started,
        },
        "Config": {
            "Image": seen.image,
            "Cmd": list(seen.argv),
            "Entrypoint": None,
            "Env": ["PATH=/bin", "HF_TOKEN=s3cr3t"],
            "Labels": dict(seen.labels),
            "Hostname": seen.id[:12],
        },
        "HostConfig": {
            "RestartPolicy": {"Name": seen.restart_policy, "MaximumRetryCount": 0},
            "NetworkMode": "bridge",
            "AutoRemove": seen.auto_remove,
            "PortBindings": _bindings(box),
        },
        "NetworkSettings": {"Networks": {"bridge": {"NetworkID": "n1"}}},
        "Mounts": [],
    }
