"""What is asked for, what differs, and what is refused, as far as no engine is needed for it.

`tests/docker/test_recreate.py` holds the same against a real one.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sentinel.core.recreate.arguments import Edited, with_max_num_seqs
from sentinel.core.recreate.differences import differences
from sentinel.core.recreate.inspected import ORIGINAL, TX, command_line_of
from sentinel.core.recreate.plan import plan_for
from sentinel.core.recreate.preflight import Surroundings, composed_by, preflight
from sentinel.core.recreate.spec import Recipe, Source, Version, recipe_of

ID, NEW_ID, IMAGE_ID = "c" * 64, "d" * 64, "sha256:" + "1" * 64


def a_container(**config: Any) -> dict[str, Any]:
    """As an engine of API 1.41 describes one that runs."""
    return {
        "Id": ID,
        "Name": "/llm",
        "Image": IMAGE_ID,
        "Path": "vllm",
        "Args": ["serve", "m", "--max-num-seqs", "256"],
        "State": {"Status": "running", "StartedAt": "2030-01-01T12:00:00Z"},
        "RestartCount": 0,
        "Driver": "overlay2",
        "Platform": "linux",
        "Config": {
            "Hostname": ID[:12],
            "Env": ["HF_TOKEN=s3cr3t"],
            "Cmd": ["m", "--max-num-seqs", "256"],
            "Entrypoint": ["vllm", "serve"],
            "Image": "vllm/vllm-openai:v0.32.0",
            "Labels": {"team": "ml"},
            "Volumes": {"/data": {}},
            **config,
        },
        "HostConfig": {
            "NetworkMode": "blue",
            "RestartPolicy": {"Name": "unless-stopped", "MaximumRetryCount": 0},
            "Binds": ["cache:/cache:rw"],
            "ShmSize": 1 << 31,
            "IpcMode": "host",
            "DeviceRequests": [{"Count": -1, "Capabilities": [["gpu"]]}],
            "AnOptionOfTomorrow": {"kept": True},
        },
        "Mounts": [
            {
                "Type": "volume",
                "Name": "cache",
                "Destination": "/cache",
                "Driver": "local",
                "RW": True,
            },
            {
                "Type": "volume",
                "Name": "f" * 64,
                "Destination": "/data",
                "Driver": "local",
                "RW": True,
            },
        ],
        "NetworkSettings": {
            "Networks": {
                "blue": {
                    "IPAMConfig": {"IPv4Address": "10.0.0.9"},
                    "Aliases": ["llm", ID[:12]],
                    "NetworkID": "b" * 64,
                    "IPAddress": "10.0.0.9",
                    "MacAddress": "02:42:0a:00:00:09",
                },
                "green": {
                    "IPAMConfig": None,
                    "Aliases": [ID[:12]],
                    "NetworkID": "9" * 64,
                    "GwPriority": 0,
                },
            }
        },
    }


def a_source(container: dict[str, Any], *, api: Version = (1, 41), **facts: Any) -> Source:
    found = {
        "image": {"Id": IMAGE_ID, "Config": {"Entrypoint": ["vllm", "serve"]}},
        "tagged": IMAGE_ID,
        **facts,
    }
    return Source(container=container, api=api, **found)


def asked(container: dict[str, Any], **facts: Any) -> Recipe:
    edited = with_max_num_seqs(command_line_of(container), 64)
    assert isinstance(edited, Edited)
    source = a_source(container, **facts)
    return recipe_of(source, edited.command_line, tx="7", original="256")


class TestRecipe:
    def test_all_that_was_said_is_asked_for_again(self) -> None:
        container = a_container()

        body = asked(container).body

        assert body["Cmd"] == ["m", "--max-num-seqs", "64"]
        assert body["Env"] == ["HF_TOKEN=s3cr3t"]
        assert body["Image"] == "vllm/vllm-openai:v0.32.0"
        assert body["Labels"] == {"team": "ml", TX: "7", ORIGINAL: "256"}
        kept = {k: v for k, v in body["HostConfig"].items() if k not in ("Mounts", "Links")}
        assert kept == container["HostConfig"]

    def test_an_anonymous_volume_is_named_and_others_are_not(self) -> None:
        (mount,) = asked(a_container()).body["HostConfig"]["Mounts"]

        assert (mount["Source"], mount["Target"]) == ("f" * 64, "/data")
        assert mount["VolumeOptions"]["NoCopy"] is True

    def test_a_host_name_of_nobodys_is_left_to_the_engine(self) -> None:
        assert asked(a_container()).body["Hostname"] == ""
        assert asked(a_container(Hostname="gpu7")).body["Hostname"] == "gpu7"

    @pytest.mark.parametrize(
        ("image", "entrypoint"),
        [({"Config": {"Entrypoint": ["x"]}}, [""]), ({"Config": {}}, None)],
        ids=["the image has one", "nor has the image"],
    )
    def test_no_entrypoint(self, image: dict[str, Any], entrypoint: list[str] | None) -> None:
        container = a_container(Entrypoint=None, Cmd=["vllm", "serve", "m"])

        assert asked(container, image=image).body["Entrypoint"] == entrypoint

    @pytest.mark.parametrize("tagged", [None, "sha256:" + "2" * 64], ids=["untagged", "moved"])
    def test_an_image_that_its_name_no_longer_means_goes_by_id(self, tagged: str | None) -> None:
        assert asked(a_container(), tagged=tagged).body["Image"] == IMAGE_ID

    def test_one_network_at_once_before_1_44(self) -> None:
        recipe = asked(a_container())

        assert recipe.body["NetworkingConfig"]["EndpointsConfig"] == {
            "blue": {"IPAMConfig": {"IPv4Address": "10.0.0.9"}, "Aliases": ["llm"]}
        }
        assert recipe.networks == {"green": {}}

    def test_all_networks_at_once_from_1_44(self) -> None:
        recipe = asked(a_container(), api=(1, 44))

        assert set(recipe.body["NetworkingConfig"]["EndpointsConfig"]) == {"blue", "green"}
        assert not recipe.networks

    @pytest.mark.parametrize(
        ("api", "in_config", "in_endpoint"),
        [((1, 41), "02:00:00:00:00:01", None), ((1, 51), None, "02:00:00:00:00:01")],
        ids=["1.41", "1.51"],
    )
    def test_a_mac_address_goes_where_the_version_wants_it(
        self, api: Version, in_config: str | None, in_endpoint: str | None
    ) -> None:
        body = asked(a_container(MacAddress="02:00:00:00:00:01"), api=api).body

        assert body.get("MacAddress") == in_config
        blue = body["NetworkingConfig"]["EndpointsConfig"]["blue"]
        assert blue.get("MacAddress") == in_endpoint

    def test_a_mac_address_that_was_generated_is_not_pinned(self) -> None:
        assert "02:42" not in str(asked(a_container(), api=(1, 51)))

    def test_one_that_is_a_makers_was_given_and_is_kept_on_any_network(self) -> None:
        container = a_container()
        networks = container["NetworkSettings"]["Networks"]
        networks["blue"]["MacAddress"] = "00:16:3e:00:00:01"
        networks["green"]["MacAddress"] = "FC:16:3E:00:00:02"

        endpoints = asked(container, api=(1, 52)).body["NetworkingConfig"]["EndpointsConfig"]

        macs = [endpoints[name].get("MacAddress") for name in ("blue", "green")]
        assert macs == ["00:16:3e:00:00:01", "FC:16:3E:00:00:02"]

    def test_the_default_network_is_named_from_1_44_on(self) -> None:
        container = a_container()
        container["HostConfig"]["NetworkMode"] = "default"
        networks = container["NetworkSettings"]["Networks"]
        networks["bridge"] = networks.pop("blue")

        endpoints = asked(container, api=(1, 51)).body["NetworkingConfig"]["EndpointsConfig"]

        assert set(endpoints) == {"bridge", "green"}
        assert "Aliases" not in endpoints["bridge"]

    def test_in_the_network_of_another_nothing_of_its_own_is_asked_for(self) -> None:
        container = a_container(ExposedPorts={"80/tcp": {}}, Domainname="ex.org")
        container["HostConfig"] |= {
            "NetworkMode": f"container:{'e' * 64}",
            "PortBindings": {"80/tcp": [{"HostPort": "1"}]},
        }

        recipe = asked(container)

        body = recipe.body
        assert body["NetworkingConfig"] == {"EndpointsConfig": {}}
        assert not recipe.networks
        assert (body["Hostname"], body["Domainname"], body["ExposedPorts"]) == ("", "", {})
        assert body["HostConfig"]["PortBindings"] == {}

    def test_links_are_asked_for_as_they_once_were(self) -> None:
        container = a_container()
        container["HostConfig"]["Links"] = ["/db:/llm/db", "/db:/llm/sql"]

        assert asked(container).body["HostConfig"]["Links"] == ["db:db", "db:sql"]

    def test_the_owners_limit_is_remembered_over_any_number_of_recreations(self) -> None:
        container = a_container(Labels={ORIGINAL: "512", TX: "1", f"{TX}.x": "y"})
        edited = with_max_num_seqs(command_line_of(container), 64)
        assert isinstance(edited, Edited)

        plan = plan_for(a_source(container), edited, tx="7", grace=10)

        assert plan.recipe.body["Labels"] == {TX: "7", ORIGINAL: "512"}
        assert plan.command_line == edited.command_line


def the_new(old: dict[str, Any]) -> dict[str, Any]:
    """What an engine makes of it: other ids, other addresses, the volume by name."""
    new = copy.deepcopy(old)
    new |= {"Id": NEW_ID, "Name": "/llm.sn-7", "Args": ["serve", "m", "--max-num-seqs", "64"]}
    new["State"] = {"Status": "created"}
    new["Config"] |= {"Cmd": ["m", "--max-num-seqs", "64"], "Hostname": NEW_ID[:12]}
    new["Config"]["Labels"] |= {TX: "7", ORIGINAL: "256"}
    new["HostConfig"]["Mounts"] = [{"Type": "volume", "Source": "f" * 64, "Target": "/data"}]
    new["Mounts"].reverse()
    for endpoint in new["NetworkSettings"]["Networks"].values():
        endpoint |= {"NetworkID": "", "IPAddress": "", "MacAddress": "", "DriverOpts": {}}
        endpoint["Aliases"] = [alias for alias in endpoint["Aliases"] if alias != ID[:12]]
    return new


def setting(*path: str, to: object) -> Callable[[dict[str, Any]], None]:
    def change(raw: dict[str, Any]) -> None:
        for key in path[:-1]:
            raw = raw[key]
        raw[path[-1]] = to

    return change


class TestDifferences:
    def told(self, change: Callable[[dict[str, Any]], None] = lambda _: None) -> list[str]:
        old = a_container()
        new = the_new(old)
        change(new)
        edited = with_max_num_seqs(command_line_of(old), 64)
        assert isinstance(edited, Edited)
        return differences(old, new, expected=edited.command_line)

    def test_what_has_to_differ_is_no_difference(self) -> None:
        assert self.told() == []

    @pytest.mark.parametrize(
        "change",
        [
            setting("Image", to="sha256:other"),
            setting("Args", to=["serve", "m"]),
            setting("Config", "Cmd", to=["m"]),
            setting("Config", "Entrypoint", to=["other"]),
            setting("Config", "User", to="1000"),
            setting("Config", "Hostname", to="gpu7"),
            setting("Config", "Labels", to={"team": "ml", "more": "1"}),
            setting("Config", "Env", to=["HF_TOKEN=other"]),
            setting("Config", "Healthcheck", to={"Test": ["NONE"]}),
            setting("HostConfig", "ShmSize", to=64 << 20),
            setting("HostConfig", "DeviceRequests", to=None),
            setting("HostConfig", "RestartPolicy", to={"Name": "no", "MaximumRetryCount": 0}),
            setting("HostConfig", "AnOptionOfTomorrow", to=None),
            setting("HostConfig", "Mounts", to=[{"Type": "bind", "Target": "/x"}]),
            setting("Mounts", to=[]),
            setting("NetworkSettings", "Networks", to={}),
            setting("NetworkSettings", "Networks", "blue", "IPAMConfig", to=None),
            setting("NetworkSettings", "Networks", "blue", "Aliases", to=[]),
        ],
    )
    def test_anything_else_is_one(self, change: Callable[[dict[str, Any]], None]) -> None:
        assert len(self.told(change)) >= 1

    def test_an_empty_volume_in_the_place_of_a_full_one_is_one(self) -> None:
        def change(raw: dict[str, Any]) -> None:
            raw["Mounts"][0]["Name"] = "e" * 64

        assert self.told(change)

    def test_no_value_of_the_environment_is_told(self) -> None:
        told = self.told(setting("Config", "Env", to=["HF_TOKEN=0ther"]))

        assert told == ["Config.Env.HF_TOKEN differs"]


class TestPreflight:
    AROUND = Surroundings(networks={"blue": "b" * 64, "green": "9" * 64})

    def guards(self, source: Source, around: Surroundings = AROUND) -> list[str]:
        return [refusal.guard for refusal in preflight(source, around)]

    def test_nothing_is_held_against_an_ordinary_one(self) -> None:
        assert self.guards(a_source(a_container())) == []

    @pytest.mark.parametrize(
        "label", ["com.docker.swarm.service.name", "io.kubernetes.pod.name", "io.kubernetes.x"]
    )
    def test_an_orchestrators(self, label: str) -> None:
        source = a_source(a_container(Labels={label: "x"}))

        assert self.guards(source) == ["foreign_orchestrator"]

    @pytest.mark.parametrize(
        "host",
        [
            {"NetworkMode": f"container:{ID}"},
            {"IpcMode": "container:llm"},
            {"PidMode": f"container:{ID[:12]}"},
            {"VolumesFrom": ["llm:ro"]},
            {"Links": ["/llm:/web/llm"]},
        ],
    )
    def test_one_that_others_live_in(self, host: dict[str, Any]) -> None:
        web = {"Id": "e" * 64, "Name": "/web", "HostConfig": host}

        assert self.guards(a_source(a_container(), others=[web])) == ["others_depend"]

    @pytest.mark.parametrize(
        ("change", "facts"),
        [
            (setting("HostConfig", "AutoRemove", to=True), {}),
            (setting("State", "Status", to="removing"), {}),
            (setting("HostConfig", "IpcMode", to=f"container:{'e' * 64}"), {}),
            (setting("HostConfig", "VolumesFrom", to=["gone"]), {}),
            (setting("HostConfig", "Links", to=["/gone:/llm/x"]), {}),
            (lambda _: None, {"image": None}),
        ],
        ids=["--rm", "removing", "joined to", "borrows from", "linked to", "no image"],
    )
    def test_one_that_cannot_be_made_again(
        self, change: Callable[[dict[str, Any]], None], facts: dict[str, Any]
    ) -> None:
        container = a_container()
        change(container)

        assert self.guards(a_source(container, **facts)) == ["cannot_recreate"]

    @pytest.mark.parametrize(
        ("around", "says"),
        [
            (Surroundings(networks={"blue": "b" * 64}), "green is gone"),
            (Surroundings(networks={"blue": "a" * 64, "green": "9" * 64}), "blue was made anew"),
            (Surroundings(networks=AROUND.networks, missing={"/models"}), "/models"),
        ],
        ids=["network gone", "network of the same name", "bind source"],
    )
    def test_one_whose_surroundings_are_gone(self, around: Surroundings, says: str) -> None:
        (refusal,) = preflight(a_source(a_container()), around)

        assert refusal.guard == "cannot_recreate"
        assert says in refusal.because

    def test_compose_is_noted_and_does_not_refuse(self) -> None:
        labels = {
            "com.docker.compose.project": "llm",
            "com.docker.compose.service": "a",
            "com.docker.compose.project.config_files": "/srv/compose.yaml",
        }
        container = a_container(Labels=labels)

        assert self.guards(a_source(container)) == []
        assert composed_by(a_container()) is None
        found = composed_by(container)
        assert found is not None
        assert found["project.config_files"] == "/srv/compose.yaml"
