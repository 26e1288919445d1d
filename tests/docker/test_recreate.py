"""A container is made anew on a real engine: the same but for one argument, whatever happens."""

import contextlib
import io
import itertools
import os
import tarfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from sentinel.adapters.docker_recreate import DockerRecreation
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient
from sentinel.core.recreate import deeds
from sentinel.core.recreate.arguments import Edited, restored, with_max_num_seqs
from sentinel.core.recreate.differences import differences
from sentinel.core.recreate.inspected import ORIGINAL, TX, command_line_of
from sentinel.core.recreate.plan import Aim, Plan, facts_of, plan_for, plan_of
from sentinel.core.recreate.preflight import preflight
from sentinel.core.recreate.spec import Source
from sentinel.core.recreate.transaction import next_step

pytestmark = pytest.mark.docker

HOST = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
HOST_DIRECTORIES = [f"{d}:{d}:ro" for d in ("/usr", "/lib", "/lib64", "/bin") if Path(d).is_dir()]
IMAGE = f"sentinel-recreate-test:{os.getpid()}"
SERVE = ["/vllm/bin/vllm", "serve"]
LIMITED = ["m", "--max-num-seqs", "256"]
DYING = 13  # the limit with which the program ends at once
PROGRAM = f"""#!/bin/sh
case "$*" in *{DYING}) echo "out of memory" >&2; exit 1;; esac
exec sleep 600
"""
SUBNET = f"172.30.{os.getpid() % 250}.0/24"
STATIC = SUBNET.replace("0/24", "9")


class KilledError(Exception):
    """The daemon is no more; the next one knows what is in the journal."""


@dataclass
class Engine:
    """A real engine, and what was made on it, to be removed in the end."""

    vllm: Path
    api: docker.APIClient
    hands: DockerRecreation
    run: str = field(default_factory=lambda: f"recreate-{os.getpid()}")
    networks: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _volumes: set[str] = field(default_factory=set)

    def image(self, name: str, *changes: str) -> str:
        empty = io.BytesIO()
        tarfile.open(fileobj=empty, mode="w").close()
        repository, _, tag = name.partition(":")
        self.api.import_image_from_data(
            empty.getvalue(), repository=repository, tag=tag, changes=list(changes)
        )
        self.images.append(name)
        return name

    def network(self, subnet: str | None = None) -> str:
        pools = [docker.types.IPAMPool(subnet=subnet)] if subnet else []
        ipam = docker.types.IPAMConfig(pool_configs=pools)
        name = f"{self.run}-net{next(self._numbers)}"
        self.networks.append(self.api.create_network(name, ipam=ipam)["Id"])
        return name

    def create(self, host: dict[str, Any] | None = None, *, name: str = "", **config: Any) -> str:
        binds = [
            *HOST_DIRECTORIES,
            f"{self.vllm}:/vllm/bin/vllm:ro",
            *(host or {}).pop("Binds", []),
        ]
        body = {
            "Image": IMAGE,
            "Cmd": [*SERVE, *LIMITED],
            "HostConfig": {"Binds": binds, **(host or {})},
            **config,
        }
        name = f"{self.run}-{name or next(self._numbers)}"
        made = self.api.create_container_from_config(body, name)  # type: ignore[no-untyped-call]
        return str(made["Id"])

    def start(self, *arguments: Any, **options: Any) -> str:
        container_id = self.create(*arguments, **options)
        self.api.start(container_id)
        return container_id

    def raw(self, container_id: str) -> Any:
        return self.api.inspect_container(container_id)

    def source(self, container_id: str) -> Source:
        return self.hands.describe(container_id).source

    def edited(self, container_id: str, limit: int = 64) -> Edited:
        edited = with_max_num_seqs(command_line_of(self.raw(container_id)), limit)
        assert isinstance(edited, Edited)
        return edited

    def plan(self, container_id: str, limit: int = 64) -> Plan:
        number = next(self._numbers)
        edited = self.edited(container_id, limit)
        return plan_for(self.source(container_id), edited, tx=f"t{os.getpid()}-{number}", grace=0)

    def recreate(self, container_id: str, limit: int = 64) -> str:
        """All of it, without a hitch; the new container's id."""
        ended = Driver(self, self.plan(container_id, limit)).finish()
        assert isinstance(ended, deeds.Finished), ended
        return ended.container_id

    def named(self, name: str) -> list[Any]:
        """All containers of that name or of a swap name of it."""
        rows = self.api.containers(all=True)
        names = [(row, row["Names"][0].lstrip("/")) for row in rows if row["Names"]]
        return [row for row, own in names if own == name or own.startswith(f"{name}.s")]

    def volumes(self) -> set[str]:
        """Those of our own containers, and there: others work on the engine at the same time."""
        there = {volume["Name"] for volume in self.api.volumes()["Volumes"] or []}
        ours = {
            mount["Name"]
            for row in self.api.containers(all=True)
            if any(name.startswith(f"/{self.run}-") for name in row["Names"])
            for mount in row["Mounts"]
            if mount["Type"] == "volume"
        }
        return ours & there

    def clear(self) -> None:
        """Also the volumes: those given by name, as to a new container, outlive its removal."""
        for row in self.api.containers(all=True):
            if any(name.startswith(f"/{self.run}-") for name in row["Names"]):
                with contextlib.suppress(docker.errors.NotFound):
                    self.api.remove_container(row["Id"], force=True, v=True)
                self._volumes |= {m["Name"] for m in row["Mounts"] if m["Type"] == "volume"}
        for volume in self._volumes:
            with contextlib.suppress(docker.errors.NotFound):
                self.api.remove_volume(volume)
        self._volumes.clear()

    def close(self) -> None:
        self.clear()
        for network in self.networks:
            self.api.remove_network(network)
        for image in self.images:
            with contextlib.suppress(docker.errors.NotFound):
                self.api.remove_image(image, force=True)
        self.hands.close()
        self.api.close()


@dataclass
class Driver:
    """Carries a plan out as a daemon would that may be killed after each deed."""

    engine: Engine
    plan: Plan
    killed_after: int | None = None
    done: list[deeds.Deed] = field(default_factory=list)

    def finish(self) -> deeds.Next:
        for _ in range(40):
            step = self.next()
            if isinstance(step, deeds.Finished | deeds.Stranded):
                return step
            self.take(step)
        raise AssertionError(f"does not end: {self.plan.aim} {self.done}")

    def next(self) -> deeds.Next:
        return next_step(self.plan, self.engine.hands.look(self.plan))

    def take(self, step: deeds.Next) -> None:
        match step:
            case deeds.Check(container_id=container_id):
                assert not self.differences(container_id)
                self._write(self.plan.found_same(container_id))
            case deeds.Prove(container_id=container_id):
                self._write(self.plan.towards(self._proved(container_id)))
            case deeds.Abandon() | deeds.Finished() | deeds.Stranded():
                self._write(self.plan.towards(Aim.ROLL_BACK))
            case _:
                self._do(step)

    def differences(self, container_id: str) -> list[str]:
        old, new = (self.engine.raw(one) for one in (self.plan.old_id, container_id))
        return differences(old, new, expected=self.plan.command_line)

    def _proved(self, container_id: str) -> Aim:
        ends = time.monotonic() + (2 if f"{DYING}" in str(self.plan.recipe.body["Cmd"]) else 0.05)
        while time.monotonic() < ends:
            raw = self.engine.raw(container_id)
            if raw["RestartCount"] or not raw["State"]["Running"]:
                return Aim.ROLL_BACK
            time.sleep(0.02)
        return Aim.COMMIT

    def _do(self, deed: deeds.Deed) -> None:
        try:
            self.engine.hands.do(deed)
        except Permanent:
            self._write(self.plan.towards(Aim.ROLL_BACK))
        except SentinelError:
            time.sleep(0.05)
        self.done.append(deed)
        if len(self.done) == self.killed_after:
            raise KilledError

    def _write(self, plan: Plan) -> None:
        self.plan = plan_of(facts_of(plan))


@contextlib.contextmanager
def engine_at(host: str, folder: Path) -> Iterator[Engine]:
    folder.parent.chmod(0o755)
    vllm = folder / "vllm"
    vllm.write_text(PROGRAM)
    vllm.chmod(0o755)
    api = docker.APIClient(host, version="auto")
    engine = Engine(vllm, api, DockerRecreation(host))
    engine.image(IMAGE)
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with engine_at(HOST, tmp_path_factory.mktemp("program")) as engine:
        yield engine


@pytest.fixture(autouse=True)
def no_containers_left(engine: Engine) -> Iterator[None]:
    yield
    engine.clear()


def same_but_for(engine: Engine, old: Any, new_id: str, *, limit: int = 64) -> Any:
    """The new one's description, after it was held against the old one's."""
    new = engine.raw(new_id)
    edited = with_max_num_seqs(command_line_of(old), limit)
    assert isinstance(edited, Edited)
    assert differences(old, new, expected=edited.command_line) == []
    assert new["State"]["Running"]
    assert new["Name"] == old["Name"]
    return new


class TestTheCommandLine:
    def test_only_the_argument_differs_behind_an_images_entrypoint(self, engine: Engine) -> None:
        image = engine.image(
            f"{IMAGE}-entry",
            'ENTRYPOINT ["/vllm/bin/vllm","serve"]',
            'CMD ["--of-the-image"]',
            "ENV FROM_IMAGE=1",
            "LABEL of=image",
            "WORKDIR /usr",
        )
        old = engine.raw(engine.start(Image=image, Cmd=LIMITED))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["Args"] == ["serve", "m", "--max-num-seqs", "64"]
        assert new["Config"]["Cmd"] == ["m", "--max-num-seqs", "64"]
        assert new["Config"]["Image"] == image

    def test_an_entrypoint_of_its_own_keeps_the_images_command_away(self, engine: Engine) -> None:
        image = engine.image(f"{IMAGE}-own", 'ENTRYPOINT ["/x"]', 'CMD ["--of-the-image"]')
        entrypoint = [*SERVE, *LIMITED]
        old = engine.raw(engine.start(Image=image, Entrypoint=entrypoint, Cmd=None))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["Args"] == ["serve", "m", "--max-num-seqs", "64"]

    def test_an_entrypoint_switched_off_stays_off(self, engine: Engine) -> None:
        image = engine.image(f"{IMAGE}-off", 'ENTRYPOINT ["/no/such/program"]')
        old = engine.raw(engine.start(Image=image, Entrypoint=[""]))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert (new["Path"], new["Args"][0]) == ("/vllm/bin/vllm", "serve")

    def test_a_shell_line_is_changed_in_one_word(self, engine: Engine) -> None:
        line = "cd / && exec /vllm/bin/vllm serve 'a  b' --max-num-seqs=256 2>&1"
        old = engine.raw(engine.start(Cmd=["/bin/sh", "-c", line]))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["Args"] == ["-c", line.replace("256", "64")]

    def test_what_was_added_can_be_taken_away_again(self, engine: Engine) -> None:
        old = engine.raw(engine.start(Cmd=[*SERVE, "m"]))
        lowered = engine.raw(engine.recreate(old["Id"]))
        original = lowered["Config"]["Labels"][ORIGINAL]

        edited = restored(command_line_of(lowered), original)
        assert isinstance(edited, Edited)
        plan = plan_for(engine.source(lowered["Id"]), edited, tx="back", grace=0)
        ended = Driver(engine, plan).finish()

        assert isinstance(ended, deeds.Finished)
        new = engine.raw(ended.container_id)
        assert (lowered["Args"][-1], new["Args"]) == ("--max-num-seqs=64", old["Args"])
        assert ORIGINAL not in new["Config"]["Labels"]

    def test_a_tag_that_moved_does_not_bring_another_image(self, engine: Engine) -> None:
        image = engine.image(f"{IMAGE}-moved", "ENV IS=old")
        old = engine.raw(engine.start(Image=image))
        engine.image(image, "ENV IS=new")

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["Image"] == old["Image"]
        assert "IS=old" in new["Config"]["Env"]


class TestNames:
    def test_a_host_name_of_nobodys_is_the_new_short_id(self, engine: Engine) -> None:
        old = engine.raw(engine.start())

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["Config"]["Hostname"] == new["Id"][:12]

    def test_a_host_name_that_was_given_survives(self, engine: Engine) -> None:
        old = engine.raw(engine.start(Hostname="gpu7", Domainname="ex.org"))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert (new["Config"]["Hostname"], new["Config"]["Domainname"]) == ("gpu7", "ex.org")

    @pytest.mark.parametrize(
        ("host", "config"),
        [
            ({"UTSMode": "host"}, {}),
            ({"NetworkMode": "host"}, {}),
            ({"NetworkMode": "host"}, {"Hostname": "fake"}),
            ({"NetworkMode": "none"}, {}),
        ],
        ids=["the host's names", "the host's network", "and a name of its own", "no network"],
    )
    def test_it_lives_where_it_lived(
        self, engine: Engine, host: dict[str, Any], config: dict[str, Any]
    ) -> None:
        old = engine.raw(engine.start(dict(host), **config))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["Config"]["Hostname"] == config.get("Hostname", new["Config"]["Hostname"])


class TestNetworks:
    def test_networks_addresses_and_ports_stay_though_the_old_one_has_them(
        self, engine: Engine
    ) -> None:
        first, second = engine.network(SUBNET), engine.network()
        old_id = engine.create(
            {
                "NetworkMode": first,
                "PortBindings": {"9000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "39481"}]},
            },
            ExposedPorts={"9000/tcp": {}},
            NetworkingConfig={
                "EndpointsConfig": {
                    first: {"IPAMConfig": {"IPv4Address": STATIC}, "Aliases": ["llm"]}
                }
            },
        )
        engine.api.connect_container_to_network(old_id, second, aliases=["other"])
        engine.api.start(old_id)
        old = engine.raw(old_id)

        new = same_but_for(engine, old, engine.recreate(old_id))

        networks = new["NetworkSettings"]["Networks"]
        assert set(networks) == {first, second}
        assert networks[first]["IPAddress"] == STATIC
        assert set(networks[first]["Aliases"]) - {new["Id"][:12]} == {"llm"}
        assert new["NetworkSettings"]["Ports"] == old["NetworkSettings"]["Ports"]

    def test_a_network_named_by_its_id_is_the_same_network(self, engine: Engine) -> None:
        network = engine.network()
        network_id = engine.api.inspect_network(network)["Id"]
        old = engine.raw(
            engine.start(
                {"NetworkMode": network_id},
                NetworkingConfig={"EndpointsConfig": {network_id: {"Aliases": ["llm"]}}},
            )
        )

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert "llm" in next(iter(new["NetworkSettings"]["Networks"].values()))["Aliases"]

    def test_on_the_default_network_and_another(self, engine: Engine) -> None:
        network = engine.network()
        old_id = engine.create()
        engine.api.connect_container_to_network(old_id, network)
        engine.api.start(old_id)

        new = same_but_for(engine, engine.raw(old_id), engine.recreate(old_id))

        assert set(new["NetworkSettings"]["Networks"]) == {"bridge", network}

    def test_a_mac_address_that_was_given_survives(self, engine: Engine) -> None:
        old = engine.raw(engine.start(MacAddress="02:42:ac:99:00:07"))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["NetworkSettings"]["Networks"]["bridge"]["MacAddress"] == "02:42:ac:99:00:07"

    def test_an_ephemeral_port_stays_ephemeral(self, engine: Engine) -> None:
        old = engine.raw(
            engine.start(
                {"PortBindings": {"9000/tcp": [{"HostIp": "127.0.0.1", "HostPort": ""}]}},
                ExposedPorts={"9000/tcp": {}},
            )
        )

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert new["NetworkSettings"]["Ports"]["9000/tcp"]

    def test_the_network_of_another_container_is_joined_again(self, engine: Engine) -> None:
        other = engine.start()
        old = engine.raw(engine.start({"NetworkMode": f"container:{other}"}))
        assert preflight(*self.described(engine, old["Id"])) == []

        same_but_for(engine, old, engine.recreate(old["Id"]))

    @staticmethod
    def described(engine: Engine, container_id: str) -> Any:
        described = engine.hands.describe(container_id)
        return described.source, described.around

    def test_links_are_made_again(self, engine: Engine) -> None:
        engine.start(name="linked")
        linked = f"{engine.run}-linked"
        old = engine.raw(engine.start({"Links": [f"{linked}:x", f"{linked}:y"]}))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert sorted(new["HostConfig"]["Links"]) == sorted(old["HostConfig"]["Links"])


class TestVolumes:
    def test_anonymous_volumes_go_over_with_what_is_in_them(self, engine: Engine) -> None:
        image = engine.image(f"{IMAGE}-volume", "VOLUME /cache")
        old_id = engine.start(
            {"Tmpfs": {"/t": ""}}, Image=image, Volumes={"/data": {}, "/emptied": {}}
        )
        write = "touch /cache/a /data/b"
        engine.api.exec_start(engine.api.exec_create(old_id, ["/bin/sh", "-c", write])["Id"])
        old, before = engine.raw(old_id), engine.volumes()

        new = same_but_for(engine, old, engine.recreate(old_id))

        read = engine.api.exec_create(new["Id"], ["/bin/sh", "-c", "ls /cache /data"])["Id"]
        assert b"a" in (seen := engine.api.exec_start(read))
        assert b"b" in seen
        assert engine.volumes() == before

    def test_a_tmpfs_over_an_images_volume_stays_one(self, engine: Engine) -> None:
        image = engine.image(f"{IMAGE}-tmpfs", "VOLUME /cache")
        old = engine.raw(engine.start({"Tmpfs": {"/cache": "size=1m"}}, Image=image))
        before = engine.volumes()

        same_but_for(engine, old, engine.recreate(old["Id"]))

        assert engine.volumes() == before

    def test_volumes_of_another_container_stay_its(self, engine: Engine) -> None:
        lender = engine.create(Volumes={"/lent": {}})
        old = engine.raw(engine.start({"VolumesFrom": [lender]}, Volumes={"/own": {}}))

        new = same_but_for(engine, old, engine.recreate(old["Id"]))

        assert [mount["Target"] for mount in new["HostConfig"]["Mounts"]] == ["/own"]

    def test_nothing_grows_over_three_recreations(self, engine: Engine) -> None:
        network = engine.network()
        old = engine.raw(
            engine.start({"NetworkMode": network}, Volumes={"/data": {}}, Labels={TX: "ancient"})
        )

        container_id = old["Id"]
        for limit in (128, 64, 32):
            container_id = engine.recreate(container_id, limit)
        new = same_but_for(engine, old, container_id, limit=32)

        assert len(new["HostConfig"]["Mounts"]) == 1
        aliases = new["NetworkSettings"]["Networks"][network]["Aliases"] or []
        assert set(aliases) <= {new["Id"][:12]}
        labels = new["Config"]["Labels"]
        assert labels[ORIGINAL] == "256"
        assert labels[TX].startswith("t")
        assert len(labels) == 2


class TestRefused:
    def guards(self, engine: Engine, container_id: str) -> list[tuple[str, str]]:
        described = engine.hands.describe(container_id)
        return [(r.guard, r.because) for r in preflight(described.source, described.around)]

    def test_what_may_be_recreated_is_not_refused(self, engine: Engine) -> None:
        assert self.guards(engine, engine.create()) == []

    @pytest.mark.parametrize(
        ("host", "labels", "guard"),
        [
            ({"AutoRemove": True}, {}, "cannot_recreate"),
            ({}, {"com.docker.swarm.task.id": "x"}, "foreign_orchestrator"),
            ({}, {"io.kubernetes.pod.name": "x"}, "foreign_orchestrator"),
        ],
        ids=["--rm", "swarm", "kubernetes"],
    )
    def test_what_is_not_ours_to_replace(
        self, engine: Engine, host: dict[str, Any], labels: dict[str, str], guard: str
    ) -> None:
        held = self.guards(engine, engine.create(dict(host), Labels=labels))

        assert [name for name, _ in held] == [guard]

    @pytest.mark.parametrize("mode", ["NetworkMode", "IpcMode", "PidMode", "VolumesFrom", "Links"])
    def test_what_others_live_in(self, engine: Engine, mode: str) -> None:
        host: dict[str, Any] = {"IpcMode": "shareable"} if mode == "IpcMode" else {}
        container_id = engine.create(host)
        name = engine.raw(container_id)["Name"].lstrip("/")
        joined: dict[str, Any] = {
            "VolumesFrom": [f"{container_id}:ro"],
            "Links": [f"{name}:x"],
        }
        engine.create({mode: joined.get(mode, f"container:{container_id}")})

        assert [guard for guard, _ in self.guards(engine, container_id)] == ["others_depend"]

    def test_a_bind_source_that_is_gone_and_is_not_made(
        self, engine: Engine, tmp_path: Path
    ) -> None:
        source = tmp_path / "cache"
        source.mkdir()
        container_id = engine.create({"Binds": [f"{source}:/cache"]})
        source.rmdir()

        ((guard, because),) = self.guards(engine, container_id)

        assert guard == "cannot_recreate"
        assert str(source) in because
        assert not source.exists()

    def test_an_image_that_is_gone_though_the_container_stands(self, engine: Engine) -> None:
        image = engine.image(f"{IMAGE}-gone", "ENV GOING=gone")
        container_id = engine.create(Image=image)
        engine.api.remove_image(image, force=True)
        gone = engine.source(container_id)

        if gone.image is not None:  # this engine keeps what a container still has
            pytest.skip("the engine keeps the image")
        assert [guard for guard, _ in self.guards(engine, container_id)] == ["cannot_recreate"]


class TestWhenItGoesWrong:
    @pytest.mark.parametrize("policy", ["no", "unless-stopped"])
    def test_a_program_that_ends_at_once_brings_the_old_one_back(
        self, engine: Engine, policy: str
    ) -> None:
        old_id = engine.start({"RestartPolicy": {"Name": policy}})
        driver = Driver(engine, engine.plan(old_id, DYING))

        assert driver.finish() == deeds.Finished(container_id=old_id)

        old = engine.raw(old_id)
        assert old["State"]["Running"]
        assert old["HostConfig"]["RestartPolicy"]["Name"] == policy
        assert len(engine.named(driver.plan.name)) == 1

    def test_a_name_that_is_taken_in_the_swap(self, engine: Engine) -> None:
        old_id = engine.start()
        driver = Driver(engine, engine.plan(old_id))
        while not any(isinstance(deed, deeds.Rename) for deed in driver.done):
            driver.take(driver.next())
        name = driver.plan.name
        stranger = engine.create(name=name.removeprefix(f"{engine.run}-"))

        ended = driver.finish()

        assert isinstance(ended, deeds.Stranded)
        assert {row["Id"] for row in engine.named(name)} == {old_id, stranger}

    def test_to_do_it_twice_is_to_do_it_once(self, engine: Engine) -> None:
        old_id = engine.start()
        for deed in (
            deeds.Stop(container_id=old_id, grace=0),
            deeds.SetPolicy(container_id=old_id, policy={"Name": "always"}),
            deeds.Start(container_id=old_id),
            deeds.Stop(container_id=old_id, grace=0),
            deeds.Remove(container_id=old_id),
        ):
            engine.hands.do(deed)
            engine.hands.do(deed)

        assert engine.hands.raw(old_id) is None


class TestRefusals:
    """What Docker says no to, in our three kinds."""

    def test_a_name_that_is_taken_may_be_free_later(self, engine: Engine) -> None:
        first, second = engine.create(), engine.create()
        name = engine.raw(first)["Name"].lstrip("/")

        with pytest.raises(Transient, match="in use"):
            engine.hands.do(deeds.Rename(container_id=second, name=name))

    def test_an_image_that_is_not_there_never_will_be(self, engine: Engine) -> None:
        with pytest.raises(Permanent, match="No such image"):
            engine.hands.do(deeds.Create(name=f"{engine.run}-x", body={"Image": "no/such:image"}))

    def test_a_network_that_is_gone_is_not_a_container_that_is(self, engine: Engine) -> None:
        container_id = engine.create({"NetworkMode": "no-such-network"})

        with pytest.raises(Permanent, match="no-such-network"):
            engine.hands.do(deeds.Start(container_id=container_id))

    def test_one_that_runs_is_not_removed(self, engine: Engine) -> None:
        container_id = engine.start()

        with pytest.raises(Transient):
            engine.hands.do(deeds.Remove(container_id=container_id))

        assert engine.raw(container_id)["State"]["Running"]

    def test_no_engine(self, engine: Engine, tmp_path: Path) -> None:
        hands = DockerRecreation(f"unix://{tmp_path}/none.sock")
        plan = engine.plan(engine.create())

        with pytest.raises(Transient):
            hands.look(plan)
        with pytest.raises(Ambiguous):
            hands.do(deeds.Start(container_id=plan.old_id))


@pytest.fixture(scope="module")
def blue(engine: Engine) -> str:
    return engine.network()


@pytest.mark.parametrize(
    ("limit", "after"),
    [*((64, after) for after in range(1, 10)), *((DYING, after) for after in range(7, 13))],
)
def test_a_kill_after_any_deed_leaves_one_container_running(
    engine: Engine, blue: str, limit: int, after: int
) -> None:
    old_id = engine.create({"RestartPolicy": {"Name": "always"}}, Volumes={"/data": {}})
    engine.api.connect_container_to_network(old_id, blue, aliases=["llm"])
    engine.api.start(old_id)
    old, before = engine.raw(old_id), engine.volumes()
    first = Driver(engine, engine.plan(old_id, limit), killed_after=after)
    with contextlib.suppress(KilledError):
        first.finish()

    ended = Driver(engine, plan_of(facts_of(first.plan))).finish()

    assert isinstance(ended, deeds.Finished)
    (row,) = engine.named(first.plan.name)
    assert row["Id"] == ended.container_id
    assert engine.volumes() == before
    is_back = limit == DYING
    same_but_for(engine, old, ended.container_id, limit=256 if is_back else limit)
    assert (ended.container_id == old_id) is is_back


def pairs(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.from_regex(r"[A-Z]{1,6}", fullmatch=True), values, max_size=3)


TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
SECONDS = 1_000_000_000
HOST_CONFIGS: dict[str, st.SearchStrategy[Any]] = {
    "RestartPolicy": st.sampled_from(
        [{"Name": "no"}, {"Name": "always"}, {"Name": "on-failure", "MaximumRetryCount": 3}]
    ),
    "ShmSize": st.integers(1 << 20, 1 << 33),
    "IpcMode": st.sampled_from(["", "host", "private", "shareable", "none"]),
    "PidMode": st.sampled_from(["", "host"]),
    "Init": st.sampled_from([None, True, False]),
    "CapAdd": st.sampled_from([None, ["SYS_PTRACE"], ["IPC_LOCK", "SYS_NICE"]]),
    "CapDrop": st.sampled_from([None, ["NET_RAW"], ["ALL"]]),
    "SecurityOpt": st.sampled_from([None, ["seccomp=unconfined"], ["no-new-privileges"]]),
    "Privileged": st.booleans(),
    "ReadonlyRootfs": st.booleans(),
    "Ulimits": st.sampled_from([[], [{"Name": "memlock", "Soft": -1, "Hard": -1}]]),
    "Sysctls": st.sampled_from([{}, {"net.ipv4.ip_unprivileged_port_start": "0"}]),
    "Devices": st.sampled_from(
        [
            [],
            [{"PathOnHost": "/dev/null", "PathInContainer": "/dev/n", "CgroupPermissions": "rw"}],
        ]
    ),
    "DeviceCgroupRules": st.sampled_from([None, ["c 1:3 r"]]),
    "Dns": st.sampled_from([[], ["192.0.2.1"]]),
    "DnsSearch": st.sampled_from([[], ["ex.org"]]),
    "DnsOptions": st.sampled_from([[], ["ndots:2"]]),
    "ExtraHosts": st.sampled_from([None, ["db:192.0.2.7"]]),
    "GroupAdd": st.sampled_from([None, ["44"]]),
    "LogConfig": st.sampled_from(
        [
            {"Type": "json-file", "Config": {}},
            {"Type": "json-file", "Config": {"max-size": "10m", "max-file": "3"}},
            {"Type": "local", "Config": {}},
            {"Type": "none", "Config": {}},
        ]
    ),
    "Memory": st.sampled_from([0, 64 << 20]),
    "NanoCpus": st.sampled_from([0, SECONDS // 2]),
    "CpusetCpus": st.sampled_from(["", "0"]),
    "PidsLimit": st.sampled_from([None, 100]),
    "OomScoreAdj": st.sampled_from([0, 100]),
    "Tmpfs": st.sampled_from([{}, {"/t": "size=1m,mode=1777"}]),
    "Mounts": st.sampled_from(
        [
            [],
            [{"Type": "tmpfs", "Target": "/m", "TmpfsOptions": {"SizeBytes": 1 << 20}}],
            [
                {
                    "Type": "bind",
                    "Source": "/usr",
                    "Target": "/m",
                    "ReadOnly": True,
                    "BindOptions": {"Propagation": "rslave"},
                }
            ],
            [{"Type": "volume", "Target": "/m"}],  # as Compose asks for an anonymous one
        ]
    ),
    "PublishAllPorts": st.booleans(),
}
CONFIGS: dict[str, st.SearchStrategy[Any]] = {
    "Env": pairs(TEXT).map(lambda found: [f"{name}={value}" for name, value in found.items()]),
    "Labels": pairs(TEXT),
    "User": st.sampled_from(["", "0", "0:0"]),
    "WorkingDir": st.sampled_from(["", "/usr"]),
    "Hostname": st.sampled_from(["", "gpu7"]),
    "StopSignal": st.sampled_from(["SIGTERM", "SIGINT", "9"]),
    "StopTimeout": st.sampled_from([1, 120]),
    "Tty": st.booleans(),
    "OpenStdin": st.booleans(),
    "Volumes": st.sampled_from([{}, {"/data": {}}, {"/data": {}, "/more": {}}]),
    "ExposedPorts": st.sampled_from([{}, {"8000/tcp": {}}]),
    "Healthcheck": st.sampled_from(
        [
            {"Test": ["NONE"]},
            {"Test": ["CMD", "/bin/true"], "Interval": 30 * SECONDS, "Retries": 2},
            {"Test": ["CMD-SHELL", "true || exit 1"], "StartPeriod": 90 * SECONDS},
        ]
    ),
}


@given(
    host=st.fixed_dictionaries({}, optional=HOST_CONFIGS),
    config=st.fixed_dictionaries({}, optional=CONFIGS),
)
@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_any_options_are_those_of_the_candidate(
    engine: Engine, blue: str, host: dict[str, Any], config: dict[str, Any]
) -> None:
    any_options_are_those_of_the_candidate(engine, blue, host, config)


def any_options_are_those_of_the_candidate(
    engine: Engine, blue: str, host: dict[str, Any], config: dict[str, Any]
) -> None:
    try:
        old_id = engine.create({"NetworkMode": blue, **host}, **config)
    except docker.errors.APIError:  # two options that exclude each other
        reject()
    with contextlib.suppress(docker.errors.APIError):  # not everything runs on every kernel
        engine.api.start(old_id)

    candidate_is_the_same(engine, old_id)

    engine.clear()


def candidate_is_the_same(engine: Engine, old_id: str) -> str:
    """All that a daemon looks at before it touches the old one; the candidate's id."""
    driver = Driver(engine, engine.plan(old_id))
    while not isinstance(step := driver.next(), deeds.Check):
        driver.take(step)
    assert driver.differences(step.container_id) == []
    return step.container_id


def test_gpus_are_asked_for_as_they_were(engine: Engine) -> None:
    """As far as a host without any goes: both are made, neither is started."""
    requests = [
        {"Driver": "", "Count": -1, "DeviceIDs": None, "Capabilities": [["gpu"]], "Options": {}},
        {"Driver": "nvidia", "Count": 0, "DeviceIDs": ["0", "2"], "Capabilities": [["gpu"]]},
    ]
    old_id = engine.create({"DeviceRequests": requests})

    new_id = candidate_is_the_same(engine, old_id)

    of = [engine.raw(one)["HostConfig"]["DeviceRequests"] for one in (old_id, new_id)]
    assert of[0] == of[1]
    assert len(of[1]) == 2
